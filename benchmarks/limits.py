"""annot-mix-plus beside annot-mix where labels are hard to learn from.

One label an item, annotators who gave a single label, heavy class imbalance, many classes. Mean ± standard
error over seeds, last epoch, percent.

    python benchmarks/limits.py --data FOLDER
    python benchmarks/limits.py --data FOLDER --on valid --scenarios one-label --seeds 5

Items, labels and classes are drawn anew for every seed, the same for all approaches; `--on valid` scores the
validation sets, by which rules were chosen. Every approach has the settings of the dataset.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import annotmix
from annotmix import Annotations
from annotmix.datasets import Dataset, load_dataset
from annotmix.datasets.simulation import hammer, simulate, spammer, thin

torch.set_num_threads(1)
APPROACHES = {
    "annot-mix": ("annot-mix", {}),
    "annot-mix α=0.4": ("annot-mix", {"alpha": 0.4}),
    "ds-mixup": ("ds-mixup", {}),
    "annot-mix-plus": ("annot-mix-plus", {}),
    "annot-mix-plus α=0": ("annot-mix-plus", {"alpha": 0.0}),
}
NAMES = {"labelme": "labelme-vgg16"}


def labels_of(a: Annotations, keep: np.ndarray, annotator: np.ndarray | None = None) -> Annotations:
    """The labels at the positions `keep`, by other annotators if given."""
    who = a.annotator[keep] if annotator is None else annotator
    names = a.annotators if annotator is None else np.arange(len(annotator))
    return Annotations(a.item[keep], who, a.label[keep], a.items, names, a.classes)


def one_label(data: Dataset, rng: np.random.Generator) -> Dataset:
    order = rng.permutation(len(data.labels))
    _, first = np.unique(data.labels.item[order], return_index=True)
    return replace(data, labels=labels_of(data.labels, order[first]))


def single_label_annotators(data: Dataset, rng: np.random.Generator) -> Dataset:
    every = np.arange(len(data.labels))
    return replace(data, labels=labels_of(data.labels, every, every))


def imbalance(data: Dataset, rng: np.random.Generator, least: float = 0.05) -> Dataset:
    """Shares of the classes fall evenly on a logarithmic scale, to a twentieth, in an order drawn anew."""
    C = len(data.classes)
    share = dict(zip(rng.permutation(data.classes), least ** (np.arange(C) / (C - 1)), strict=True))

    def kept(y):
        return np.flatnonzero(rng.random(len(y)) < [share[c] for c in y])

    items, valid, test = kept(data.y), kept(data.y_valid), kept(data.y_test)
    a = data.labels
    place = np.full(a.n_items, -1)
    place[items] = np.arange(len(items))
    of = np.flatnonzero(place[a.item] >= 0)
    labels = Annotations(
        place[a.item[of]], a.annotator[of], a.label[of], a.items[items], a.annotators, a.classes
    )
    return replace(
        data,
        X=data.X[items],
        y=data.y[items],
        labels=labels,
        X_valid=data.X_valid[valid],
        y_valid=data.y_valid[valid],
        X_test=data.X_test[test],
        y_test=data.y_test[test],
        test_labels=None,
    )


def many_classes(data: Dataset, rng: np.random.Generator, C: int = 100, n: int = 20) -> Dataset:
    """100 Gaussian classes of twenty items, three labels each; 30 annotators, very good ones and spammers."""
    centre = rng.normal(size=(C, 32))

    def draw(n):
        y = np.repeat(np.arange(C), n)
        return (centre[y] + rng.normal(size=(len(y), 32))).astype(np.float32), y

    (X, y), (X_valid, y_valid), (X_test, y_test) = draw(n), draw(2), draw(6)
    crowd = {f"a{i}": hammer(C, r) for i, r in enumerate(np.linspace(0.4, 0.95, 26))}
    crowd |= {f"s{i}": spammer(C) for i in range(4)}
    said = simulate(y, crowd, classes=range(C), random_state=int(rng.integers(2**31)))
    labels = thin(said, (3, 3), random_state=int(rng.integers(2**31)))
    return replace(
        data, X=X, y=y, labels=labels, X_valid=X_valid, y_valid=y_valid,
        X_test=X_test, y_test=y_test, test_labels=None, classes=np.arange(C),
    )  # fmt: skip


SCENARIOS = {
    "one-label": (one_label, ("mgc", "labelme", "letter", "digits")),
    "single-label-annotators": (single_label_annotators, ("mgc", "labelme")),
    "imbalance": (imbalance, ("mgc", "labelme", "letter")),
    "many-classes": (many_classes, ("digits",)),
}


def run(folder: str, scenario: str, dataset: str, approach: str, seed: int, on: str) -> tuple[float, float]:
    """clf-acc, and the accuracy of consensus labels."""
    published = {"published": True} if dataset == "letter" else {}
    data = load_dataset(NAMES.get(dataset, dataset), folder, **published, progress=False)
    data = SCENARIOS[scenario][0](data, np.random.default_rng([seed, 1]))
    name, params = APPROACHES[approach]
    clf = annotmix.make_classifier(
        name, **{**data.settings, **params}, classes=data.classes, random_state=seed, progress=False
    ).fit(data.X, data.labels)
    X, y = (data.X_valid, data.y_valid) if on == "valid" else (data.X_test, data.y_test)
    return clf.score(X, y), float(np.mean(clf.consensus(data.X, data.labels)["label"].to_numpy() == data.y))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=os.environ.get("ANNOTMIX_DATA"), help="default: ANNOTMIX_DATA")
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=list(SCENARIOS))
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--approaches", nargs="+", default=list(APPROACHES), choices=list(APPROACHES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--on", choices=["test", "valid"], default="test")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    args = parser.parse_args()
    print(f"clf-acc on {args.on} / consensus on train, {args.seeds} seeds (letter: one)")
    print("| | " + " | ".join(args.approaches) + " |\n|---|" + "---|" * len(args.approaches))
    with ProcessPoolExecutor(args.workers) as pool:
        for scenario in args.scenarios:
            for dataset in SCENARIOS[scenario][1]:
                if args.datasets and dataset not in args.datasets:
                    continue
                seeds = 1 if dataset == "letter" else args.seeds
                jobs = [
                    [pool.submit(run, args.data, scenario, dataset, a, s, args.on) for s in range(seeds)]
                    for a in args.approaches
                ]
                cells = [cell(np.array([job.result() for job in row])) for row in jobs]
                print(f"| {scenario}, {dataset} | " + " | ".join(cells) + " |", flush=True)


def cell(scores: np.ndarray) -> str:
    accuracy, consensus = 100 * scores.mean(axis=0)
    error = 100 * scores[:, 0].std(ddof=1) / len(scores) ** 0.5 if len(scores) > 1 else float("nan")
    return f"{accuracy:.1f} ± {error:.1f} / {consensus:.1f}"


if __name__ == "__main__":
    main()
