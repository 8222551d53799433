"""The tables of a run, from the beliefs of a fitted model; `result_columns.py` explains them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import beta

from annotmix.estimators.beliefs import Beliefs
from annotmix.labels.annotations import ROUNDING, Annotations
from annotmix.runs.result_columns import make_table

Floats = NDArray[np.float64]

#: Probability of the intervals.
LEVEL = 0.95


def make_tables(believed: Beliefs) -> dict[str, Any]:
    """The parts of `Findings` that need beliefs: items, annotators, labels, confusion."""
    return {
        "items": item_table(believed),
        "annotators": annotator_table(believed),
        "labels": label_table(believed),
        "confusion": believed.confusion,
    }


def item_table(believed: Beliefs) -> pd.DataFrame:
    """One row per item."""
    a, classes = believed.annotations, believed.annotations.classes
    best = believed.q.argmax(axis=1)
    votes = _Votes(a)
    n = a.labels_per_item
    return make_table(
        "items",
        {
            "item": a.items,
            "label": classes[best],
            "probability": believed.q.max(axis=1),
            "classifier": classes[believed.p.argmax(axis=1)],
            "votes": votes.texts,
            "majority": votes.majority,
            "differs": (n > 0) & ~votes.most(best),
            "n_labels": n,
            "agreement": a.agreement_with(best),
            "disagreement": votes.entropy,
        },
    )


class _Votes:
    """Votes of every item, most votes first."""

    def __init__(self, a: Annotations):
        item, label, count = a.votes()
        order = np.lexsort((label, -count, item))
        self.item, self.label, self.count = item[order], label[order], count[order]
        self.n_items, self.classes = a.n_items, a.classes
        share = self.count / a.total(a.item, a.n_items)[self.item]
        bits = np.bincount(self.item, weights=-share * np.log2(share), minlength=a.n_items)
        self.entropy = np.where(a.labels_per_item > 0, np.abs(bits), np.nan)

    @property
    def texts(self) -> list[str]:
        parts: list[list[str]] = [[] for _ in range(self.n_items)]
        for item, label, count in zip(self.item.tolist(), self.label, self.count, strict=True):
            parts[item].append(f"{self.classes[label]} ({count:g})")
        return [", ".join(part) for part in parts]

    @property
    def majority(self) -> NDArray[Any]:
        names = np.full(self.n_items, "", dtype=object)
        first = np.flatnonzero(np.diff(self.item, prepend=-1))
        names[self.item[first]] = self.classes[self.label[first]]
        return names

    def most(self, label: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether a label, shape (n_items,), is among those of its item with the most votes."""
        top = np.zeros(self.n_items)
        np.maximum.at(top, self.item, self.count)
        won = (self.count >= top[self.item] * (1 - ROUNDING)) & (self.label == label[self.item])
        return np.bincount(self.item[won], minlength=self.n_items) > 0


def annotator_table(believed: Beliefs) -> pd.DataFrame:
    """One row per annotator.

    The accuracy is the expected share of right labels, each label judged by all evidence but itself. Its
    interval is Jeffreys' for a share, Beta(r + ½, n − r + ½) with r the expected number of right labels among
    n: it says how far few labels can be trusted, and takes the model's probabilities as they are. Labels with
    weights count by them, in r and in n.
    """
    a = believed.annotations
    n = a.total(a.annotator, a.n_annotators)
    right = _sums(a, believed.right_by_others)
    with np.errstate(invalid="ignore"):
        accuracy = right / n
    tail = (1 - LEVEL) / 2
    low, high = (beta.ppf(chance, right + 0.5, np.maximum(n - right, 0) + 0.5) for chance in (tail, 1 - tail))
    names, rates = _frequent_confusion(believed)
    return make_table(
        "annotators",
        {
            "annotator": a.annotators,
            "n_labels": a.labels_per_annotator,
            "accuracy": accuracy,
            "low": np.fmin(low, accuracy),
            "high": np.fmax(high, accuracy),
            "agreement": agreement_with_others(a),
            "confusion": names,
            "confusion_rate": rates,
        },
    )


def agreement_with_others(a: Annotations) -> Floats:
    """Mean share of the other labels of the same items that are the same, shape (M,); nan without others."""
    _, where = np.unique(a.item * a.n_classes + a.label, return_inverse=True)
    one = np.ones(len(a)) if a.weight is None else a.weight
    others = a.total(a.item, a.n_items)[a.item] - a.total(a.pair, len(a))[a.pair]
    several = a.labels_per_item[a.item] > 1
    share = (a.total(where, len(a))[where] - one)[several] / others[several]
    annotator, one = a.annotator[several], one[several]
    total = np.bincount(annotator, weights=one * share, minlength=a.n_annotators)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.bincount(annotator, weights=one, minlength=a.n_annotators))


def _sums(a: Annotations, values: Floats) -> Floats:
    """Sums of values of labels, shape (n_labels,), times their weights, by annotator; shape (M,)."""
    weighted = values if a.weight is None else values * a.weight
    return np.asarray(np.bincount(a.annotator, weights=weighted, minlength=a.n_annotators), dtype=np.float64)


def _frequent_confusion(believed: Beliefs) -> tuple[list[str], Floats]:
    """The confusion with the most expected labels, at least half a label, and its rate."""
    counts, classes = believed.counts, believed.annotations.classes
    n_classes = len(classes)
    off = np.where(np.eye(n_classes, dtype=bool), 0.0, counts).reshape(len(counts), -1)
    best = off.argmax(axis=1)
    true, label = np.divmod(best, n_classes)
    rows = np.arange(len(counts))
    enough = off[rows, best] >= 0.5
    names = [
        f"{classes[c]} → {classes[k]}" if ok else "" for c, k, ok in zip(true, label, enough, strict=True)
    ]
    return names, np.where(enough, believed.confusion[rows, true, label], np.nan)


def label_table(believed: Beliefs) -> pd.DataFrame:
    """One row per label, least likely right first; with weights, by weight × chance of an error."""
    a, best = believed.annotations, believed.q.argmax(axis=1)
    table = a.to_long().assign(consensus=a.classes[best[a.item]], probability=believed.right)
    table = make_table("labels", table)
    if "weight" not in table:
        return table.sort_values("probability", kind="stable", ignore_index=True)
    wrong = table["weight"] * (1 - table["probability"])
    return table.loc[wrong.sort_values(ascending=False, kind="stable").index].reset_index(drop=True)
