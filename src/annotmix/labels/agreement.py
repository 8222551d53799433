"""`annotmix.agreement`: how far annotators agree, all together, by class, one by one and in pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
import pandas as pd

from annotmix._common.seeds import seed_of
from annotmix._common.words import some
from annotmix.labels import display
from annotmix.labels.alpha import ItemSums, Level
from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import Floats, annotator_agreement, pair_agreement
from annotmix.labels.forms import labels_alone
from annotmix.labels.named import index_of, positions
from annotmix.labels.names import Names, locate
from annotmix.labels.posterior import COVERAGE, accuracy_interval

#: Krippendorff's customary bounds of α.
RELIABLE, TENTATIVE = 0.8, 0.667
#: Annotators in a matrix of pairs, where nobody is named: those with the most labels.
MOST_IN_PAIRS = 50


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far annotators agree; the result of `agreement`.

    Attributes
    ----------
    annotations : Annotations
        The labels.
    level : {"nominal", "ordinal", "interval"}
    n_items : int
        Items with labels of two annotators or more; the others say nothing about agreement.
    coefficients : DataFrame, indexed by "alpha", "fleiss_kappa", "percent"
        `value`, and the bounds `low` and `high` of its 95 % interval.
    classes : DataFrame, one row per class, the least reliable first
        `share` of the labels; `agreement`, the chance that another label of an item is this class if one is;
        `alpha` of this class against all others together, with `low` and `high`.
    values : array, shape (C,), optional
        Values of ordered classes: their positions in the order, or their numbers.
    """

    annotations: Annotations
    level: Level
    n_items: int
    coefficients: pd.DataFrame
    classes: pd.DataFrame
    values: Floats | None = None

    @property
    def alpha(self) -> float:
        """Krippendorff's α: 1 where all agree, 0 by chance alone; nan where all labels are of one class."""
        return self._value("alpha")

    @property
    def alpha_interval(self) -> tuple[float, float]:
        """The 95 % interval of α."""
        low, high = self.coefficients.loc["alpha", ["low", "high"]]
        return float(low), float(high)

    @property
    def fleiss_kappa(self) -> float:
        """Fleiss' κ of unordered classes, for any number of labels per item."""
        return self._value("fleiss_kappa")

    @property
    def percent(self) -> float:
        """Chance that two labels of one item are the same, averaged over items; not corrected for chance."""
        return self._value("percent")

    def _value(self, name: str) -> float:
        return float(self.coefficients.at[name, "value"])

    @cached_property
    def annotators(self) -> pd.DataFrame:
        """One row per annotator with labels that others can agree with, least agreement first.

        `agreement` is the mean share of the other labels of the same items that are the same, `low` and
        `high` its 95 % interval, and `kappa` the agreement corrected for chance; `n_items` counts the items
        that others have labelled too. The upper end of the interval gives the order, so that nobody is
        last by a handful of labels.
        """
        a = self.annotations
        share, kappa = annotator_agreement(a)
        shared = a.keep(a.labels_per_item[a.item] > 1).labels_per_annotator
        _, low, high = accuracy_interval(shared, np.nan_to_num(share) * shared, 0.0)
        columns = {"agreement": share, "low": low, "high": high, "kappa": kappa, "n_items": shared}
        table = pd.DataFrame(columns, index=index_of(a.annotators, "annotator"))
        return table[shared > 0].sort_values("high", kind="stable")

    def pairs(self, annotators: Iterable[Any] | None = None) -> pd.DataFrame:
        """One row per pair of annotators with items in common, least agreement first.

        Parameters
        ----------
        annotators : iterable, optional
            Their names; by default the 50 with the most labels. Time and memory grow with the square of
            their number.

        Returns
        -------
        DataFrame
            `annotator`, `other`, `n_items` that both have labelled, `agreement`, the share of these with the
            same label, and `kappa`: Cohen's κ, for ordered classes weighted by squared differences.
        """
        who = self._who(annotators)
        found = pair_agreement(self.annotations, who, self.values)
        one, other = np.nonzero(np.triu(found.n_items, 1))
        names = self.annotations.annotators[who]
        columns = {
            "annotator": names[one],
            "other": names[other],
            "n_items": found.n_items[one, other],
            "agreement": found.percent[one, other],
            "kappa": found.kappa[one, other],
        }
        return pd.DataFrame(columns).sort_values("kappa", kind="stable", ignore_index=True)

    def matrix(self, measure: str = "kappa", annotators: Iterable[Any] | None = None) -> pd.DataFrame:
        """A matrix of pairs: one row and one column per annotator, nan without items in common.

        Parameters
        ----------
        measure : {"kappa", "agreement", "n_items"}, default="kappa"
        annotators : iterable, optional
            As for `pairs`.
        """
        if measure not in ("kappa", "agreement", "n_items"):
            raise ValueError(f'measure must be "kappa", "agreement" or "n_items", found {measure!r}.')
        who = self._who(annotators)
        found = pair_agreement(self.annotations, who, self.values)
        table = {"kappa": found.kappa, "agreement": found.percent, "n_items": found.n_items}[measure]
        names = self.annotations.annotators[who]
        return pd.DataFrame(table, index=index_of(names, "annotator"), columns=index_of(names, "other"))

    def _who(self, annotators: Iterable[Any] | None) -> Any:
        a = self.annotations
        if annotators is not None:
            return positions(a.annotators, list(annotators), "annotators:")
        most = np.argsort(-a.labels_per_annotator, kind="stable")[:MOST_IN_PAIRS]
        return np.sort(most[a.labels_per_annotator[most] > 0])

    @property
    def verdict(self) -> str:
        """What is usual for such an α, in a sentence."""
        return usual(self.alpha, *self.alpha_interval)

    def __repr__(self) -> str:
        return f"Agreement({self._summary})"

    def _repr_html_(self) -> str:
        a = self.annotations
        return display.html(
            "Agreement",
            f"{self._summary}. {self.verdict}",
            (self.coefficients, len(self.coefficients), "coefficients"),
            (self.classes, a.n_classes, "classes"),
            (self.annotators, len(self.annotators), "annotators"),
        )

    @property
    def _summary(self) -> str:
        low, high = self.alpha_interval
        interval = "" if np.isnan(low) else f"{low:.3f} to {high:.3f}, "
        return (
            f"alpha {self.alpha:.3f} ({interval}{self.level}), Fleiss' kappa "
            f"{self.fleiss_kappa:.3f}, {self.percent:.1%} of pairs agree; {self.n_items} items with two "
            "labels or more"
        )


def agreement(
    labels: Any,
    *,
    level: Level = "nominal",
    order: Iterable[Any] | None = None,
    n_bootstrap: int = 1000,
    random_state: Any = 0,
) -> Agreement:
    """How far the annotators agree, with 95 % intervals; missing labels are no problem.

    Items with a single label say nothing about agreement and are left out. A label of weight w counts as w
    labels, and a soft label is a distribution to draw from; multiplying all weights by one number changes
    nothing.

    Parameters
    ----------
    labels : Annotations, long table, label matrix or soft labels
        As `fit` takes them.
    level : {"nominal", "ordinal", "interval"}, default="nominal"
        Whether classes only differ, have an order, or are numbers with distances. It decides about α and the
        κ of pairs; percent agreement, Fleiss' κ and the tables of classes and annotators take classes that
        only differ.
    order : iterable, optional
        The classes from the least to the greatest, for "ordinal" and "interval" (then with equal distances).
        By default names that are numbers are in the order of these numbers.
    n_bootstrap : int, default=1000
        Samples of items with replacement, for the intervals. Of more than 4096 items, 4096 random groups of
        items are drawn in place of single items. 0 leaves the intervals out.
    random_state : int, Generator or None, default=0
        Draws the samples.

    Returns
    -------
    Agreement
        With `alpha`, `fleiss_kappa`, `percent`, `coefficients` and their intervals, `classes`, `annotators`,
        `pairs` and `matrix`.

    Examples
    --------
    >>> result = agreement([["cat", "cat", "dog"], ["dog", "dog", "dog"], ["cat", "cat", None]])
    >>> round(result.alpha, 3), round(result.percent, 3)
    (0.562, 0.778)
    """
    if level not in get_args(Level):
        raise ValueError(f'level must be "nominal", "ordinal" or "interval", found {level!r}.')
    if n_bootstrap < 0:
        raise ValueError(f"n_bootstrap must be 0 or more, found {n_bootstrap}.")
    annotations = labels_alone(labels)
    values = _values(annotations.classes, level, order)
    rng = np.random.default_rng(seed_of(random_state))
    sums = ItemSums(annotations, level, values, rng)
    figures = sums.whole()
    if n_bootstrap and sums.n_items > 1:
        drawn = sums.bootstrap(n_bootstrap, rng)
    else:
        drawn = type(figures)(*(np.full_like(own, np.nan) for own in figures))
    overall = ["alpha", "fleiss_kappa", "percent"]
    rows = [[getattr(figures, name)[0], *_bounds(getattr(drawn, name)[:, None])[:, 0]] for name in overall]
    low, high = _bounds(drawn.class_alpha)
    votes = annotations.total(annotations.label, annotations.n_classes)
    classes = {
        "share": votes / votes.sum() if len(annotations) else votes * np.nan,
        "agreement": sums.class_agreement(),
        "alpha": figures.class_alpha[0],
        "low": low,
        "high": high,
    }
    table = pd.DataFrame(classes, index=index_of(annotations.classes, "class"))
    return Agreement(
        annotations,
        level,
        sums.n_items,
        pd.DataFrame(rows, index=pd.Index(overall, name="coefficient"), columns=["value", "low", "high"]),
        table.sort_values("alpha", kind="stable"),
        values,
    )


def usual(alpha: float, low: float, high: float) -> str:
    """A sentence about α and its interval by Krippendorff's customary bounds, .800 and .667."""
    if np.isnan(alpha):
        return "There is no α: no item has two labels, or all labels are of one class."
    if alpha >= RELIABLE:
        words, bound = "are reliable", RELIABLE
    elif alpha >= TENTATIVE:
        words, bound = "allow tentative conclusions only", TENTATIVE if low < TENTATIVE else RELIABLE
    else:
        words, bound = "are not reliable enough to draw conclusions from single ones", TENTATIVE
    unsure = f"; the interval includes {bound:.3f}".replace("0.", ".") if low < bound <= high else ""
    return (
        "By Krippendorff's custom, labels are reliable from .800 on and allow tentative conclusions from "
        f".667 on: these {words}{unsure}."
    )


def _values(classes: Names, level: Level, order: Iterable[Any] | None) -> Floats | None:
    """The numbers of ordered classes, shape (C,); None for classes without an order."""
    if level == "nominal":
        if order is not None:
            raise ValueError('order needs level="ordinal" or level="interval"; level "nominal" has none.')
        return None
    if order is not None:
        names = np.array([*order, None], dtype=object)[:-1]
        if len(set(names.tolist())) < len(names):
            raise ValueError(f"order must name every class once, found {some(names)}.")
        values = locate(classes, names)
        if (values < 0).any():
            raise ValueError(
                f"order lacks the classes {some(classes[values < 0])}; found {some(names)}. Name all of "
                f"{some(classes)} from the least to the greatest."
            )
        return values.astype(np.float64)
    numbers = pd.to_numeric(pd.Series(classes, dtype=object), errors="coerce").to_numpy(dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(
            f"level {level!r} needs the order of the classes, and {some(classes[~np.isfinite(numbers)])} "
            "are no numbers. Name all classes from the least to the greatest: order=[…], or on the command "
            "line --order low,medium,high."
        )
    return np.argsort(np.argsort(numbers)).astype(np.float64) if level == "ordinal" else numbers


def _bounds(values: Floats) -> Floats:
    """The ends of the 95 % interval of every column, shape (2, n); nan where there is no value."""
    tails = [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]
    known = ~np.isnan(values).all(axis=0)
    bounds = np.full((2, values.shape[1]), np.nan)
    if known.any():
        bounds[:, known] = np.nanquantile(values[:, known], tails, axis=0)
    return bounds
