"""Which items to have labelled next, and by whom.

For an item with class probabilities q (after the labels it has) and an annotator with confusion matrix Π on
that very item, a further label z is expected to tell

    I(class; z) = H(q Π) − Σ_c q_c H(Π_c)   bits.

It is large where the item is uncertain and the annotator is good at telling its likely classes apart; a
spammer's label is worth nothing anywhere.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.beliefs import Beliefs, beliefs
from annotmix.multi_annotator import MultiAnnotatorClassifier
from annotmix.names import locate, some

Floats = NDArray[np.float64]
Index = NDArray[np.int64]

#: Pairs (item, annotator) that are looked at; beyond that, the most uncertain items and the best annotators.
MOST_PAIRS = 500_000
MOST_ANNOTATORS = 500


def suggest(
    model: MultiAnnotatorClassifier,
    X: Any,
    annotations: Any,
    budget: int,
    *,
    tasks: Iterable[Any] | None = None,
    annotators: Iterable[Any] | None = None,
    per_item: int = 1,
    per_annotator: int | None = None,
) -> pd.DataFrame:
    """Pairs (item, annotator) from whose labels most is expected.

    Parameters
    ----------
    model : MultiAnnotatorClassifier
        Fitted.
    X : array-like, shape (n, ...)
        Instances, labelled or not.
    annotations : label matrix, long table or Annotations
        The labels there are; no pair is suggested that has one.
    budget : int
        How many pairs.
    tasks : iterable, optional
        Names of the rows of X.
    annotators : iterable, optional
        Who can be asked; by default all that the model knows.
    per_item : int, default=1
        Most suggestions for one item.
    per_annotator : int, optional
        Most suggestions for one annotator; by default twice an equal share.

    Returns
    -------
    DataFrame, best first
        `task`, `worker`, `gain` (in bits), `performance` (the chance that this annotator is right on this
        item). Fewer than `budget` rows where the limits leave no more.
    """
    return suggest_from(beliefs(model, X, annotations, tasks), budget, annotators, per_item, per_annotator)


def suggest_from(
    believed: Beliefs,
    budget: int,
    annotators: Iterable[Any] | None = None,
    per_item: int = 1,
    per_annotator: int | None = None,
) -> pd.DataFrame:
    """`suggest`, where the model's beliefs are known already."""
    for name, value in {"budget": budget, "per_item": per_item, "per_annotator": per_annotator}.items():
        if value is not None and (not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{name} must be a positive integer, found {value!r}.")
    who = _annotators(believed, annotators)
    share = per_annotator if per_annotator is not None else max(1, math.ceil(2 * budget / len(who)))
    rows = _items(believed, budget, per_item, len(who))
    gain, performance = _expected(believed, rows, who)
    _forbid_known(believed, rows, who, gain)
    chosen = _greedy(gain, budget, per_item, share)
    item, column = (np.array([pair[axis] for pair in chosen], dtype=np.int64) for axis in (0, 1))
    return pd.DataFrame(
        {
            "task": believed.annotations.items[rows[item]],
            "worker": believed.annotations.annotators[who[column]],
            "gain": gain[item, column],
            "performance": performance[item, column],
        }
    )


def _annotators(believed: Beliefs, wanted: Iterable[Any] | None) -> Index:
    """Positions of those who can be asked; where they are very many, those who are most surely good."""
    names = believed.annotations.annotators
    if wanted is not None:
        asked = np.array(list(wanted), dtype=object)
        who = locate(asked, names)
        if (who < 0).any():
            raise ValueError(f"Unknown annotators {some(asked[who < 0])}; the model knows {some(names)}.")
        if not len(who):
            raise ValueError("annotators names nobody who could be asked.")
        return np.unique(who)
    if len(names) <= MOST_ANNOTATORS:
        return np.arange(len(names))
    a = believed.annotations
    weight = believed.right_by_others if a.weight is None else believed.right_by_others * a.weight
    right = np.bincount(a.annotator, weights=weight, minlength=len(names))
    sure = (right + 1) / (a.total(a.annotator, len(names)) + 2)
    return np.sort(np.argsort(-sure, kind="stable")[:MOST_ANNOTATORS])


def _items(believed: Beliefs, budget: int, per_item: int, n_annotators: int) -> Index:
    """Rows of the most uncertain items: no label tells more than the item's entropy."""
    least = math.ceil(budget / per_item)
    most = max(least, min(4 * budget + 100, MOST_PAIRS // n_annotators))
    return np.argsort(-_entropy(believed.q), kind="stable")[:most]


def _expected(believed: Beliefs, rows: Index, who: Index) -> tuple[Floats, Floats]:
    """Expected bits, and chance of a right label, of every pair; shapes (len(rows), len(who))."""
    row, annotator = np.repeat(rows, len(who)), np.tile(who, len(rows))
    gain, performance = np.empty(len(row)), np.empty(len(row))
    for chunk, confusion in believed.confusion_on(row, annotator):
        q = believed.q[row[chunk]]
        label = np.einsum("nc,nck->nk", q, confusion)
        gain[chunk] = _entropy(label) - np.einsum("nc,nc->n", q, _entropy(confusion))
        performance[chunk] = np.einsum("nc,ncc->n", q, confusion)
    shape = (len(rows), len(who))
    return np.maximum(gain, 0).reshape(shape), performance.reshape(shape)


def _forbid_known(believed: Beliefs, rows: Index, who: Index, gain: Floats) -> None:
    """Mark pairs that have a label already."""
    a = believed.annotations
    row_of, column_of = np.full(a.n_items, -1), np.full(a.n_annotators, -1)
    row_of[rows], column_of[who] = np.arange(len(rows)), np.arange(len(who))
    row, column = row_of[a.item], column_of[a.annotator]
    here = (row >= 0) & (column >= 0)
    gain[row[here], column[here]] = -np.inf


def _greedy(gain: Floats, budget: int, per_item: int, per_annotator: int) -> list[tuple[int, int]]:
    """The best pairs one after the other, within the limits; best first.

    Every item waits with its best annotator. One whose annotator has no room left waits again with its next.
    """
    free = gain.copy()
    load, count = np.zeros(gain.shape[1], dtype=np.int64), np.zeros(len(gain), dtype=np.int64)
    heap = [(-free[n, m], n, int(m)) for n, m in enumerate(free.argmax(axis=1))]
    heapq.heapify(heap)
    chosen: list[tuple[int, int]] = []
    while heap and len(chosen) < budget:
        negative, n, m = heapq.heappop(heap)
        if negative == np.inf:
            continue  # nobody is left for this item
        if load[m] < per_annotator:
            chosen.append((n, m))
            load[m] += 1
            count[n] += 1
            free[n, m] = -np.inf
        if count[n] < per_item:
            free[n, load >= per_annotator] = -np.inf
            best = int(free[n].argmax())
            heapq.heappush(heap, (-free[n, best], n, best))
    return chosen


def _entropy(probabilities: Floats) -> Floats:
    """Entropy in bits over the last axis."""
    safe = np.maximum(probabilities, 1e-300)
    return np.asarray(-(probabilities * np.log2(safe)).sum(axis=-1))
