"""Confusion matrices of the annotators of a run: whole, or with many classes their largest entries.

A matrix has C² entries, and a few labels say something about few of them. Where all matrices together have
more than `MOST` entries, those on the diagonal are kept, and the largest confusions among the labels that the
annotator gave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from annotmix.labels.confusion import BLOCK, Confusion
from annotmix.labels.names import Index

Floats = NDArray[np.float64]

#: Entries of all matrices together; above, only the diagonals and the largest confusions are kept.
MOST = 1_000_000
#: Confusions per annotator that are kept in that case.
LARGEST = 24


@dataclass(frozen=True, eq=False)
class ConfusionMatrices:
    """P(label k | true class c) of M annotators.

    Attributes
    ----------
    whole : array, shape (M, C, C), optional
        All entries, indexed [annotator, c, k]. None where these are too many; then:
    diagonal : array, shape (M, C)
        The chances of a right label.
    cell, share : arrays, shape (M, K)
        The largest other entries: their places c · C + k, and the chances. 0 fills missing ones up.
    """

    whole: Floats | None
    diagonal: Floats
    cell: Index
    share: Floats

    @classmethod
    def of(cls, whole: Floats) -> ConfusionMatrices:
        """Those of whole matrices, shape (M, C, C), all entries or the largest."""
        M, C = whole.shape[:2]
        diagonal = np.diagonal(whole, axis1=1, axis2=2).copy()
        if whole.size <= MOST:
            return cls(whole, diagonal, np.zeros((M, 0), np.int64), np.zeros((M, 0)))
        flat = np.where(np.eye(C, dtype=bool), 0.0, np.nan_to_num(whole)).reshape(M, C * C)
        k = min(LARGEST, flat.shape[1] - 1)
        cell = np.argpartition(-flat, k, axis=1)[:, :k]
        return cls(None, diagonal, cell, np.take_along_axis(flat, cell, axis=1))

    @classmethod
    def counted(cls, confusion: Confusion, annotators: Index) -> ConfusionMatrices:
        """Those of annotators, shape (M,), by their labels."""
        C = confusion.labelled.annotations.n_classes
        if len(annotators) * C**2 <= MOST:
            return cls.of(confusion.matrices(annotators))
        diagonal, cell, share = _largest(confusion)
        return cls(None, diagonal[annotators], cell[annotators], share[annotators])

    @classmethod
    def from_array(cls, array: Floats, n_classes: int) -> ConfusionMatrices:
        """The inverse of `to_array`; refuses an array that it cannot have made."""
        C = n_classes
        if array.dtype.kind == "f" and array.shape[1:] == (C, C):
            return cls.of(array)
        K, odd = divmod(array.shape[1] - C, 2) if array.ndim == 2 else (-1, 0)
        if array.dtype.kind != "f" or K < 0 or odd:
            raise ValueError(
                f"confusion.npy holds {array.dtype} of shape {array.shape}, expected floats for {C} classes"
            )
        diagonal, cell, share = np.split(array, [C, C + K], axis=1)
        if not ((cell >= 0) & (cell < C**2) & (cell == np.floor(cell))).all():
            raise ValueError(f"confusion.npy names entries that matrices of {C} classes do not have")
        return cls(None, diagonal, cell.astype(np.int64), share)

    def to_array(self) -> Floats:
        """All numbers in one array: whole matrices, or one row (diagonal, cell, share) per annotator."""
        return np.hstack([self.diagonal, self.cell, self.share]) if self.whole is None else self.whole

    def take(self, rows: Index) -> ConfusionMatrices:
        """Those of some of the annotators."""
        whole = None if self.whole is None else self.whole[rows]
        return ConfusionMatrices(whole, self.diagonal[rows], self.cell[rows], self.share[rows])


def frequent_confusions(confusion: Confusion) -> tuple[Index, Index, Floats]:
    """The class c and the label k ≠ c of every annotator with the most expected labels, and their number."""
    labelled = confusion.labelled
    a, C = labelled.annotations, labelled.annotations.n_classes
    annotator, label = np.divmod(labelled.cells, max(C, 1))
    true, count = np.zeros(len(label), np.int64), np.zeros(len(label))
    for piece in _pieces(len(label), C):
        said = confusion.counts(np.arange(piece.start, piece.stop))
        said[np.arange(len(said)), label[piece]] = -1.0
        true[piece] = said.argmax(axis=1)
        count[piece] = said.max(axis=1)
    count[true == label] = 0.0  # one class alone
    first = np.lexsort((true * C + label, -count, annotator))
    first = first[np.diff(annotator[first], prepend=-1) > 0]
    who, M = annotator[first], a.n_annotators
    most_true, most_label, most = np.zeros(M, np.int64), np.zeros(M, np.int64), np.zeros(M)
    most_true[who], most_label[who], most[who] = true[first], label[first], count[first]
    return most_true, most_label, most


def entries(confusion: Confusion, annotator: Index, true: Index, label: Index) -> Floats:
    """P(label | true class) of annotators, all shapes (n,)."""
    result = np.empty(len(annotator))
    for piece in _pieces(len(annotator), confusion.labelled.annotations.n_classes):
        columns = confusion.columns(annotator[piece], label[piece])
        result[piece] = columns[np.arange(len(columns)), true[piece]]
    return np.exp(result)


def _largest(confusion: Confusion) -> tuple[Floats, Index, Floats]:
    """`diagonal`, `cell` and `share` of all annotators."""
    labelled = confusion.labelled
    M, C = labelled.annotations.n_annotators, labelled.annotations.n_classes
    annotator, label = np.divmod(labelled.cells, C)
    start = np.searchsorted(annotator, np.arange(M + 1))
    cell, share = np.zeros((M, LARGEST), np.int64), np.zeros((M, LARGEST))
    for m in range(M):
        own = label[start[m] : start[m + 1]]
        theta = np.exp(confusion.columns(np.full(len(own), m), own))  # [k, c]
        theta[np.arange(len(own)), own] = 0.0
        n = min(LARGEST, theta.size)
        top = np.argpartition(-theta, n - 1, axis=None)[:n] if n else np.zeros(0, np.int64)
        k, c = np.divmod(top, C)
        cell[m, :n], share[m, :n] = c * C + own[k], theta.flat[top]
    return confusion.diagonals(np.arange(M)), cell, share


def _pieces(n: int, n_classes: int) -> list[slice]:
    """Pieces of n rows of C numbers each."""
    step = max(BLOCK // max(n_classes, 1), 1)
    return [slice(first, min(first + step, n)) for first in range(0, n, step)]
