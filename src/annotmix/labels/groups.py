"""Groups of annotators who err together, and how much each of their labels counts.

Where annotators m and m' copy each other, or a common source, with the probability r_mm', a label of m about
an item that others of the group have labelled too counts

    w = 1 / (1 + Σ_{m'} r_mm'),   m' ≠ m in the group of m, with a label for the item,

Kish's design effect for pairs in place of one correlation for all. Ten exact copies count once, annotators
outside groups as ever. The pairs are found by `annotmix.labels.dependence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from annotmix.labels.names import Index

if TYPE_CHECKING:
    from annotmix.labels.annotations import Annotations

Floats = NDArray[np.float64]

#: Groups are used where they raise the likelihood of labels by so many standard errors.
SURE = 2.0


@dataclass(frozen=True, eq=False)
class Groups:
    """Annotators who err together.

    Attributes
    ----------
    group : array, shape (M,)
        Number of each annotator's group; annotators who err alone have a group each.
    first, second : array of int, shape (pairs,)
        Annotators of the pairs in one group that err together; each pair occurs once.
    excess : array, shape (pairs,)
        r of the pairs.
    """

    group: Index
    first: Index
    second: Index
    excess: Floats

    @classmethod
    def of_pairs(cls, n_annotators: int, first: Index, second: Index, excess: Floats) -> Groups:
        """Groups that are connected by pairs."""
        from scipy.sparse.csgraph import connected_components  # slow to import

        graph = csr_array((np.ones(len(first)), (first, second)), shape=(n_annotators, n_annotators))
        group = connected_components(graph, directed=False)[1].astype(np.int64)
        return cls(group, first, second, excess)

    @property
    def members(self) -> list[Index]:
        """The annotators of every group of two or more, the largest group first."""
        order = np.argsort(self.group, kind="stable")
        cuts = np.flatnonzero(np.diff(self.group[order])) + 1
        return sorted((m for m in np.split(order, cuts) if len(m) > 1), key=len, reverse=True)

    @property
    def closest(self) -> float:
        """The greatest mean r of the pairs of a group; 0 without groups."""
        of = self.group[self.first]
        return float((np.bincount(of, self.excess) / np.maximum(np.bincount(of), 1)).max(initial=0.0))

    def only(self, kept: NDArray[np.bool_]) -> Groups:
        """The groups of some annotators, a mask of shape (M,), who are numbered anew."""
        place = np.cumsum(kept) - 1
        pairs = kept[self.first] & kept[self.second]
        first, second = place[self.first[pairs]], place[self.second[pairs]]
        return Groups(self.group[kept], first, second, self.excess[pairs])

    def shares(self, annotations: Annotations) -> Floats:
        """w of the labels, shape (P,)."""
        a, M = annotations, len(self.group)
        shares = np.ones(len(a))
        grouped = np.zeros(M, dtype=bool)
        grouped[self.first] = grouped[self.second] = True
        at = np.flatnonzero(grouped[a.annotator])
        if not len(at):
            return shares
        cells, cell = np.unique(a.item[at] * M + a.annotator[at], return_inverse=True)
        item, annotator = np.divmod(cells, M)
        present = csr_array((np.ones(len(cells)), (item, annotator)), shape=(a.n_items, M))
        both = np.concatenate([self.first, self.second]), np.concatenate([self.second, self.first])
        pairs = csr_array((np.tile(self.excess, 2), both), shape=(M, M))
        company = csr_array(present @ pairs)
        company.sort_indices()
        rows = np.repeat(np.arange(a.n_items), np.diff(company.indptr))
        keys = rows * M + company.indices
        if len(keys):
            place = np.minimum(np.searchsorted(keys, cells), len(keys) - 1)
            others = np.where(keys[place] == cells, company.data[place], 0.0)
            shares[at] = 1 / (1 + others[cell])
        return shares

    def blocks(self, annotations: Annotations) -> Index:
        """Number of the pair (item, group) that a label belongs to, shape (P,)."""
        a = annotations
        key = a.item * len(self.group) + self.group[a.annotator]
        return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Dependence:
    """Pairs of annotators, and the groups of those who err together.

    Attributes
    ----------
    first, second : array of int, shape (pairs,)
        Annotators of the pairs with enough common items.
    common : array of int, shape (pairs,)
        Numbers of common items that were looked at.
    together, expected : array, shape (pairs,)
        How many of them both labelled wrongly, with the same label: as found, and as independent
        annotators would.
    excess, z : array, shape (pairs,)
        How far r exceeds r°, from 0 to 1, and its significance in standard deviations.
    groups : Groups
        Annotators who err together.
    rise : float
        How much more probable labels become, in standard errors, where groups count less; 0 without copies.
    """

    first: Index
    second: Index
    common: Index
    together: Floats
    expected: Floats
    excess: Floats
    z: Floats
    groups: Groups
    rise: float

    @property
    def used(self) -> bool:
        """Whether the labels of groups count less."""
        return bool(len(self.groups.first)) and self.rise > SURE

    @property
    def used_groups(self) -> Groups | None:
        """The groups, where their labels count less."""
        return self.groups if self.used else None
