"""Simulated annotators, for demonstrations, tests and teaching.

An annotator here is a confusion matrix: row c holds the chances of each label for an item of class c. Make
some, stack them, draw labels with `simulate`, and keep a few labels an item with `thin`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotmix.annotations import Annotations

Confusion = NDArray[np.float64]


def hammer(n_classes: int, accuracy: float | ArrayLike = 0.9) -> Confusion:
    """Right with the chance `accuracy` (one number, or one a class), every error as likely as any other.

    An accuracy below 1 / `n_classes` makes an adversary, who is wrong more often than by chance.
    """
    right = np.broadcast_to(np.asarray(accuracy, dtype=float), n_classes)
    if np.any((right < 0) | (right > 1)):
        raise ValueError(f"accuracy must lie between 0 and 1, found {accuracy!r}.")
    matrix = np.repeat((1 - right)[:, None] / (n_classes - 1), n_classes, axis=1)
    np.fill_diagonal(matrix, right)
    return matrix


def spammer(n_classes: int, always: int | None = None) -> Confusion:
    """Labels without looking: any class by chance, or always the class `always`."""
    row = np.full(n_classes, 1 / n_classes) if always is None else np.eye(n_classes)[always]
    return np.tile(row, (n_classes, 1))


def specialist(
    n_classes: int, good: Iterable[int], accuracy: float = 0.95, elsewhere: float = 0.3
) -> Confusion:
    """Right with the chance `accuracy` on the classes `good`, with the chance `elsewhere` on the others."""
    return hammer(n_classes, np.where(np.isin(np.arange(n_classes), list(good)), accuracy, elsewhere))


def confuser(
    n_classes: int, pairs: Iterable[tuple[int, int]], chance: float = 0.5, accuracy: float = 0.95
) -> Confusion:
    """A hammer who takes the classes of a pair for each other with the chance `chance`."""
    matrix = hammer(n_classes, accuracy)
    for a, b in pairs:
        swapped = matrix[[b, a]]
        matrix[[a, b]] = (1 - chance) * matrix[[a, b]] + chance * swapped
    return matrix


def simulate(
    y: ArrayLike,
    confusions: Mapping[Any, Confusion],
    *,
    classes: Iterable[Any] | None = None,
    random_state: Any = None,
) -> Annotations:
    """A label of every annotator for every item.

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True classes, as codes 0, …, C − 1.
    confusions : mapping of annotator to array, shape (C, C)
        P(label | true class) of every annotator, a row a true class.
    classes : iterable, optional
        Names of the C classes; by default 0, 1, 2, …
    random_state : int, numpy Generator or None
    """
    truth, chances = np.asarray(y), np.stack(list(confusions.values()))  # (n,), (M, C, C)
    n_classes = chances.shape[-1]
    if chances.shape[1:] != (n_classes, n_classes) or not np.allclose(chances.sum(axis=2), 1):
        raise ValueError(f"Every row of a confusion matrix must sum to 1; found shape {chances.shape}.")
    draws = np.random.default_rng(random_state).random((len(truth), len(chances), 1))
    # The last step is left out: a draw above the other sums is the last class, whatever the rounding.
    steps = np.cumsum(chances, axis=2)[:, truth, :-1].swapaxes(0, 1)  # (n, M, C − 1)
    names = range(n_classes) if classes is None else classes
    return _from_codes((draws >= steps).sum(axis=2), confusions, names)


def thin(
    annotations: Annotations,
    per_item: tuple[int, int] = (3, 4),
    *,
    loads: ArrayLike | None = None,
    random_state: Any = None,
) -> Annotations:
    """Keep a few labels an item, from annotators of whom some work much and some little.

    Parameters
    ----------
    annotations : Annotations
    per_item : (int, int), default=(3, 4)
        Least and most labels of an item, drawn evenly; an item with fewer labels keeps all of them.
    loads : array-like, shape (n_annotators,), optional
        How much each annotator works, relative to the others; by default drawn, log-normal.
    random_state : int, numpy Generator or None
    """
    rng = np.random.default_rng(random_state)
    load = rng.lognormal(size=annotations.n_annotators) if loads is None else np.asarray(loads, dtype=float)
    if load.shape != (annotations.n_annotators,) or np.any(load <= 0):
        raise ValueError(f"loads must be {annotations.n_annotators} positive numbers, found {loads!r}.")
    # The first of exponential clocks that run at the rates `load` are a weighted draw without replacement.
    clock = rng.exponential(size=len(annotations)) / load[annotations.annotator]
    order = np.lexsort((clock, annotations.item))
    rank = np.arange(len(annotations)) - annotations.start[annotations.item]
    most = rng.integers(per_item[0], per_item[1], endpoint=True, size=annotations.n_items)
    kept = order[rank < most[annotations.item]]
    return Annotations(
        annotations.item[kept],
        annotations.annotator[kept],
        annotations.label[kept],
        annotations.items,
        annotations.annotators,
        annotations.classes,
    )


def _from_codes(codes: NDArray[np.int64], annotators: Iterable[Any], classes: Iterable[Any]) -> Annotations:
    """Labels of every item by every annotator, given as codes of shape (n, M)."""
    n_items, names = len(codes), list(classes)
    item, annotator = np.indices(codes.shape).reshape(2, -1)
    labels = np.asarray(codes, dtype=np.int64).ravel()
    return Annotations(
        item, annotator, labels, np.arange(n_items), np.array(list(annotators), dtype=object), np.array(names)
    )
