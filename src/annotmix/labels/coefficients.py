"""How often labels of one item are the same, and how much more often than by chance; sparse, without names.

All of these draw two labels of an item from different annotators. A label of weight w is drawn w times as
often as one of weight 1, and a soft label is a distribution to draw its class from. The share of pairs that
are the same is averaged over items, each of which counts alike, and chance is what the classes' shares
predict for labels that have nothing to do with the item: κ = (share − chance) / (1 − chance).

`within` and `between` take masks of annotators, so that groups of annotators can be compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from annotmix._common.words import count
from annotmix.labels.names import Index, distinct

if TYPE_CHECKING:
    from annotmix.labels.annotations import Annotations

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: With a chance agreement so close to 1 there is only one class, and nothing can be corrected for chance.
ONE_CLASS = 1e-12


class Compared(NamedTuple):
    """How far two labels of an item agree.

    Attributes
    ----------
    n_items : int
        Items that have such a pair of labels.
    percent : float
        Share of the pairs that are the same, averaged over these items; nan without such items.
    kappa : float
        The same, corrected for chance: 0 by chance alone, 1 where all agree; nan where all labels are of one
        class.
    """

    n_items: int
    percent: float
    kappa: float


def item_agreement(a: Annotations) -> Floats:
    """Share of the pairs of labels of every item that are the same, shape (N,); nan without two labels."""
    item, _, votes = a.votes()
    weight = weights(a)
    by_pair = a.total(a.pair, len(pair_starts(a)))
    # all ordered pairs of labels, minus the pairs of an annotator with itself
    same = _sums(item, votes**2, a.n_items) - _sums(a.item, weight**2, a.n_items)
    own = _sums(a.item[pair_starts(a)], by_pair**2, a.n_items)
    several = a.labels_per_item > 1
    return _ratio(np.where(several, same, np.nan), a.total(a.item, a.n_items) ** 2 - own)


def percent_agreement(a: Annotations) -> float:
    """Chance that two labels of one item agree, averaged over the items with two labels or more."""
    return _mean(item_agreement(a))


def within(a: Annotations, members: Mask | None = None) -> Compared:
    """Agreement among some annotators; κ is Fleiss' κ, for any number of labels per item.

    Parameters
    ----------
    a : Annotations
    members : array of bool, shape (M,), optional
        The annotators; by default all.
    """
    kept = a if members is None else a.keep(members[a.annotator])
    share = item_agreement(kept)
    counted = ~np.isnan(share)
    p = _class_shares(kept, counted)
    return _compared(counted, share, float(p @ p))


def between(a: Annotations, one: Mask, other: Mask) -> Compared:
    """Agreement of the annotators of one group with those of another; Cohen's κ where each is one annotator.

    Parameters
    ----------
    a : Annotations
    one, other : array of bool, shape (M,)
        The annotators of the groups; nobody is in both.
    """
    if (one & other).any():
        both = count(int((one & other).sum()), "annotator is", "annotators are")
        raise ValueError(f"{both} in both groups; expected none.")
    votes = [_votes(part) for part in (a.keep(one[a.annotator]), a.keep(other[a.annotator]))]
    sums = [np.asarray(v.sum(axis=1)) for v in votes]
    counted = (sums[0] > 0) & (sums[1] > 0)
    same = np.asarray(votes[0].multiply(votes[1]).sum(axis=1))
    share = np.where(counted, _ratio(same, sums[0] * sums[1]), np.nan)
    p, q = (_mean_shares(v, total, counted) for v, total in zip(votes, sums, strict=True))
    return _compared(counted, share, float(p @ q))


def annotator_agreement(a: Annotations) -> tuple[Floats, Floats]:
    """Agreement of every annotator with the other annotators of the same items, shape (M,) each.

    Labels count by their weights.

    Returns
    -------
    percent, kappa : array, shape (M,)
        Mean share of the other labels that are the same; and that corrected for chance, by the classes'
        shares among the labels of the annotator and among those of the others. nan without others.
    """
    first = pair_starts(a)
    shape = (a.n_annotators, a.n_classes)
    total, own = a.total(a.item, a.n_items), a.total(a.pair, len(first))
    several = a.labels_per_item[a.item] > 1
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(several[first], own / (total[a.item[first]] - own), 0)
    # an annotator's weight in an item, spread over the votes of the others
    pairs = csr_array((rate, (a.annotator[first], a.item[first])), shape=(a.n_annotators, a.n_items))
    weight = np.where(several, weights(a), 0)
    mine = csr_array((weight, (a.annotator, a.label)), shape=shape)
    self = csr_array((weight * rate[a.pair], (a.annotator, a.label)), shape=shape)
    others = pairs @ _votes(a) - self
    n = np.asarray(mine.sum(axis=1))
    chance = _ratio(np.asarray(mine.multiply(others).sum(axis=1)), n**2)
    cells, cell = distinct(a.item * a.n_classes + a.label, a.n_items * a.n_classes)
    alike = a.total(cell, len(cells))[cell] - weights(a)
    share = alike * (rate / own)[a.pair]
    percent = _ratio(_sums(a.annotator, weight * share, a.n_annotators), n)
    return percent, _corrected(percent, chance)


class Pairs(NamedTuple):
    """Agreement of every annotator with every other one, shape (K, K) each; nan without items in common.

    Attributes
    ----------
    n_items : array of int
        Items that both have labelled; on the diagonal, all items of the annotator.
    percent : array
        Share of these items on which both gave the same label.
    kappa : array
        Cohen's κ; with `values`, weighted by the squared differences of the values.
    """

    n_items: Index
    percent: Floats
    kappa: Floats


def pair_agreement(a: Annotations, who: Index, values: Floats | None = None) -> Pairs:
    """Agreement of some annotators in pairs.

    Time and memory grow with the square of the number of annotators asked for, K. Every item in common
    counts alike: of a soft label only the distribution counts here.

    Parameters
    ----------
    a : Annotations
    who : array of int, shape (K,)
        The annotators, as positions.
    values : array, shape (C,), optional
        Values of the classes, for the weighted κ of ordered classes; by default classes differ or they
        do not.
    """
    place = np.full(a.n_annotators, -1)
    place[who] = np.arange(len(who))
    part = a.keep(place[a.annotator] >= 0)
    row, first, n = place[part.annotator], pair_starts(part), len(who)
    share = weights(part) / part.total(part.pair, len(first))[part.pair]

    def table(values: Floats, columns: Index, size: int) -> csr_array:
        return csr_array((values, (row, columns)), shape=(n, size))

    there = csr_array((np.ones(len(first)), (row[first], part.item[first])), shape=(n, a.n_items))
    both = (there @ there.T).toarray()
    cells, column = distinct(part.item * a.n_classes + part.label, a.n_items * a.n_classes)
    said = table(share, column, len(cells))
    percent = _ratio((said @ said.T).toarray(), both)
    if values is None:
        chance = np.zeros((n, n))
        for k in range(a.n_classes):
            chosen = np.where(part.label == k, share, 0)
            mine = _ratio((table(chosen, part.item, a.n_items) @ there.T).toarray(), both)
            chance += mine * mine.T
        kappa = _corrected(percent, chance)
    else:
        v = scaled(values)[part.label]
        mean, square = (table(share * power, part.item, a.n_items) for power in (v, v**2))
        means, squares = (_ratio((t @ there.T).toarray(), both) for t in (mean, square))
        observed = squares + squares.T - 2 * _ratio((mean @ mean.T).toarray(), both)
        kappa = _corrected(1 - observed, 1 - (squares + squares.T - 2 * means * means.T))
    return Pairs(both.astype(np.int64), percent, kappa)


# ---------------------------------------------------------------- parts


def weights(a: Annotations) -> Floats:
    """The weight of every label, shape (n_labels,)."""
    return np.ones(len(a)) if a.weight is None else a.weight


def pair_starts(a: Annotations) -> Index:
    """The first label of every pair (item, annotator); a soft label has several, shape (n_pairs,)."""
    return np.flatnonzero(np.diff(a.pair, prepend=-1))


def scaled(values: Floats) -> Floats:
    """Values around 0 with a range of 1, so that differences of squares stay exact."""
    return np.asarray(_ratio(values - values.mean(), np.array(np.ptp(values))) if len(values) else values)


def _votes(a: Annotations) -> csr_array:
    """Votes of every item for every class, shape (N, C), sparse."""
    item, label, votes = a.votes()
    return csr_array((votes.astype(np.float64), (item, label)), shape=(a.n_items, a.n_classes))


def _class_shares(a: Annotations, counted: Mask) -> Floats:
    """The share of every class among the labels of an item, averaged over the items counted, shape (C,)."""
    votes = _votes(a)
    return _mean_shares(votes, np.asarray(votes.sum(axis=1)), counted)


def _mean_shares(votes: csr_array, total: Floats, counted: Mask) -> Floats:
    rate = np.where(counted, _ratio(np.ones(len(total)), total), 0)
    return np.asarray(rate @ votes / max(counted.sum(), 1))


def _compared(counted: Mask, share: Floats, chance: float) -> Compared:
    percent = _mean(share)
    return Compared(int(counted.sum()), percent, float(_corrected(np.array(percent), np.array(chance))))


def _corrected(percent: Floats, chance: Floats) -> Floats:
    """Agreement corrected for chance; nan where there is one class."""
    return _ratio(percent - chance, np.where(1 - chance > ONE_CLASS, 1 - chance, np.nan))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _sums(index: Index, values: NDArray[Any], n: int) -> Floats:
    return np.asarray(np.bincount(index, weights=values, minlength=n), dtype=np.float64)


def _ratio(above: NDArray[Any], below: NDArray[Any]) -> Floats:
    """A quotient, nan where the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(below == 0, np.nan, above / below), dtype=np.float64)
