"""What a practitioner asks, on real crowds: right labels, wrong labels, whom to trust.

    python benchmarks/practitioner.py --data FOLDER --seeds 10 --curve docs/images/wrong-labels.svg

For mgc and labelme (VGG-16 features), with the paper's settings: accuracy of the consensus on all labelled
items; how well the quality of a label finds the wrong ones, as AUROC and as the share found among the least
trusted 10 %, 20 % and 30 % of the labels; Spearman's correlation of estimated and real accuracy of the
annotators.

Beside ours stand the majority vote (quality: share of the item's votes; ties count by their share),
Dawid–Skene, and cleanlab's CROWDLAB from PyPI, in an environment that is made for it and thrown away.
CROWDLAB gets out-of-fold probabilities: five folds of the same network, trained by the same approach and
seed, and once of a plain logistic regression on the majority vote. Ours is `posterior_` of one classifier
that is trained on all items; annot-mix-plus has networks for folds of the items inside.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

import annotmix
from annotmix.labels.annotations import Annotations
from annotmix.labels.metrics import perf_auroc
from annotmix.runs.request import DEFAULT_APPROACH

torch.set_num_threads(1)
FOLDS = 5
SETS = {"mgc": "mgc", "labelme": "labelme-vgg16"}
SHARES = (0.1, 0.2, 0.3)
HEADER = ("set", "method", "consensus", "label AUROC", "found in 10 %", "20 %", "30 %", "annotators")
AXES = "across: labels looked at, least trusted first; up: wrong labels found"
COLOURS = ("#888888", "#b35900", "#7b3fa0", "#a33ea1", "#0b63c5")


class Answer(NamedTuple):
    """P(consensus right) an item, where ties are drawn; quality a label; quality an annotator."""

    right: np.ndarray
    quality: np.ndarray
    annotators: np.ndarray


class Crowd:
    """A dataset's labels with the truth."""

    def __init__(self, data):
        self.data, self.labels = data, data.labels
        code = {name: n for n, name in enumerate(self.labels.classes)}
        self.y = np.array([code[name] for name in data.y])
        self.labelled = self.labels.labels_per_item > 0
        self.correct = self.labels.label == self.y[self.labels.item]

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Mean of a value a label over every annotator's labels."""
        total = np.bincount(self.labels.annotator, weights=values, minlength=self.labels.n_annotators)
        return total / np.maximum(self.labels.labels_per_annotator, 1)

    def shares(self) -> np.ndarray:
        votes = np.zeros((self.labels.n_items, self.labels.n_classes))
        np.add.at(votes, (self.labels.item, self.labels.label), 1)
        return votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)

    def scores(self, answer: Answer) -> list[float]:
        known = self.labels.labels_per_annotator > 0
        real = self.mean(self.correct.astype(float))
        found = found_curve(self.correct, answer.quality)
        at = [found[int(share * len(found))] for share in SHARES]
        rank = spearmanr(answer.annotators[known], real[known])[0]
        return [
            float(answer.right[self.labelled].mean()),
            perf_auroc(self.correct, answer.quality),
            *at,
            rank,
        ]


def found_curve(correct: np.ndarray, quality: np.ndarray) -> np.ndarray:
    """Share of the wrong labels among the k least trusted, k = 0, 1, …, n; ties count by their mean."""
    order = np.argsort(quality, kind="stable")
    wrong, ranked = (~correct)[order].astype(float), quality[order]
    start = np.flatnonzero(np.diff(ranked, prepend=-np.inf))
    size = np.diff(start, append=len(ranked))
    even = np.repeat(np.add.reduceat(wrong, start) / size, size)
    return np.concatenate([[0.0], np.cumsum(even)]) / wrong.sum()


def majority_vote(crowd: Crowd) -> Answer:
    share = crowd.shares()
    top = np.isclose(share, share.max(axis=1, keepdims=True))
    right = top[np.arange(len(top)), crowd.y] / top.sum(axis=1)
    quality = share[crowd.labels.item, crowd.labels.label]
    return Answer(right, quality, crowd.mean(quality))


def dawid_skene(crowd: Crowd) -> Answer:
    q = annotmix.dawid_skene(crowd.labels).probabilities.to_numpy()
    quality = q[crowd.labels.item, crowd.labels.label]
    return Answer(q.argmax(axis=1) == crowd.y, quality, crowd.mean(quality))


def ours(crowd: Crowd, approach: str, seed: int, epochs: int | None) -> Answer:
    model = _classifier(crowd, approach, seed, epochs).fit(crowd.data.X, crowd.labels)
    posterior = model.posterior_
    right = posterior.answer.q.argmax(axis=1) == crowd.y
    accuracy = posterior.annotators.loc[list(crowd.labels.annotators), "accuracy"]
    return Answer(right, posterior.label_quality["probability"].to_numpy(), accuracy.to_numpy())


def crowdlab(crowd: Crowd, proba: np.ndarray, python: Path) -> Answer:
    matrix = np.full((crowd.labels.n_items, crowd.labels.n_annotators), -1)
    matrix[crowd.labels.item, crowd.labels.annotator] = crowd.labels.label
    rows = np.flatnonzero(crowd.labelled)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(given, label=matrix[rows], proba=proba[rows])
        script = Path(__file__).with_name("crowdlab.py")
        subprocess.run([python, script, given, found], check=True)
        result = dict(np.load(found, allow_pickle=False))
    right = np.zeros(len(crowd.y), dtype=bool)
    right[rows] = result["consensus"] == crowd.y[rows]
    # our labels are sorted by item, then annotator: numpy.nonzero's order
    return Answer(right, result["quality"], result["annotators"])


def out_of_fold(crowd: Crowd, approach: str, seed: int, epochs: int | None) -> np.ndarray:
    """Probabilities of every item by a network that never saw its labels."""
    X, a = crowd.data.X, crowd.labels
    proba = np.empty((a.n_items, a.n_classes))
    for train, test in KFold(FOLDS, shuffle=True, random_state=seed).split(X):
        kept = np.isin(a.item, train)
        part = Annotations(a.item[kept], a.annotator[kept], a.label[kept], a.items, a.annotators, a.classes)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*items have no labels.*")
            proba[test] = _classifier(crowd, approach, seed, epochs).fit(X, part).predict_proba(X[test])
    return proba


def logistic(crowd: Crowd, seed: int) -> np.ndarray:
    """Out-of-fold probabilities of a logistic regression on the majority vote."""
    rows = np.flatnonzero(crowd.labelled)
    vote = crowd.shares()[rows].argmax(axis=1)
    proba = np.zeros((crowd.labels.n_items, crowd.labels.n_classes))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    model = LogisticRegression(C=0.01, max_iter=1000)  # of 1, 0.1, 0.01 and 0.001 the best for CROWDLAB
    proba[rows] = cross_val_predict(model, crowd.data.X[rows], vote, cv=folds, method="predict_proba")
    return proba


def _classifier(crowd: Crowd, approach: str, seed: int, epochs: int | None):
    settings = crowd.data.settings | ({} if epochs is None else {"max_epochs": epochs})
    return annotmix.make_classifier(approach, **settings, random_state=seed, progress=False)


def answers(
    crowd: Crowd, args: argparse.Namespace, python: Path | None
) -> Iterator[tuple[str, list[Answer]]]:
    yield "majority vote", [majority_vote(crowd)]
    yield "Dawid–Skene", [dawid_skene(crowd)]
    seeds = range(args.seeds)
    if python is not None:
        yield "CROWDLAB, logistic regression", [crowdlab(crowd, logistic(crowd, 0), python)]
        folds = (out_of_fold(crowd, args.approach, seed, args.epochs) for seed in seeds)
        yield "CROWDLAB, same network", [crowdlab(crowd, proba, python) for proba in folds]
    yield f"annotmix ({args.approach})", [ours(crowd, args.approach, seed, args.epochs) for seed in seeds]


def environment(folder: Path) -> Path:
    """An environment with cleanlab; its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "cleanlab"], check=True)
    return python


def cell(values: list[float], percent: bool) -> str:
    mean, spread = float(np.mean(values)), float(np.std(values))
    text = f"{100 * mean:.1f}" if percent else f"{mean:.3f}"
    if len(values) == 1:
        return text
    return f"{text} ± {100 * spread:.1f}" if percent else f"{text} ± {spread:.3f}"


def curve_svg(curves: dict[str, dict[str, np.ndarray]]) -> str:
    """Share of wrong labels found against share of labels looked at, a panel a dataset."""
    side, gap = 300, 60
    width, height = len(curves) * (side + gap) + gap, side + 110
    parts = [f'<rect width="{width}" height="{height}" fill="white"/>']
    for panel, (name, lines) in enumerate(curves.items()):
        left, top = gap + panel * (side + gap), 30
        parts.append(f'<text x="{left}" y="18" font-weight="bold">{name}</text>')
        for tick in (0, 0.25, 0.5, 0.75, 1):
            y, x = top + side * (1 - tick), left + side * tick
            parts.append(f'<path d="M{left} {y}h{side}M{x} {top}v{side}" stroke="#ddd"/>')
            parts.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end">{tick:.0%}</text>')
            parts.append(f'<text x="{x}" y="{top + side + 16}" text-anchor="middle">{tick:.0%}</text>')
        for colour, values in zip(COLOURS, lines.values(), strict=False):
            at = np.linspace(0, len(values) - 1, 200).astype(int)
            points = " ".join(
                f"{left + side * n / (len(values) - 1):.1f},{top + side * (1 - values[n]):.1f}" for n in at
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    parts.append(f'<text x="{gap}" y="{side + 66}">{AXES}</text>')
    x = float(gap)
    for colour, name in zip(COLOURS, next(iter(curves.values())), strict=False):
        parts.append(f'<rect x="{x}" y="{side + 80}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="{side + 91}">{name}</text>')
        x += 28 + 6.6 * len(name)
    box, font = f"0 0 {max(width, int(x))} {height}", 'font-family="sans-serif" font-size="12"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" {font}>{"".join(parts)}</svg>\n'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder with mgc/ and labelme/; by default ANNOTMIX_DATA")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--approach", default=DEFAULT_APPROACH)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, help="by default the paper's")
    parser.add_argument("--venv", help="folder of an environment with cleanlab to make and keep")
    parser.add_argument("--no-crowdlab", action="store_true")
    parser.add_argument("--curve", type=Path, help="SVG file for the curves")
    args = parser.parse_args()
    print("| " + " | ".join(HEADER) + " |")
    print("|" + "---|" * len(HEADER))
    curves: dict[str, dict[str, np.ndarray]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        python = None if args.no_crowdlab else environment(Path(args.venv or temporary))
        for name in args.sets:
            crowd = Crowd(annotmix.load_dataset(SETS[name], args.data))
            for method, found in answers(crowd, args, python):
                columns = list(zip(*(crowd.scores(answer) for answer in found), strict=True))
                percent = (True, False, True, True, True, False)
                cells = [cell(list(values), p) for values, p in zip(columns, percent, strict=True)]
                print("| " + " | ".join([name, method, *cells]) + " |", flush=True)
                lines = [found_curve(crowd.correct, answer.quality) for answer in found]
                curves.setdefault(name, {})[method] = np.mean(lines, axis=0)
    if args.curve:
        args.curve.parent.mkdir(parents=True, exist_ok=True)
        args.curve.write_text(curve_svg(curves), encoding="utf-8")


if __name__ == "__main__":
    main()
