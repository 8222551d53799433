"""Findings to make reports of: of real data sets, of hostile names, and of many labels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

import annotmix
from annotmix.annotations import Annotations
from annotmix.findings import Findings, Preview
from annotmix.simulation import hammer, simulate, specialist, thin

IMG = "<img src=x onerror=alert(1)>"
HOSTILE = [
    IMG,
    "\"'`><script>alert(2)</script>",
    "</script><script>alert(3)</script>",
    "\u202eright to left\u202c שלום",
    "🦊 \u2028 \u2029 &amp; &lt;b&gt;",
    "=HYPERLINK(1)",
    "n" * 10_000,
    "\x00\x1b[31m control",
]


def of_classifier(
    clf: Any, X: Any, labels: Annotations, truth: Any, previews: dict[str, Preview], title: str
) -> Findings:
    """What a trained classifier says about its own training data."""
    classes = np.array([str(c) for c in clf.classes_])
    named = Annotations(
        labels.item, labels.annotator, labels.label, *(
            np.array([str(name) for name in names], dtype=object)
            for names in (labels.items, labels.annotators, labels.classes)
        )
    )  # fmt: skip
    consensus = clf.consensus(X, labels)
    quality = clf.label_quality(X, labels)["probability"].to_numpy()
    votes = np.zeros((named.n_items, named.n_classes), dtype=int)
    np.add.at(votes, (named.item, named.label), 1)
    label = consensus["label"].astype(str).to_numpy()
    code = np.searchsorted(np.sort(classes), label)
    code = np.argsort(classes)[code]
    items = _items(named, votes, classes, code, consensus["probability"].to_numpy())
    counts = named.labels_per_annotator
    accuracy = np.bincount(named.annotator, weights=quality, minlength=named.n_annotators) / counts
    half = 1.96 * np.sqrt(accuracy * (1 - accuracy) / counts)
    confusion = clf.annotator_confusion()
    long = named.to_long().assign(probability=quality, consensus=label[named.item])
    perf = clf.predict_annotator_perf(X)
    doubtful = np.argsort(items["probability"].to_numpy())[:60]
    best = perf[doubtful].argmax(axis=1)
    right = label == np.asarray(truth).astype(str)
    sure = consensus["probability"].to_numpy()
    bins = pd.DataFrame({"sure": sure, "right": right, "bin": np.minimum((sure * 10).astype(int), 9)})
    grouped = bins.groupby("bin").agg(
        confidence=("sure", "mean"), accuracy=("right", "mean"), count=("right", "size")
    )
    return Findings(
        title=title,
        classes=classes,
        items=items,
        annotators=_annotators(named, classes, counts, accuracy, half, confusion),
        confusion=confusion,
        labels=long.sort_values("probability", kind="stable").reset_index(drop=True),
        history=clf.history_,
        suggestions=pd.DataFrame(
            {
                "task": named.items[doubtful],
                "worker": named.annotators[best],
                "gain": (1 - sure[doubtful]) * perf[doubtful, best],
                "performance": perf[doubtful, best],
            }
        ),
        previews=previews,
        scores={
            "n": len(right),
            "clf-acc": clf.score(X, truth),
            "consensus-acc": float(right.mean()),
            "majority-acc": float((items["majority"].to_numpy() == np.asarray(truth).astype(str)).mean()),
        },
        calibration=grouped.reset_index(drop=True),
        settings={
            "approach": clf._approach.name,
            "parameters": {k: clf.get_params()[k] for k in ("hidden", "lr", "max_epochs", "dropout")},
            "seed": clf.seed_,
            "versions": {"annotmix": annotmix.__version__, "numpy": np.__version__},
        },
        inputs=[
            {"role": "labels", "name": "answers.csv", "sha256": "0123456789abcdef" * 4, "rows": len(named)},
            {"role": "features", "name": "items.npy", "sha256": "fedcba9876543210" * 4, "rows": len(label)},
        ],
        notes=["Features were standardised.", "3 missing values in column 'tempo' became its median."],
    )  # fmt: skip


def _items(named: Annotations, votes: Any, classes: Any, code: Any, probability: Any) -> pd.DataFrame:
    n = votes.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = votes / n[:, None]
        entropy = -np.nansum(np.where(share > 0, share * np.log2(share), 0), axis=1)
    texts = [
        ", ".join(f"{classes[k]} {row[k]}" for k in np.argsort(-row, kind="stable") if row[k])
        for row in votes
    ]
    mine = votes[np.arange(len(votes)), code]
    return pd.DataFrame(
        {
            "label": classes[code],
            "probability": probability,
            "votes": texts,
            "majority": classes[votes.argmax(axis=1)],
            "differs": mine < votes.max(axis=1),
            "n_labels": n,
            "agreement": np.where(n > 0, mine / np.maximum(n, 1), np.nan),
            "disagreement": np.where(n > 0, entropy, np.nan),
        },
        index=pd.Index(named.items, name="task"),
    )


def _annotators(
    named: Annotations, classes: Any, counts: Any, accuracy: Any, half: Any, confusion: Any
) -> pd.DataFrame:
    off = np.where(np.eye(len(classes), dtype=bool), 0, confusion).reshape(len(counts), -1)
    true, given = np.divmod(off.argmax(axis=1), len(classes))
    return pd.DataFrame(
        {
            "n_labels": counts,
            "accuracy": accuracy,
            "low": np.clip(accuracy - half, 0, 1),
            "high": np.clip(accuracy + half, 0, 1),
            "agreement": np.where(counts > 3, accuracy * 0.9, np.nan),
            "confusion": [f"{classes[c]} → {classes[k]}" for c, k in zip(true, given, strict=True)],
            "confusion_rate": off.max(axis=1),
        },
        index=pd.Index(named.annotators, name="worker"),
    )


def mgc(folder: Path, epochs: int = 8) -> Findings:
    data = annotmix.load_dataset("mgc", folder, download=False)
    settings = {**data.settings, "max_epochs": epochs, "progress": False}
    clf = annotmix.make_classifier("annot-mix", **settings, random_state=0)
    clf.fit(data.X, data.labels, monitor={"valid": (data.X_valid, data.y_valid)})
    previews = {str(task): Preview(str(task)) for task in data.labels.items}
    return of_classifier(clf, data.X, data.labels, data.y, previews, "annot-mix on music genres")


def labelme(folder: Path, epochs: int = 8) -> Findings:
    from PIL import Image

    data = annotmix.load_dataset("labelme-vgg16", folder, download=False)
    photos = annotmix.load_dataset("labelme", folder, download=False).X
    settings = {**data.settings, "max_epochs": epochs, "progress": False}
    clf = annotmix.make_classifier("annot-mix", **settings, random_state=0).fit(data.X, data.labels)
    found = of_classifier(clf, data.X, data.labels, data.y, {}, "annot-mix on labelme")
    wanted = {*found.labels["task"][:300], *found.suggestions["task"]}
    previews = {}
    for task, path in zip(data.labels.items, photos, strict=True):
        if task in wanted:
            with Image.open(path) as image:
                image.thumbnail((160, 160))
                file = io.BytesIO()
                image.convert("RGB").save(file, "JPEG", quality=70)
            previews[str(task)] = Preview(str(task), file.getvalue())
    return Findings(**{**vars(found), "previews": previews})


def trec6(folder: Path, n: int = 800, epochs: int = 8) -> Findings:
    lines = (folder / "trec6" / "train_5500.label").read_text("latin-1").splitlines()[:n]
    kinds, texts = zip(*((line.split(":")[0], line.split(" ", 1)[1]) for line in lines), strict=True)
    classes, y = np.unique(kinds, return_inverse=True)
    C = len(classes)
    crowd = {f"reader {m}": hammer(C, accuracy) for m, accuracy in enumerate((0.9, 0.85, 0.7, 0.5))}
    crowd["knows people"] = specialist(C, [3])
    labels = thin(simulate(y, crowd, classes=classes, random_state=0), (2, 4), random_state=0)
    X = TruncatedSVD(30, random_state=0).fit_transform(TfidfVectorizer().fit_transform(texts))
    X = (X / X.std(axis=0)).astype(np.float32)
    clf = annotmix.make_classifier(
        "annot-mix", max_epochs=epochs, dropout=0.5, random_state=0, progress=False
    )
    clf.fit(X, labels)
    previews = {str(i): Preview(text) for i, text in enumerate(texts)}
    return of_classifier(clf, X, labels, classes[y], previews, "annot-mix on questions")


def invented(
    n_items: int, n_annotators: int, n_classes: int, n_labels: int, names: list[str] | None = None
) -> Findings:
    """Drawn figures in the form of findings; `names` are those of the first items, annotators, classes."""
    rng = np.random.default_rng(0)
    code = rng.integers(n_classes, size=n_items)
    pairs = np.unique(rng.integers([n_items, n_annotators], size=(n_labels, 2)), axis=0)
    skill = rng.beta(6, 2, size=n_annotators)
    right = rng.random(len(pairs)) < skill[pairs[:, 1]]
    given = np.where(right, code[pairs[:, 0]], rng.integers(n_classes, size=len(pairs)))
    lists = []
    for kind, n in (("item", n_items), ("worker", n_annotators), ("class", n_classes)):
        own = [f"{kind} {i}" for i in range(n)]
        own[: len(names or [])] = (names or [])[:n]
        lists.append(np.array(own, dtype=object))
    named = Annotations(pairs[:, 0], pairs[:, 1], given, *lists)
    classes = lists[2]
    votes = np.zeros((n_items, n_classes), dtype=int)
    np.add.at(votes, (named.item, named.label), 1)
    probability = rng.beta(8, 1, size=n_items)
    confusion = np.stack([np.eye(n_classes) * s for s in skill])
    confusion += (1 - skill)[:, None, None] * rng.dirichlet(
        np.full(n_classes, 0.3), size=(n_annotators, n_classes)
    )
    quality = np.clip(
        np.where(named.label == code[named.item], 0.9, 0.1) + rng.normal(scale=0.05, size=len(named)), 0, 1
    )
    long = named.to_long().assign(probability=quality, consensus=classes[code[named.item]])
    counts = named.labels_per_annotator
    asked = rng.integers(n_items, size=200)
    return Findings(
        title=names[0] if names else "Invented figures",
        classes=classes,
        items=_items(named, votes, classes, code, probability),
        annotators=_annotators(named, classes, counts, skill, 1 / np.sqrt(np.maximum(counts, 1)), confusion),
        confusion=confusion,
        labels=long.sort_values("probability", kind="stable").reset_index(drop=True),
        history=pd.DataFrame({"loss": [2.0, 1.0, 0.8]}, index=pd.Index([1, 2, 3], name="epoch")),
        suggestions=pd.DataFrame(
            {"task": lists[0][asked], "worker": lists[1][rng.integers(n_annotators, size=200)],
             "gain": np.sort(rng.random(200))[::-1], "performance": rng.random(200)}
        ),
        previews={name: Preview(f"{name} " * 20) for name in lists[0]},
        settings={"approach": "annot-mix", **({name: name for name in names} if names else {})},
        inputs=[{"role": "labels", "name": name, "sha256": name, "rows": 1} for name in names or []],
        notes=list(names or []),
    )  # fmt: skip
