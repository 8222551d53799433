"""Krippendorff's α and Fleiss' κ from sums over items, so that drawing items again costs no labels.

Every coefficient is a function of sums over the items that have two labels or more. One row of numbers per
item is all that the bootstrap needs: a replicate adds them up with the number of times that each item was
drawn. Of many items, random groups are drawn in place of single items, which changes the intervals by less
than the bootstrap's own randomness does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from annotmix.labels.coefficients import ONE_CLASS, Floats, item_agreement, pair_starts, scaled, weights
from annotmix.labels.names import Index, distinct

if TYPE_CHECKING:
    from annotmix.labels.annotations import Annotations

Level = Literal["nominal", "ordinal", "interval"]

#: With more items than this, as many random groups of items are drawn. A standard error estimated from G
#: groups is off by 1 / sqrt(2 G), 1 %; from a thousand replicates it is off by 2 % anyway.
MOST_GROUPS = 4096
#: Numbers of one array of the bootstrap that exist at a time.
AT_ONCE = 2**22


class Figures(NamedTuple):
    """Coefficients of B samples of items.

    Attributes
    ----------
    alpha, fleiss_kappa, percent : array, shape (B,)
    class_alpha : array, shape (B, C)
        α of every class against all others together.
    """

    alpha: Floats
    fleiss_kappa: Floats
    percent: Floats
    class_alpha: Floats


class ItemSums:
    """The numbers of all items that the coefficients are made of.

    α compares the differences between labels of one item with those between any two labels: α = 1 - Dₒ / Dₑ.
    In Dₒ an item counts by its number of labels (by their weight). κ and the percent agreement count every
    item alike. A soft label is a distribution to draw from; no label is compared with itself.

    Parameters
    ----------
    a : Annotations
    level : {"nominal", "ordinal", "interval"}
    values : array, shape (C,), optional
        Of ordinal and interval classes: their ranks or values.
    rng : Generator
        Puts items into groups.
    """

    def __init__(self, a: Annotations, level: Level, values: Floats | None, rng: np.random.Generator):
        a = a.keep(a.labels_per_item[a.item] > 1)
        self.level, self.n_classes = level, a.n_classes
        shares = item_agreement(a)
        chosen = np.flatnonzero(~np.isnan(shares))
        self.n_items, self.n_groups = len(chosen), min(len(chosen), MOST_GROUPS)
        group = np.zeros(a.n_items, dtype=np.int64)
        group[chosen] = np.arange(len(chosen))
        if len(chosen) > MOST_GROUPS:
            group[chosen] = rng.permutation(len(chosen)) % MOST_GROUPS
        first = pair_starts(a)
        by_pair = a.total(a.pair, len(first))
        item, label, votes = a.votes()
        total, whole = a.total(a.item, a.n_items), by_pair[a.pair]
        squares = np.bincount(a.item[first], by_pair**2, a.n_items)
        scale = np.ones(a.n_items)
        scale[chosen] = total[chosen] / (total[chosen] ** 2 - squares[chosen])

        # columns: items, share of equal pairs, squares of the labels' weights; then classes
        self.simple = self._sum(
            np.tile(group[chosen], 3),
            np.repeat(np.arange(3), len(chosen)),
            np.concatenate([np.ones(len(chosen)), shares[chosen], squares[chosen]]),
            3,
        )
        self.votes = self._sum(group[item], label, votes, self.n_classes)
        self.shares = self._sum(group[item], label, votes / total[item], self.n_classes)
        w = weights(a)
        inside = w * (whole - w)  # a soft label differs from itself; this is no disagreement
        self.own = self._sum(group[a.item], a.label, inside, self.n_classes)
        self.observed = self._sum(
            group[item], label, votes * (total[item] - votes) * scale[item], self.n_classes
        ) - self._sum(group[a.item], a.label, inside * scale[a.item], self.n_classes)
        alike = np.bincount(label, votes**2 * scale[item], self.n_classes)
        self.alike = alike - np.bincount(a.label, w**2 * scale[a.item], self.n_classes)
        self.values = np.zeros(0) if values is None else scaled(values)
        if level != "nominal":
            self._sum_pairs(a, group, scale)

    def _sum(self, group: Index, column: Index, values: Floats, n_columns: int) -> csr_array:
        shape = (self.n_groups, n_columns)
        return csr_array((np.asarray(values, dtype=np.float64), (group, column)), shape=shape)

    def _sum_pairs(self, a: Annotations, group: Index, scale: Floats) -> None:
        """Disagreement of every pair of classes that meet, as `low` and `high`: one column per pair."""
        C = self.n_classes
        item, label, votes = a.votes()
        row, code, product = _products(item, label, votes.astype(np.float64), C)
        own_pair, own_code, own_product = _products(a.pair, a.label, weights(a), C)
        own_row = a.item[pair_starts(a)[own_pair]]
        codes, column = distinct(np.concatenate([code, own_code]), C * C)
        self.low, self.high = np.divmod(codes, C)
        column, own_column = column[: len(code)], column[len(code) :]
        self.pairs_own = self._sum(group[own_row], own_column, own_product, len(codes))
        self.pairs_observed = self._sum(group[row], column, product * scale[row], len(codes)) - self._sum(
            group[own_row], own_column, own_product * scale[own_row], len(codes)
        )

    # ---------------------------------------------------------------- coefficients

    def figures(self, counts: Floats) -> Figures:
        """The coefficients of samples; `counts` says how often each group is in each, shape (B, G)."""
        n_items, same, squares = (counts @ self.simple).T
        n, observed, own = counts @ self.votes, counts @ self.observed, counts @ self.own
        total = n.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            percent = same / n_items
            shares = counts @ self.shares / n_items[:, None]
            chance = (shares**2).sum(axis=1)
            kappa = np.where(1 - chance > ONE_CLASS, (percent - chance) / (1 - chance), np.nan)
            pairs = (total**2 - squares)[:, None]
            by_class = _alpha(observed, n * (total[:, None] - n) - own, total[:, None], pairs)
            alpha = self._alpha(counts, n, total, pairs[:, 0], observed, own)
        return Figures(alpha, kappa, percent, by_class)

    def _alpha(
        self, counts: Floats, n: Floats, total: Floats, pairs: Floats, observed: Floats, own: Floats
    ) -> Floats:
        if self.level == "nominal":
            expected = total**2 - (n**2).sum(axis=1) - own.sum(axis=1)
            return _alpha(observed.sum(axis=1), expected, total, pairs)
        v = self._middles(n) / total[:, None] if self.level == "ordinal" else self.values[None, :]
        v = v - (n * v).sum(axis=1, keepdims=True) / total[:, None]
        square = 2 * (v[:, self.low] - v[:, self.high]) ** 2
        spread = 2 * total * (n * v**2).sum(axis=1) - (counts @ self.pairs_own * square).sum(axis=1)
        return _alpha((counts @ self.pairs_observed * square).sum(axis=1), spread, total, pairs)

    def _middles(self, n: Floats) -> Floats:
        """Number of labels below the middle one of every class, whose differences are the ordinal ones."""
        order = np.argsort(self.values, kind="stable")
        middles = np.empty_like(n)
        middles[:, order] = n[:, order].cumsum(axis=1) - n[:, order] / 2
        return middles

    def whole(self) -> Figures:
        """The coefficients of the items themselves, each array with one row."""
        return self.figures(np.ones((1, self.n_groups)))

    def bootstrap(self, n: int, rng: np.random.Generator) -> Figures:
        """The coefficients of n samples of as many items or groups, drawn with replacement."""
        parts = [self.figures(counts) for counts in self._draw(n, rng)]
        return Figures(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _draw(self, n: int, rng: np.random.Generator) -> Iterator[Floats]:
        G = self.n_groups
        columns = max(G, self.n_classes, len(self.low) if self.level != "nominal" else 0, 1)
        step = max(AT_ONCE // columns, 1)
        for start in range(0, n, step):
            rows = min(step, n - start)
            drawn = rng.integers(max(G, 1), size=(rows, G)) + G * np.arange(rows)[:, None]
            yield np.bincount(drawn.ravel(), minlength=rows * G).reshape(rows, G).astype(np.float64)

    def class_agreement(self) -> Floats:
        """Chance that another label of an item is of a class if one label is, shape (C,)."""
        differ = np.asarray(self.observed.sum(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.alike / (self.alike + differ))


def _alpha(observed: Floats, expected: Floats, total: Floats, pairs: Floats) -> Floats:
    """α from sums of differences; nan where all labels are of one class."""
    expected = expected / pairs
    return np.asarray(np.where(expected > ONE_CLASS, 1 - observed / total / expected, np.nan))


def _products(row: Index, label: Index, weight: Floats, n_classes: int) -> tuple[Index, Index, Floats]:
    """Row, pair of classes low · C + high, and product of weights for every two entries of a row.

    Entries are sorted by row and all entries of a row are of different classes.
    """
    at = np.arange(len(row))
    later = np.searchsorted(row, row, side="right") - at - 1
    one = np.repeat(at, later)
    other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
    low, high = np.minimum(label[one], label[other]), np.maximum(label[one], label[other])
    return row[one], low * n_classes + high, weight[one] * weight[other]
