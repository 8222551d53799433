"""Confusion matrices of annotators by counting, shrunken as far as a crowd needs it.

With q_nc the probability that item n is of class c, annotator m has N_m[c, k] = Σ_{n: z_nm = k} q_nc labels k
for class c; a label of weight w counts w times. θ_m[c, k], the probability that m says k where c is true, is
built in three steps, each of which borrows from the one before:

    everybody, one accuracy a:  θ°[c, k] = a where k = c, (1 − a) / (C − 1) elsewhere
    everybody, by class:        θ̄[c, k]  = (Σ_m N_m[c, k] + κ_common θ°[c, k]) / (Σ_m N_m[c, ·] + κ_common)
    m's skill:                  θ̃_m is θ̄ with the odds of being right times o_m, other labels in proportion,
                                o_m = (r_m + κ_skill e_m) / (n_m − r_m + κ_skill (1 − e_m)) · (1 − e_m) / e_m
    m by class:                 θ_m[c, k] = (N_m[c, k] + κ_own θ̃_m[c, k]) / (N_m[c, ·] + κ_own)

where m is right in r_m of n_m labels, and would be in a share e_m under θ̄. An infinite κ skips a step: all
infinite, every label counts the same (a vote); κ_skill alone finite is one-coin Dawid–Skene; κ_own near zero
is Dawid–Skene. Class shares π are counted too, or equal.

Only one column of one matrix is ever needed for a label, so time and memory are O(labels × C).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from annotmix.labels.annotations import Annotations
from annotmix.labels.names import Index

Floats = NDArray[np.float64]

#: The smallest probability that is distinguished from 0.
TINY = 1e-12
#: Probabilities of being right are kept this far from 0 and 1 before odds are taken.
EDGE = 1e-4
#: Pseudo-labels of one annotator that are right, and wrong, before the accuracy of everybody is counted.
FIRST = 1.0
#: Labels × classes that are worked on at once, so that they fit into a processor's cache.
BLOCK = 2**15


class Shrinkage(NamedTuple):
    """Pseudo-labels κ of the three steps, and whether class shares are counted."""

    skill: float = np.inf
    common: float = np.inf
    own: float = np.inf
    shares: bool = False

    @property
    def alike(self) -> bool:
        """Whether all classes are treated alike: equally frequent, confused evenly."""
        return not self.shares and self.common == self.own == np.inf


class Labelled:
    """Labels as sparse matrices, for counting.

    Attributes
    ----------
    n_labels : array, shape (N,)
        Annotators who labelled each item.
    cells : array
        annotator · C + label of the cells that occur, ascending; `cell` is each label's place there.
    """

    def __init__(self, annotations: Annotations):
        a = self.annotations = annotations
        N, M, C, P = a.n_items, a.n_annotators, a.n_classes, len(a)
        weight = a.informative_weight
        self.weight: Floats = np.ones(P) if weight is None else weight
        self.soft = weight is not None
        self.n_labels: Index = a.labels_per_item
        self.labelled = np.bincount(a.item, self.weight, N) > 0
        self.cells, self.cell = np.unique(a.annotator * C + a.label, return_inverse=True)
        at = np.arange(P)
        #: items ← labels; cells ← items; annotators and labels ← cells
        self.by_item = csr_array((self.weight, (a.item, at)), shape=(N, P))
        self.by_cell = csr_array((self.weight, (self.cell, a.item)), shape=(len(self.cells), N))
        K = len(self.cells)
        self.annotator_of_cell, self.label_of_cell = np.divmod(self.cells, max(C, 1))
        ones, every = np.ones(K), np.arange(K)
        self.by_annotator = csr_array((ones, (self.annotator_of_cell, every)), shape=(M, K))
        self.by_label = csr_array((ones, (self.label_of_cell, every)), shape=(C, K))
        #: weight of all labels that the label's annotator gave the item
        self.own_weight: Floats = self.weight
        if self.soft:
            self.own_weight = np.bincount(a.pair, self.weight).astype(np.float64)[a.pair]

    def votes(self, prior: float = 0.5) -> Floats:
        """Shares of the votes, shape (N, C), beside `prior` votes spread over all classes."""
        a = self.annotations
        votes = np.bincount(a.item * a.n_classes + a.label, self.weight, a.n_items * a.n_classes)
        shares = votes.reshape(a.n_items, a.n_classes) + prior / a.n_classes
        return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float64)

    def find(self, annotator: Index, label: Index) -> Index:
        """Places of cells, -1 for those that do not occur; shape as `annotator` and `label`."""
        cell = annotator * self.annotations.n_classes + label
        if not len(self.cells):
            return np.full(len(cell), -1)
        at = np.minimum(np.searchsorted(self.cells, cell), len(self.cells) - 1)
        return np.where(self.cells[at] == cell, at, -1)

    def own_right(self, own: Floats) -> Floats:
        """Weight of the right ones among all labels that the label's annotator gave the item, shape (P,).

        `own` are class probabilities of the label's item, shape (P, C).
        """
        pair = self.annotations.pair
        right: Floats = own[np.arange(len(own)), self.annotations.label] * self.weight
        return np.bincount(pair, right).astype(np.float64)[pair] if self.soft else right

    def pair_sums(self, values: Floats) -> Floats:
        """Weighted sums over the labels that one annotator gave one item, for each of them; shape (P, C)."""
        weighted = values * self.weight[:, None]
        if not self.soft:
            return weighted
        pair = self.annotations.pair
        sums = np.zeros((pair[-1] + 1 if len(pair) else 0, values.shape[1]))
        np.add.at(sums, pair, weighted)
        return sums[pair]


class _Counts(NamedTuple):
    """What labels and their pairs (item, annotator) add to the counts of their annotators."""

    said: Floats  # (n, C), to the cell of the label
    total: Floats  # (n, C), to all labels
    right: Floats | float  # (n,), to the right ones
    weight: Floats | float  # (n,)


class Confusion:
    """Confusion matrices θ and class shares π, counted with class probabilities `q` of the items."""

    def __init__(self, labelled: Labelled, q: Floats, shrinkage: Shrinkage):
        C = q.shape[1]
        self.labelled, self.q, self.shrinkage = labelled, q, shrinkage
        self.said: Floats = labelled.by_cell @ q
        self.total: Floats = labelled.by_annotator @ self.said
        self.common = _common((labelled.by_label @ self.said).T, shrinkage.common)
        self.right_common = np.clip(np.diag(self.common), EDGE, 1 - EDGE)
        right = self.said[np.arange(len(self.said)), labelled.label_of_cell]
        self.right = np.bincount(labelled.annotator_of_cell, right, len(self.total))
        self.n, self.expected = self.total.sum(axis=1), self.total @ self.right_common
        counted = q[labelled.labelled].sum(axis=0) if shrinkage.shares else np.zeros(C)
        self.log_shares: Floats = np.log((counted + 1) / (counted.sum() + C))

    def log_likelihood(self, rows: Index | None = None) -> Floats:
        """log θ_m[c, z] of labels z and all classes c, counted without the label's own item; shape (n, C).

        `rows` are places of labels, by default of all.
        """
        a = self.labelled.annotations
        rows = np.arange(len(a)) if rows is None else rows
        result, size = np.empty((len(rows), a.n_classes)), max(BLOCK // a.n_classes, 1)
        right = self._own_right() if self.labelled.soft else None
        for start in range(0, len(rows), size):
            at = rows[start : start + size]
            own = self._own_counts(at, None if right is None else right[at])
            cell = self.labelled.cell[at]
            result[start : start + size] = self._columns(a.annotator[at], a.label[at], cell, own)
        return result

    def columns(
        self,
        annotator: Index,
        label: Index,
        own: Floats | None = None,
        weight: Floats | float = 0.0,
        own_weight: Floats | float = 0.0,
        own_right: Floats | float = 0.0,
    ) -> Floats:
        """log θ_m[c, k] of annotators m and labels k, shapes (n,), for every class c; shape (n, C).

        Labels with probabilities `own` of their item's classes, shape (n, C), are left out of the counts;
        they have `weight`, and together with other labels of the same annotator and item `own_weight`, of
        which `own_right` is right (`Labelled.own_right`).
        """
        counts = None
        if own is not None:
            said, total = (own * np.reshape(w, (-1, 1)) for w in (weight, own_weight))
            counts = _Counts(said, total, own_right, own_weight)
        return self._columns(annotator, label, self.labelled.find(annotator, label), counts)

    def matrices(self, annotators: Index) -> Floats:
        """θ of annotators, shape (n, C, C), indexed [annotator, c, k]."""
        C = len(self.common)
        log_theta = self.columns(np.repeat(annotators, C), np.tile(np.arange(C), len(annotators)))
        theta = np.exp(log_theta).reshape(len(annotators), C, C).transpose(0, 2, 1)
        return np.asarray(theta / theta.sum(axis=2, keepdims=True))

    def _own_right(self) -> Floats:
        return self.labelled.own_right(self.q[self.labelled.annotations.item])

    def _own_counts(self, at: Index, right: Floats | None) -> _Counts:
        """What the labels at some places add to the counts; `right` only for soft labels."""
        labelled, a = self.labelled, self.labelled.annotations
        own = np.take(self.q, a.item[at], axis=0)
        if right is None:
            return _Counts(own, own, own[np.arange(len(at)), a.label[at]], 1.0)
        weight, own_weight = labelled.weight[at], labelled.own_weight[at]
        return _Counts(own * weight[:, None], own * own_weight[:, None], right, own_weight)

    def _columns(self, annotator: Index, label: Index, cell: Index, own: _Counts | None) -> Floats:
        """`columns`, with the places of the cells, -1 for cells that do not occur."""
        kappa = self.shrinkage.own
        theta = self._skilled(annotator, label, own)
        if np.isfinite(kappa):
            said, total = self._said(cell), np.take(self.total, annotator, axis=0)
            if own is not None:
                said -= own.said
                total -= own.total
            theta *= kappa
            theta += np.maximum(said, 0, out=said)
            theta /= np.add(np.maximum(total, 0, out=total), kappa, out=total)
        return np.asarray(np.log(np.maximum(theta, TINY, out=theta), out=theta))

    def _said(self, cell: Index) -> Floats:
        """Counts of cells, shape (n, C)."""
        if not len(self.said):
            return np.zeros((len(cell), len(self.common)))
        said: Floats = np.take(self.said, cell, axis=0)
        said[cell < 0] = 0.0
        return said

    def _skilled(self, annotator: Index, label: Index, own: _Counts | None) -> Floats:
        """θ̃_m[c, k], shape (n, C): the common matrix, with the odds of being right that the annotator has."""
        kappa, right = self.shrinkage.skill, self.right_common
        theta: Floats = np.take(self.common.T, label, axis=0)
        if not np.isfinite(kappa):
            return theta
        n_right, n_labels, expected = self.right[annotator], self.n[annotator], self.expected[annotator]
        if own is not None:
            n_right = np.maximum(n_right - own.right, 0)
            n_labels = np.maximum(n_labels - own.weight, 0)
            expected = expected - own.total @ right
        share = np.divide(expected, n_labels, out=np.full(len(label), right.mean()), where=n_labels > EDGE)
        share = np.clip(share, EDGE, 1 - EDGE)
        odds = (n_right + kappa * share) / (np.maximum(n_labels - n_right, 0) + kappa * (1 - share))
        odds *= (1 - share) / share
        theta /= np.multiply.outer(odds, right) + (1 - right)
        theta[np.arange(len(label)), label] = odds * right[label] / (odds * right[label] + 1 - right[label])
        return theta


def _common(counts: Floats, kappa: float) -> Floats:
    """θ̄, shape (C, C), from the counts of all annotators [c, k]."""
    C = len(counts)
    accuracy = (np.trace(counts) + FIRST) / (counts.sum() + FIRST + FIRST / max(C - 1, 1))
    accuracy = np.clip(accuracy, 1 / C + EDGE, 1 - EDGE)
    even = np.full((C, C), (1 - accuracy) / max(C - 1, 1))
    np.fill_diagonal(even, accuracy)
    if not np.isfinite(kappa):
        return even
    return np.asarray((counts + kappa * even) / (counts.sum(axis=1, keepdims=True) + kappa))
