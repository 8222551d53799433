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

Only one column of one matrix is needed for a label, so time is O(labels × C). Memory is O(items × C +
annotators × C + C²), and C for every cell (annotator, label) that occurs more than once: labels are worked on
in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from annotmix.labels.annotations import Annotations
from annotmix.labels.groups import Groups
from annotmix.labels.names import Index

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: The smallest probability that is distinguished from 0.
TINY = 1e-12
#: Probabilities of being right are kept this far from 0 and 1 before odds are taken.
EDGE = 1e-4
#: Pseudo-labels of one annotator that are right, and wrong, before the accuracy of everybody is counted.
FIRST = 1.0
#: Labels × classes that are worked on at once, so that they fit into a processor's cache.
BLOCK = 2**15
#: Labels × classes that exist at once, where all labels are worked on.
PIECE = 2**20


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

    Parameters
    ----------
    annotations : Annotations
    groups : Groups, optional
        Annotators who err together; their labels are less evidence, and are left out together.

    Attributes
    ----------
    n_labels : array, shape (N,)
        Annotators who labelled each item; the effective number where annotators err together.
    evidence : array, shape (P,)
        How much each label counts for the class of its item: `weight`, times `share` within a group.
    block : array of int, shape (P,)
        Number of the pair (item, annotator), or (item, group), of each label, ascending by item.
    cells : array
        annotator · C + label of the cells that occur, ascending; `cell` is each label's place there.
    repeated : array
        Each cell's place among the cells with several labels, -1 for a cell with one label.
    """

    def __init__(self, annotations: Annotations, groups: Groups | None = None):
        a, self.groups = annotations, groups
        self.annotations = annotations
        N, M, C, P = a.n_items, a.n_annotators, a.n_classes, len(a)
        weight = a.informative_weight
        self.weight: Floats = np.ones(P) if weight is None else weight
        self.soft = weight is not None
        self.n_labels: Index | Floats = a.labels_per_item
        self.share: Floats = np.ones(P)
        self.block = a.pair
        if groups is not None:
            self.share, self.block = groups.shares(a), groups.blocks(a)
            self.n_labels = np.bincount(a.item, self.share / np.bincount(a.pair)[a.pair], N).astype(
                np.float64
            )
        self.evidence: Floats = self.weight * self.share
        self.labelled = np.bincount(a.item, self.weight, N) > 0
        self.cells, first, self.cell, size = np.unique(
            a.annotator * C + a.label, return_index=True, return_inverse=True, return_counts=True
        )
        self.repeated = np.where(size > 1, np.cumsum(size > 1) - 1, -1)
        #: the item of a cell's first label, and its weight
        self.first_item, self.first_weight = a.item[first], self.weight[first]
        annotator, label = np.divmod(self.cells, max(C, 1))
        several, single = size > 1, size == 1
        self.by_item = csr_array((self.evidence, (a.item, np.arange(P))), shape=(N, P))
        #: cells with several labels ← items; annotators and labels ← these cells, and ← items of other cells
        at = np.flatnonzero(several[self.cell])
        K = int(several.sum())
        self.by_cell = csr_array((self.weight[at], (self.repeated[self.cell[at]], a.item[at])), shape=(K, N))
        self.by_annotator = _Sums(annotator, several, single, self, M)
        self.by_label = _Sums(label, several, single, self, C)
        #: weight of all labels that the label's annotator gave the item
        self.own_weight: Floats = self.weight
        if self.soft:
            self.own_weight = np.bincount(a.pair, self.weight).astype(np.float64)[a.pair]

    def pieces(self) -> Iterator[tuple[slice, slice]]:
        """Consecutive items and their labels, few enough for numbers of shape (labels, C) to exist."""
        a = self.annotations
        most, n = max(PIECE // max(a.n_classes, 1), 1), 0
        while n < a.n_items:
            end = int(np.searchsorted(a.start, a.start[n] + most, side="right")) - 1
            end = min(max(end, n + 1), a.n_items)
            yield slice(n, end), slice(int(a.start[n]), int(a.start[end]))
            n = end

    def votes(self, prior: float = 0.5) -> Floats:
        """Shares of the votes, shape (N, C), beside `prior` votes spread over all classes."""
        a = self.annotations
        votes = np.bincount(a.item * a.n_classes + a.label, self.evidence, a.n_items * a.n_classes)
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

        `own` are the probabilities that the labels are right, shape (P,).
        """
        pair = self.annotations.pair
        right: Floats = own * self.weight
        return np.bincount(pair, right).astype(np.float64)[pair] if self.soft else right

    def item_sums(self, values: Floats, items: slice, labels: slice) -> Floats:
        """Weighted sums of values of the labels of each item, shapes (labels, C) and (items, C)."""
        by_item = self.by_item if len(values) == len(self.weight) else self.by_item[items, labels]
        return np.asarray(by_item @ values)

    def block_sums(self, values: Floats, labels: slice) -> Floats:
        """Weighted sums over the labels of the same block, for each label; values have shape (labels, C).

        A block are the labels that one annotator, or one group, gave an item. The labels belong to
        consecutive items.
        """
        weighted = values * self.evidence[labels, None]
        return weighted if not self.soft and self.groups is None else _sums_by(self.block[labels], weighted)

    def n_others(self, items: slice, labels: slice) -> Floats | Index:
        """Number of labels of its item outside the block of each label, shape (labels,)."""
        n_labels = self.n_labels[items][self.annotations.item[labels] - (items.start or 0)]
        if self.groups is None:
            return np.asarray(n_labels - 1, dtype=np.int64)
        pair = self.annotations.pair
        one: Floats = (self.share / np.bincount(pair)[pair])[labels]
        return np.asarray(n_labels - _sums_by(self.block[labels], one), dtype=np.float64)

    @property
    def blocks_per_item(self) -> Index:
        """Number of annotators, or of groups, with labels for each item, shape (N,)."""
        first = (
            np.flatnonzero(np.diff(self.block, prepend=-1))
            if self.groups is None
            else np.unique(self.block, return_index=True)[1]
        )
        return np.bincount(self.annotations.item[first], minlength=self.annotations.n_items)


def _sums_by(block: Index, values: Floats) -> Floats:
    """Sums of values over equal blocks, for each of them; blocks are numbers from a narrow range."""
    if not len(block):
        return values
    block = block - block.min()
    sums = np.zeros((block.max() + 1, *values.shape[1:]))
    np.add.at(sums, block, values)
    return np.asarray(sums[block])


class _Sums:
    """Sums of counts of cells by `group`, their annotator or label."""

    def __init__(self, group: Index, several: Bools, single: Bools, labelled: Labelled, n_groups: int):
        group_of = group[several]
        K, N = len(group_of), labelled.annotations.n_items
        self.several = csr_array((np.ones(K), (group_of, np.arange(K))), shape=(n_groups, K))
        where = (group[single], labelled.first_item[single])
        self.single = csr_array((labelled.first_weight[single], where), shape=(n_groups, N))

    def __call__(self, said: Floats, q: Floats) -> Floats:
        """Sums, shape (groups, C), of counts of the cells with several labels, and of all other labels."""
        sums = self.several @ said
        return np.asarray(sums + self.single @ q if self.single.nnz else sums)


class _Counts(NamedTuple):
    """What labels and their pairs (item, annotator) add to the counts of their annotators."""

    said: Floats  # (n, C), to the cell of the label
    total: Floats  # (n, C), to all labels
    right: Floats | float  # (n,), to the right ones
    weight: Floats | float  # (n,)


class Confusion:
    """Confusion matrices θ and class shares π, counted with class probabilities `q` of the items."""

    def __init__(self, labelled: Labelled, q: Floats, shrinkage: Shrinkage):
        self.labelled, self.q = labelled, q
        a = labelled.annotations
        self.said: Floats = labelled.by_cell @ q  # of cells with several labels
        self.total = labelled.by_annotator(self.said, q)
        self.by_label = labelled.by_label(self.said, q)
        self.right = np.bincount(a.annotator, labelled.weight * q[a.item, a.label], a.n_annotators)
        self.n = self.total.sum(axis=1)
        self.counted: Floats = q[labelled.labelled].sum(axis=0)
        self._shrink(shrinkage)

    def _shrink(self, shrinkage: Shrinkage) -> None:
        self.shrinkage = shrinkage
        #: θ̄ by label, [k, c]
        self.common_by_label = _common(self.by_label, shrinkage.common)
        self.right_common = np.clip(np.diag(self.common_by_label), EDGE, 1 - EDGE)
        self.expected = self.total @ self.right_common
        counted = self.counted if shrinkage.shares else np.zeros_like(self.counted)
        self.log_shares: Floats = np.log((counted + 1) / (counted.sum() + len(counted)))

    def shrunken_by(self, shrinkage: Shrinkage) -> Confusion:
        """The same counts with another shrinkage."""
        other = copy(self)
        other._shrink(shrinkage)
        return other

    @property
    def common(self) -> Floats:
        """θ̄, shape (C, C), indexed [c, k]."""
        return self.common_by_label.T

    def log_likelihood(self, rows: Index | slice = slice(None)) -> Floats:
        """log θ_m[c, z] of labels z and all classes c, counted without the label's own item; shape (n, C).

        `rows` are places of labels, by default of all.
        """
        a = self.labelled.annotations
        at = np.arange(len(a))[rows]
        result, size = np.empty((len(at), a.n_classes)), max(BLOCK // a.n_classes, 1)
        right = self._own_right if self.labelled.soft else None
        alike = self.shrinkage.skill == self.shrinkage.own == np.inf  # an annotator's counts do not matter
        for start in range(0, len(at), size):
            some = at[start : start + size]
            own = None if alike else self._own_counts(some, None if right is None else right[some])
            cell = self.labelled.cell[some]
            # without its item, a cell with one label is empty
            cell = np.where(self.labelled.repeated[cell] < 0, -1, cell)
            result[start : start + size] = self._columns(a.annotator[some], a.label[some], cell, own)
        return result

    def item_sums(self, factors: Floats | None = None) -> Floats:
        """Σ w log θ_m[c, z] over the labels of every item, shape (N, C); see `log_likelihood`.

        `factors`, shape (M,), multiply the evidence of annotators.
        """
        labelled, a = self.labelled, self.labelled.annotations
        sums = np.empty((a.n_items, a.n_classes))
        for items, labels in labelled.pieces():
            said = self.log_likelihood(labels)
            if factors is not None:
                said *= factors[a.annotator[labels], None]
            sums[items] = labelled.item_sums(said, items, labels)
        return sums

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

    def diagonals(self, annotators: Index) -> Floats:
        """θ_m[c, c] of annotators, shape (n, C), without their matrices."""
        labelled, a, kappa = self.labelled, self.labelled.annotations, self.shrinkage.own
        theta = np.tile(np.diag(self.common_by_label), (len(annotators), 1))
        if np.isfinite(self.shrinkage.skill):
            odds = np.multiply.outer(self._odds(annotators, None), self.right_common)
            theta = odds / (odds + 1 - self.right_common)
        if np.isfinite(kappa):
            right = np.bincount(labelled.cell, labelled.weight * self.q[a.item, a.label], len(labelled.cells))
            said = csr_array((right, np.divmod(labelled.cells, max(a.n_classes, 1))), shape=self.total.shape)
            theta = (said[annotators].toarray() + kappa * theta) / (self.total[annotators] + kappa)
        return np.asarray(np.maximum(theta, TINY))

    @cached_property
    def _own_right(self) -> Floats:
        a = self.labelled.annotations
        return self.labelled.own_right(self.q[a.item, a.label])

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
            total = np.take(self.total, annotator, axis=0)
            if own is not None:
                total -= own.total
            theta *= kappa
            if (cell >= 0).any():
                said = self.counts(cell)
                if own is not None:
                    said -= own.said
                theta += np.maximum(said, 0, out=said)
            theta /= np.add(np.maximum(total, 0, out=total), kappa, out=total)
        return np.asarray(np.log(np.maximum(theta, TINY, out=theta), out=theta))

    def counts(self, cell: Index) -> Floats:
        """N_m[·, k] of cells by their places in `Labelled.cells`, shape (n, C); 0 for place -1."""
        labelled = self.labelled
        if not len(labelled.cells):
            return np.zeros((len(cell), len(self.common)))
        several = labelled.repeated[cell]
        single = several < 0
        if not single.any():
            said: Floats = np.take(self.said, several, axis=0)
        else:
            said = np.take(self.q, labelled.first_item[cell], axis=0)
            said *= labelled.first_weight[cell, None]
            said[~single] = self.said[several[~single]]
        said[cell < 0] = 0.0
        return said

    def _skilled(self, annotator: Index, label: Index, own: _Counts | None) -> Floats:
        """θ̃_m[c, k], shape (n, C): the common matrix, with the odds of being right that the annotator has."""
        kappa, right = self.shrinkage.skill, self.right_common
        theta: Floats = np.take(self.common_by_label, label, axis=0)
        if not np.isfinite(kappa):
            return theta
        odds = self._odds(annotator, own)
        theta /= np.multiply.outer(odds, right) + (1 - right)
        theta[np.arange(len(label)), label] = odds * right[label] / (odds * right[label] + 1 - right[label])
        return theta

    def _odds(self, annotator: Index, own: _Counts | None) -> Floats:
        """o_m, shape (n,)."""
        kappa, right = self.shrinkage.skill, self.right_common
        n_right, n_labels, expected = self.right[annotator], self.n[annotator], self.expected[annotator]
        if own is not None:
            n_right = np.maximum(n_right - own.right, 0)
            n_labels = np.maximum(n_labels - own.weight, 0)
            expected = expected - own.total @ right
        usual = np.full(len(annotator), right.mean())
        share = np.clip(np.divide(expected, n_labels, out=usual, where=n_labels > EDGE), EDGE, 1 - EDGE)
        odds = (n_right + kappa * share) / (np.maximum(n_labels - n_right, 0) + kappa * (1 - share))
        return np.asarray(odds * (1 - share) / share)


def _common(counts: Floats, kappa: float) -> Floats:
    """θ̄ from the counts of all annotators, both shape (C, C) and indexed [k, c]."""
    C = len(counts)
    accuracy = (np.trace(counts) + FIRST) / (counts.sum() + FIRST + FIRST / max(C - 1, 1))
    accuracy = np.clip(accuracy, 1 / C + EDGE, 1 - EDGE)
    even = np.full((C, C), (1 - accuracy) / max(C - 1, 1))
    np.fill_diagonal(even, accuracy)
    if not np.isfinite(kappa):
        return even
    return np.asarray((counts + kappa * even) / (counts.sum(axis=0) + kappa))
