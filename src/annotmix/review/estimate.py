"""How good the labels of a run are, estimated from the items that were reviewed.

Two results, by how the reviewed items were chosen:

- **The sample.** All items stand in a random order. Its beginning, up to the last item that was reviewed for
  the sample's sake, is a random sample, whatever else was reviewed: its share of wrong labels, with Jeffreys'
  interval, is unbiased.
- **What is left.** Items that are useful to review are not like the others. They are compared within strata
  of the probability of their label only. A stratum with N items, n of which were reviewed and k found wrong,
  has the share of wrong labels Beta(a + k, b + n − k), where a / (a + b) is what the posterior says and a + b
  is small. Draws from it, and of the wrong ones among the N − n items left, make the interval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.runs.findings import is_gold

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Ends of the strata of the probability of an item's label.
STRATA = (0.5, 0.7, 0.85, 0.95, 0.99)
#: The posterior's own opinion about a stratum counts as at least one review, and at most as this many: chosen
#: on simulated reviews, where labels were up to three times as often wrong as the posterior said.
LEAST_PRIOR, MOST_PRIOR = 1.0, 3.0
#: Probability that a share lies in its interval.
COVERAGE = 0.95
DRAWS = 4000


class Share(NamedTuple):
    """A share of wrong labels: the estimate, its interval, and the number of items that it is about."""

    share: float
    low: float
    high: float
    n: int


class Progress(NamedTuple):
    """What a review has achieved.

    Attributes
    ----------
    decided, agreeing : int
        Items that got a true class, and those whose class is the label found.
    sample : Share or None
        Wrong labels among all items, from the random sample; `n` items are in the sample.
    left : Share
        Wrong labels among the `n` items that nobody has decided.
    """

    decided: int
    agreeing: int
    sample: Share | None
    left: Share


def sample_order(n_items: int) -> NDArray[np.int64]:
    """Rows of all items in the random order of the sample; the same for the same number of items."""
    return np.random.default_rng(n_items).permutation(n_items)


def progress(items: pd.DataFrame, true: Mapping[str, str], sampled: Iterable[str] = ()) -> Progress:
    """What is known about the labels of the items.

    Items whose class the run has learnt with --gold say nothing about the others, and are left out.

    Parameters
    ----------
    items : DataFrame
        As `Findings.items`: indexed by name, with `label` and `probability`.
    true : mapping of item to class
        The decided ones.
    sampled : iterable of str
        Items that were reviewed for the sample's sake.
    """
    decided, wrong = _decided(items, true)
    place = np.flatnonzero(items.index[sample_order(len(items))].isin(list(sampled)))
    drawn = sample_order(len(items))[: place.max(initial=-1) + 1]
    gold = is_gold(items)
    drawn = drawn[decided[drawn] & ~gold[drawn]]
    sample = _jeffreys(int(wrong[drawn].sum()), len(drawn)) if len(drawn) else None
    shares = _Strata(items[~gold], decided[~gold], wrong[~gold])
    return Progress(int(decided.sum()), int((decided & ~wrong).sum()), sample, shares.left())


def reviews_until(items: pd.DataFrame, true: Mapping[str, str], target: float) -> int:
    """Number of further reviews, least sure items first, until a share `target` of labels is wrong."""
    decided, wrong = _decided(items, true)
    new = ~is_gold(items)
    chance = np.sort(_Strata(items[new], decided[new], wrong[new]).chance()[~decided[new]])
    return int((np.cumsum(chance) > target * len(items)).sum())


def _decided(items: pd.DataFrame, true: Mapping[str, str]) -> tuple[Bools, Bools]:
    """Whether each item is decided, and whether its label was found wrong, shape (N,) each."""
    decided, wrong = np.zeros(len(items), dtype=bool), np.zeros(len(items), dtype=bool)
    place = items.index.get_indexer(list(true))
    known = np.array([*true.values(), None], dtype=object)[:-1][place >= 0]
    place = place[place >= 0]
    decided[place] = True
    wrong[place] = items["label"].to_numpy(dtype=object)[place] != known
    return decided, wrong


class _Strata:
    """Items by the probability of their label, and what was reviewed of each stratum."""

    def __init__(self, items: pd.DataFrame, decided: Bools, wrong: Bools):
        self.doubt = 1 - items["probability"].to_numpy(dtype=np.float64)
        self.decided = decided
        self.stratum = np.searchsorted(STRATA, 1 - self.doubt, side="right")
        K = len(STRATA) + 1
        self.n_left = np.bincount(self.stratum[~decided], minlength=K)
        self.n, self.k = (np.bincount(self.stratum[which], minlength=K) for which in (decided, wrong))
        size = np.maximum(np.bincount(self.stratum, minlength=K), 1)
        self.mean = np.clip(np.bincount(self.stratum, self.doubt, K) / size, 1e-4, 1 - 1e-4)
        # Jeffreys' half a wrong label, as far as that is no more than the most reviews
        strength = np.clip(0.5 / np.minimum(self.mean, 1 - self.mean), LEAST_PRIOR, MOST_PRIOR)
        self.a, self.b = self.mean * strength + self.k, (1 - self.mean) * strength + self.n - self.k

    def left(self) -> Share:
        """Wrong labels among the items that are not decided."""
        n = int(self.n_left.sum())
        if not n:
            return Share(0.0, 0.0, 0.0, 0)
        rng = np.random.default_rng(0)
        wrong = rng.binomial(self.n_left, rng.beta(self.a, self.b, size=(DRAWS, len(self.a)))).sum(axis=1)
        low, high = np.quantile(wrong, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]) / n
        return Share(float(wrong.mean() / n), float(low), float(high), n)

    def chance(self) -> Floats:
        """Chance that the label of each item is wrong, shape (N,)."""
        share = self.a / (self.a + self.b)
        return np.asarray(np.minimum(self.doubt * (share / self.mean)[self.stratum], 1.0))


def _jeffreys(k: int, n: int) -> Share:
    from scipy.special import betaincinv

    a, b = k + 0.5, n - k + 0.5
    low = 0.0 if k == 0 else float(betaincinv(a, b, (1 - COVERAGE) / 2))
    high = 1.0 if k == n else float(betaincinv(a, b, (1 + COVERAGE) / 2))
    return Share(k / n, low, high, n)
