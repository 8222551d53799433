"""The two steps of EM for Dawid–Skene as sparse products; labels of some items at a time.

A *cell* is a pair (annotator m, label k) that occurs. Every cell has one row of C numbers, θ_m[·, k], so time
and memory are linear in labels × classes, whatever the number of annotators. Items are independent given θ:
`ItemLabels` holds the labels of all items or of one part of them, and counts of parts add up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from annotmix.labels.names import Index
from annotmix.labels.shrunken import row_max

Floats = NDArray[np.floating]

#: No item has a known class.
NO_GOLD = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
#: Pseudo-labels for every wrong class, relative to the right class (see `annotmix.dawid_skene`).
WRONG = 1e-30
#: The smallest probability whose logarithm is taken, in double precision.
TINY = 1e-300
#: From so many labels × classes on single precision is used, …
LARGE = 2**21
#: … unless a cell has more labels: in single precision the sum of so many is exact to a thousandth at worst.
MOST_SINGLE = 2**14


class Cells:
    """The cells of a crowd and their confusion matrices.

    Parameters
    ----------
    cell : array of int, shape (K,)
        annotator · C + label of the cells that occur, ascending.
    n_annotators, n_classes : int
    """

    def __init__(self, cell: Index, n_annotators: int, n_classes: int):
        self.cell, self.shape = cell, (n_annotators, n_classes, n_classes)
        self.annotator, self.label = np.divmod(cell, max(n_classes, 1))
        every = np.arange(len(cell))
        ones = np.ones(len(cell), dtype=np.float32)
        self._by_annotator = csr_array((ones, (self.annotator, every)), shape=(n_annotators, len(cell)))

    def log_confusion(self, counts: Floats, smoothing: float) -> Floats:
        """log θ_m[c, k] of the cells, shape (K, C), from their counts of the same shape and type."""
        theta = counts + counts.dtype.type(smoothing * WRONG)
        theta[np.arange(len(theta)), self.label] += smoothing * (1 - WRONG)
        total = np.maximum(self.totals(counts, smoothing), np.finfo(counts.dtype).tiny)
        theta /= np.take(total, self.annotator, axis=0)
        return floored_log(theta)

    def totals(self, counts: Floats, smoothing: float) -> Floats:
        """Labels of every annotator for every class with the pseudo-labels, shape (M, C)."""
        C = self.shape[1]
        return np.asarray(self._by_annotator @ counts + counts.dtype.type(smoothing * (1 + (C - 1) * WRONG)))

    def confusion(self, counts: Floats, smoothing: float) -> NDArray[np.float64]:
        """All confusion matrices, shape (M, C, C), indexed [annotator, class, label]."""
        C = self.shape[1]
        theta = np.zeros((self.shape[0] * C, C))
        theta[self.cell] = counts
        pseudo = smoothing * np.where(np.eye(C, dtype=bool), 1.0, WRONG)
        by_label = theta.reshape(self.shape) + pseudo
        by_label /= by_label.sum(axis=1, keepdims=True)
        return np.ascontiguousarray(by_label.transpose(0, 2, 1))

    def select(self, confusion: Floats) -> Floats:
        """log θ of the cells, shape (K, C), of matrices of shape (M, C, C) as `confusion` returns them."""
        return floored_log(confusion[self.annotator, :, self.label])


class ItemLabels:
    """Labels of items as a sparse matrix items × cells.

    Parameters
    ----------
    start : array of int, shape (n_items + 1,)
        Item n has the labels start[n] to start[n + 1] − 1.
    cell : array of int, shape (n_labels,)
        Place of each label's cell among the K cells.
    n_cells : int
    dtype : numpy type
        Single or double precision; see `precision`.
    weight : array of float, shape (n_labels,), optional
        How much each label counts.
    gold : tuple of arrays of int, optional
        Rows of items whose true classes are known, and these classes.
    """

    def __init__(
        self,
        start: Index,
        cell: Index | NDArray[np.int32],
        n_cells: int,
        dtype: type[np.floating],
        weight: Floats | None = None,
        gold: tuple[Index, Index] = NO_GOLD,
    ):
        self.gold, self.dtype = gold, dtype
        # short indices: half the memory to go through in every round
        short = np.int32 if max(len(cell), n_cells) < 2**31 else np.int64
        self._places = (cell.astype(short, copy=False), start.astype(short))
        self._shape = (len(start) - 1, n_cells)
        self.said = self._matrix(weight)
        self.known: NDArray[np.bool_] = self.said @ np.ones(n_cells, dtype) > 0
        self.known[gold[0]] = True

    def _matrix(self, weight: Floats | None) -> csr_array:
        data = np.ones(len(self._places[0]), self.dtype) if weight is None else weight.astype(self.dtype)
        return csr_array((data, *self._places), shape=self._shape)

    def vote_shares(self, cells: Cells, weight: Floats | None = None) -> Floats:
        """Where EM begins: shares of the votes, shape (n_items, C); by other weights if they are passed."""
        C = cells.shape[1]
        votes = (self.said if weight is None else self._matrix(weight)) @ np.eye(C, dtype=self.dtype)[
            cells.label
        ]
        total = votes.sum(axis=1, keepdims=True)
        votes /= np.where(total > 0, total, 1)
        votes[self.gold[0]] = np.eye(C)[self.gold[1]]
        return np.asarray(votes)

    def e_step(self, log_prior: Floats, log_theta: Floats) -> tuple[Floats, float]:
        """Probabilities q of the classes, shape (n_items, C), and the log-likelihood of all labels."""
        q = self.said @ log_theta
        q += log_prior
        item, label = self.gold
        gold_joint = q[item, label]
        q[item] = -np.inf
        q[item, label] = gold_joint
        top = row_max(q)
        q -= top[:, None]
        np.exp(q, out=q)
        total = q @ np.ones(q.shape[1], q.dtype)
        q /= total[:, None]
        return q, float(top.sum(dtype=np.float64) + np.log(total).sum(dtype=np.float64))

    def count(self, q: Floats) -> Floats:
        """Σ q of the labels of each cell, shape (K, C)."""
        return np.asarray(self.said.T @ q)

    def class_sums(self, q: Floats) -> NDArray[np.float64]:
        """Σ q over the items with labels or a known class, shape (C,)."""
        return np.asarray(q.sum(axis=0, where=self.known[:, None], dtype=np.float64))


def precision(n_labels: int, n_classes: int, most: int) -> type[np.floating]:
    """Single precision for many labels, unless a cell has very many of them (`most`)."""
    return np.float32 if n_labels * n_classes >= LARGE and most <= MOST_SINGLE else np.float64


def floored_log(probability: Floats) -> Floats:
    """Logarithm, in place; a tiny number stands for 0."""
    least = probability.dtype.type(max(TINY, float(np.finfo(probability.dtype).tiny)))
    np.maximum(probability, least, out=probability)
    return np.asarray(np.log(probability, out=probability))
