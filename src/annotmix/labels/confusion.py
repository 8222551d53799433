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


class Shrinkage(NamedTuple):
    """Pseudo-labels κ of the three steps, and whether class shares are counted."""

    skill: float = np.inf
    common: float = np.inf
    own: float = np.inf
    shares: bool = False


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
        #: items ← labels; cells, annotators and labels ← items
        self.by_item = csr_array((self.weight, (a.item, at)), shape=(N, P))
        self.by_cell = csr_array((self.weight, (self.cell, a.item)), shape=(len(self.cells), N))
        self.by_annotator = csr_array((self.weight, (a.annotator, a.item)), shape=(M, N))
        self.by_label = csr_array((self.weight, (a.label, a.item)), shape=(C, N))
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


class Confusion:
    """Confusion matrices θ and class shares π, counted with class probabilities `q` of the items."""

    def __init__(self, labelled: Labelled, q: Floats, shrinkage: Shrinkage):
        C = q.shape[1]
        self.labelled, self.q, self.shrinkage = labelled, q, shrinkage
        self.said, self.total = labelled.by_cell @ q, labelled.by_annotator @ q
        self.common = _common((labelled.by_label @ q).T, shrinkage.common)
        self.right_common = np.clip(np.diag(self.common), EDGE, 1 - EDGE)
        annotator, label = np.divmod(labelled.cells, C)
        right = self.said[np.arange(len(label)), label]
        self.right = np.bincount(annotator, right, len(self.total))
        self.n, self.expected = self.total.sum(axis=1), self.total @ self.right_common
        counted = q[labelled.labelled].sum(axis=0) if shrinkage.shares else np.zeros(C)
        self.log_shares: Floats = np.log((counted + 1) / (counted.sum() + C))

    def log_likelihood(self) -> Floats:
        """log θ_m[c, z] of every label z and class c, counted without the label's own item; shape (P, C)."""
        labelled, a = self.labelled, self.labelled.annotations
        own = self.q[a.item]
        parts = labelled.weight, labelled.own_weight, labelled.own_right(own)
        return self._columns(a.annotator, a.label, labelled.cell, own, *parts)

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
        cell = annotator * len(self.common) + label
        at = np.searchsorted(self.labelled.cells, cell)
        at[at == len(self.labelled.cells)] = 0
        at[self.labelled.cells[at] != cell] = -1
        return self._columns(annotator, label, at, own, weight, own_weight, own_right)

    def _columns(
        self,
        annotator: Index,
        label: Index,
        cell: Index,
        own: Floats | None,
        weight: Floats | float,
        own_weight: Floats | float,
        own_right: Floats | float,
    ) -> Floats:
        """`columns`, with the places of the cells, -1 for those that do not occur."""
        kappa = self.shrinkage.own
        all_own = 0.0 if own is None else own * np.reshape(own_weight, (-1, 1))
        theta = self._skilled(annotator, label, all_own, own_right, own_weight)
        if np.isfinite(kappa):
            said = self.said[cell]
            said[cell < 0] = 0.0
            said -= 0.0 if own is None else own * np.reshape(weight, (-1, 1))
            total = self.total[annotator] - all_own
            theta = (np.maximum(said, 0) + kappa * theta) / (np.maximum(total, 0) + kappa)
        return np.log(np.maximum(theta, TINY))

    def matrices(self, annotators: Index) -> Floats:
        """θ of annotators, shape (n, C, C), indexed [annotator, c, k]."""
        C = len(self.common)
        log_theta = self.columns(np.repeat(annotators, C), np.tile(np.arange(C), len(annotators)))
        theta = np.exp(log_theta).reshape(len(annotators), C, C).transpose(0, 2, 1)
        return np.asarray(theta / theta.sum(axis=2, keepdims=True))

    def _skilled(
        self,
        annotator: Index,
        label: Index,
        own: Floats | float,
        own_right: Floats | float,
        n: Floats | float,
    ) -> Floats:
        """θ̃_m[c, k], shape (n, C): the common matrix, with the odds of being right that the annotator has."""
        kappa, right = self.shrinkage.skill, self.right_common
        theta: Floats = self.common.T[label]
        if not np.isfinite(kappa):
            return theta
        n_right = np.maximum(self.right[annotator] - own_right, 0)
        n_labels = np.maximum(self.n[annotator] - n, 0)
        expected = self.expected[annotator] - (own @ right if isinstance(own, np.ndarray) else 0.0)
        share = np.divide(expected, n_labels, out=np.full(len(label), right.mean()), where=n_labels > EDGE)
        share = np.clip(share, EDGE, 1 - EDGE)
        odds = (n_right + kappa * share) / (np.maximum(n_labels - n_right, 0) + kappa * (1 - share))
        odds = (odds * (1 - share) / share)[:, None] * (right / (1 - right))
        theta = theta * (1 / (1 + odds) / (1 - right))
        at = np.arange(len(label))
        theta[at, label] = (odds / (1 + odds))[at, label]
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
