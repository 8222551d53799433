"""The demonstration: digits, a simulated crowd, three classifiers, one page."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import annotmix
from annotmix.datasets.simulation import confuser, hammer, simulate, spammer, specialist, thin
from annotmix.labels.annotations import Annotations
from annotmix.runs.report.demo import LEARNS_FROM, Example, Findings, demo_page

N_TRAIN = 1000
N_CLASSES = 10
#: The same for all three. The lead of annot-mix over mv-base hangs on the dropout: 20 points of test accuracy
#: with 0, 12 with 0.3, 5 with 0.5, 2 with 0.7, and 1 with 0.5 and a learning rate of 0.003 (seeds 0 to 2).
SETTINGS: dict[str, Any] = {"hidden": (256, 128), "dropout": 0.5}

#: Confusion matrix and load (labels, relative to the others) of every annotator.
CROWD = {
    "expert": (hammer(N_CLASSES, 0.97), 2),
    "good-1": (hammer(N_CLASSES, 0.85), 4),
    "good-2": (hammer(N_CLASSES, 0.8), 3),
    "mediocre-1": (hammer(N_CLASSES, 0.6), 4),
    "mediocre-2": (hammer(N_CLASSES, 0.5), 3),
    "knows-0-to-4": (specialist(N_CLASSES, range(5), 0.95, 0.2), 3),
    "knows-5-to-9": (specialist(N_CLASSES, range(5, 10), 0.95, 0.2), 3),
    "swaps-pairs": (confuser(N_CLASSES, [(3, 8), (4, 9), (1, 7)], 0.7), 3),
    "spammer-1": (spammer(N_CLASSES), 3),
    "spammer-2": (spammer(N_CLASSES), 2),
    "always-says-1": (spammer(N_CLASSES, always=1), 1),
    "contrarian": (hammer(N_CLASSES, 0.04), 2),
}
#: Annotators whose confusion matrices are worth a look.
TELLING = {
    "knows-0-to-4": "Sure about 0 to 4, nearly guesses the rest.",
    "swaps-pairs": "Takes 3 for 8, 4 for 9, 1 for 7, and back.",
    "spammer-1": "Picks any digit without looking.",
    "always-says-1": "Says 1, whatever the image.",
}


def run_demo(out: Path, seed: int = 0, epochs: int = 40) -> Findings:
    """Simulate a crowd, train, print what was found, and write `report.html` into the folder `out`.

    Parameters
    ----------
    out : Path
        Folder; it is made where it does not exist.
    seed : int, default=0
    epochs : int, default=40
    """
    _require_writable(out)
    console = Console(highlight=False)
    console.print("Simulating a crowd that labels handwritten digits …")
    from annotmix._common.files import write_atomically  # loads torch, which takes a while

    X, y, X_test, y_test = _digits()
    rng = np.random.default_rng(seed)
    matrices, loads = {name: m for name, (m, _) in CROWD.items()}, [load for _, load in CROWD.values()]
    labels = thin(simulate(y, matrices, random_state=rng), (3, 4), loads=loads, random_state=rng)

    classifiers = {}
    for name, source in LEARNS_FROM.items():
        console.print(f"Training {name} on {source} …")
        clf = annotmix.make_classifier(name, random_state=seed, max_epochs=epochs, **SETTINGS)
        monitor = {"test": (X_test, y_test)}
        classifiers[name] = clf.fit(X, y if name == "true-base" else labels, monitor=monitor)

    found = _findings(classifiers, X, y, labels, seed, len(X_test))
    _print(console, found)
    report, html = out / "report.html", demo_page(found)
    write_atomically(report, lambda path: Path(path).write_text(html, encoding="utf-8"))
    print(f"Report: {report}  ({report.resolve().as_uri()})")
    return found


def _digits() -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32], NDArray[np.int64]]:
    """Images as rows and their classes, for training and for testing; always the same split."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = (X / 16).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:N_TRAIN], order[N_TRAIN:]
    return X[train], y[train], X[test], y[test]


def _findings(
    classifiers: dict[str, Any],
    X: NDArray[np.float32],
    y: NDArray[np.int64],
    labels: Annotations,
    seed: int,
    n_test: int,
) -> Findings:
    model = classifiers["annot-mix"]
    consensus = pd.DataFrame(
        {
            "truth": y,
            "majority": annotmix.majority_vote(labels, random_state=seed).to_numpy(),
            "consensus": model.consensus(X, labels)["label"].to_numpy(),
        }
    )
    estimated = model.annotator_confusion(X, annotators=list(TELLING))
    return Findings(
        curves=pd.DataFrame({name: clf.history_["test/clf-acc"] for name, clf in classifiers.items()}),
        annotators=_annotators(model.predict_annotator_perf(X), labels, y),
        consensus=consensus,
        confusions={
            name: (sentence, matrix, _real_confusion(labels, y, name))
            for (name, sentence), matrix in zip(TELLING.items(), estimated, strict=True)
        },
        examples=_examples(consensus, labels, X),
        classes=list(labels.classes),
        n_test=n_test,
        seed=seed,
    )


def _annotators(perf: NDArray[np.float64], labels: Annotations, y: NDArray[np.int64]) -> pd.DataFrame:
    """Number of labels, mean p_perf and share of right labels of every annotator, over the labels given."""
    given = pd.DataFrame(
        {
            "worker": labels.annotators[labels.annotator],
            "estimated": perf[labels.item, labels.annotator],
            "real": labels.label == y[labels.item],
        }
    )
    table = given.groupby("worker")[["estimated", "real"]].mean()
    table.insert(0, "labels", given.groupby("worker").size())
    return table.sort_values("real", ascending=False)


def _real_confusion(labels: Annotations, y: NDArray[np.int64], name: str) -> NDArray[np.float64]:
    """Shares of the labels that an annotator gave to items of each class, shape (C, C); nan where none."""
    own = labels.annotators[labels.annotator] == name
    counts = np.zeros((labels.n_classes, labels.n_classes))
    np.add.at(counts, (y[labels.item[own]], labels.label[own]), 1)
    with np.errstate(invalid="ignore"):
        return counts / counts.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def _examples(consensus: pd.DataFrame, labels: Annotations, X: NDArray[np.float32]) -> list[Example]:
    """One item a class, up to eight, where most labels were wrong in the same way and the model was right."""
    repaired = consensus[
        (consensus["consensus"] == consensus["truth"]) & (consensus["majority"] != consensus["truth"])
    ]
    found: dict[Any, Example] = {}
    for n, row in repaired.iterrows():
        own = slice(labels.start[n], labels.start[n + 1])
        given = dict(zip(labels.annotators[labels.annotator[own]], labels.label[own].tolist(), strict=True))
        if list(given.values()).count(row["majority"]) > len(given) / 2:
            found.setdefault(
                row["truth"], Example(X[n].reshape(8, 8), given, row["majority"], row["consensus"])
            )
    return [found[truth] for truth in sorted(found)][:8]


def _print(console: Console, found: Findings) -> None:
    results = Table("approach", "learns from", title="Test images classified right", title_justify="left")
    results.add_column("accuracy", justify="right")
    for name, share in found.accuracy.items():
        results.add_row(name, LEARNS_FROM[name], f"{share:.1%}")
    people = Table("annotator", title="Annotators' labels that are right", title_justify="left")
    for column in ("labels", "estimated", "real"):
        people.add_column(column, justify="right")
    for name, row in found.annotators.iterrows():
        people.add_row(name, f"{row['labels']:.0f}", f"{row['estimated']:.0%}", f"{row['real']:.0%}")
    for table in (results, people):
        console.print()
        console.print(table)
    console.print(
        f"\nLabels of the training images that are right: {found.label_accuracy:.1%} of all labels given, "
        f"{found.share_right('majority'):.1%} by majority vote, "
        f"{found.share_right('consensus'):.1%} by annot-mix's consensus."
    )


def _require_writable(folder: Path) -> None:
    """Fail before the work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "Not a folder", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass
