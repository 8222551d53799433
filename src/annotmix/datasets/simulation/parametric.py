"""Annotators that are confusion matrices: row c holds the chances of each label for an item of class c.

Make some, and draw their labels with `simulate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotmix.labels.annotations import Annotations

Confusion = NDArray[np.float64]


class LocalExpert(NamedTuple):
    """An annotator who changes from `near` to `far` with the distance of an item from a place.

    Attributes
    ----------
    near, far : array, shape (C, C)
        Confusion matrices at the place, and far away from it.
    closeness : array, shape (n,)
        1 for an item at the place, 0 for one far away; P(label | item) mixes the two with it.
    """

    near: Confusion
    far: Confusion
    closeness: NDArray[np.float64]


def hammer(n_classes: int, accuracy: float | ArrayLike = 0.9) -> Confusion:
    """Right with the chance `accuracy` (one number, or one per class), every error as likely as any other.

    An accuracy below 1 / `n_classes` makes an adversary, who is wrong more often than by chance.
    """
    right = np.broadcast_to(np.asarray(accuracy, dtype=float), n_classes)
    if np.any((right < 0) | (right > 1)):
        raise ValueError(f"accuracy must lie between 0 and 1, found {accuracy!r}.")
    matrix = np.repeat((1 - right)[:, None] / (n_classes - 1), n_classes, axis=1)
    np.fill_diagonal(matrix, right)
    return matrix


def spammer(n_classes: int, always: int | None = None) -> Confusion:
    """Labels that ignore the item: any class by chance, or always the class `always`."""
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


def local_expert(
    X: ArrayLike, centre: ArrayLike, near: Confusion, far: Confusion, radius: float | None = None
) -> LocalExpert:
    """Knows the items around a place in feature space: labels by `near` there, by `far` far away.

    Parameters
    ----------
    X : array-like, shape (n, d)
        The items that are to be labelled.
    centre : array-like, shape (d,)
        The place, for example a row of X.
    near, far : array, shape (C, C)
        Confusion matrices, for example `hammer(C, 0.95)` and `spammer(C)`.
    radius : float, optional
        Distance at which the two count the same (closeness 2^−(distance / radius)²); by default the median
        distance of the items.
    """
    distance = np.linalg.norm(np.asarray(X, dtype=float) - np.asarray(centre, dtype=float), axis=1)
    half = float(np.median(distance)) if radius is None else radius
    if not half > 0:
        raise ValueError(f"radius must be positive, found {half!r}.")
    return LocalExpert(near, far, 2.0 ** -((distance / half) ** 2))


def simulate(
    y: ArrayLike,
    confusions: Mapping[Any, Confusion | LocalExpert],
    *,
    classes: Iterable[Any] | None = None,
    random_state: Any = None,
) -> Annotations:
    """A label of every annotator for every item.

    Parameters
    ----------
    y : array-like of int, shape (n,)
        True classes, as codes 0, …, C − 1.
    confusions : mapping of annotator to array, shape (C, C), or to LocalExpert
        P(label | true class) of every annotator, one row per true class.
    classes : iterable, optional
        Names of the C classes; by default 0, 1, 2, …
    random_state : int, numpy Generator or None
    """
    truth = np.asarray(y)
    chances = np.stack([_chances(confusion, truth) for confusion in confusions.values()], axis=1)  # (n, M, C)
    n_items, n_annotators, n_classes = chances.shape
    draws = np.random.default_rng(random_state).random((n_items, n_annotators, 1))
    # The last step is left out: a draw above the other sums is the last class, whatever the rounding.
    codes = (draws >= np.cumsum(chances, axis=2)[:, :, :-1]).sum(axis=2)
    return from_codes(codes, confusions, range(n_classes) if classes is None else classes)


def from_codes(codes: NDArray[np.int64], annotators: Iterable[Any], classes: Iterable[Any]) -> Annotations:
    """Labels of every item by every annotator, from codes of shape (n, M)."""
    item, annotator = np.indices(codes.shape).reshape(2, -1)
    labels = np.asarray(codes, dtype=np.int64).ravel()
    names = np.array(list(annotators), dtype=object)
    return Annotations(item, annotator, labels, np.arange(len(codes)), names, np.array(list(classes)))


def _chances(annotator: Confusion | LocalExpert, truth: NDArray[np.int64]) -> NDArray[np.float64]:
    """P(label | item) of one annotator, shape (n, C)."""
    if isinstance(annotator, LocalExpert):
        closeness = annotator.closeness[:, None]
        if len(closeness) != len(truth):
            raise ValueError(f"A local expert was made for {len(closeness)} items, y has {len(truth)}.")
        near, far = _chances(annotator.near, truth), _chances(annotator.far, truth)
        return closeness * near + (1 - closeness) * far
    matrix = np.asarray(annotator, dtype=float)
    if matrix.shape != (len(matrix), len(matrix)) or not np.allclose(matrix.sum(axis=1), 1):
        raise ValueError(
            f"A confusion matrix must be square and each of its rows sum to 1; found shape {matrix.shape}."
        )
    return matrix[truth]
