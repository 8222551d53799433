"""Whether an annotator has got worse over time, by the chance that each of their labels is right.

Under the hypothesis that nothing changed, the labels of an annotator are right in any order. The test is the
covariance between the rank of a label in time and its chance of being right, against random orders; Holm's
correction keeps the chance that anybody is named wrongly at `LEVEL`.

The chance q that a label is right includes the label itself. Given the annotator's accuracy a, the score
of its likelihood, q / a − (1 − q) / (1 − a), is linear in q, so the covariance is the score test of a
trend. In 480 simulated crowds of 20 annotators, of whom one falls from 95 to 55 %, tests for a change
point (the greatest partial sum, plain or standardised; an average over all splits) found 1 point fewer to
14 more of late falls, 15 fewer to 4 more of falls halfway, and 1 to 11 fewer of even ones; the chance by
other annotators' labels alone found no more.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from annotmix.labels.posterior import accuracy_interval

Floats = NDArray[np.float64]

#: Labels with a time that an annotator needs.
FEWEST = 20
#: Chance that anybody is named although nobody has changed.
LEVEL = 0.05
#: Random orders, for annotators whose covariance is this many standard deviations below 0.
_ORDERS, _WORTH = 10_000, -1.5
_AT_ONCE = 2_000_000


def worse_over_time(labels: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of annotators in the first and the last third of their labels, the clearest loss first.

    Parameters
    ----------
    labels : DataFrame
        As `Findings.labels`, with the columns `annotator`, `probability` and `time`.

    Returns
    -------
    DataFrame, one row per annotator with at least `FEWEST` labels with a time
        `annotator`, `n_labels`, `first` and `last` with their 95 % intervals `first_low`, `first_high`,
        `last_low`, `last_high`; `p`, the chance of such a loss by accident; `worse`, whether the loss is
        more than chance with all annotators taken together.
    """
    columns = ["annotator", "n_labels", *(f"{part}{end}" for part in ("first", "last") for end in _ENDS)]
    if "time" not in labels:
        return pd.DataFrame(columns=[*columns, "p", "worse"])
    time = pd.to_datetime(labels["time"].replace("", None), utc=True, errors="coerce", format="ISO8601")
    known = labels.assign(time=time)[time.notna()].sort_values("time", kind="stable")
    rng, rows = np.random.default_rng(0), []
    for annotator, own in known.groupby("annotator", sort=True):
        right = own["probability"].to_numpy(dtype=np.float64)
        if len(right) >= FEWEST:
            third = len(right) // 3
            p = trend_p(own["time"].rank().to_numpy(), right, rng)
            rows.append([annotator, len(right), *_share(right[:third]), *_share(right[-third:]), p])
    table = pd.DataFrame(rows, columns=[*columns, "p"]).sort_values("p", kind="stable", ignore_index=True)
    return table.assign(worse=holm(table["p"].to_numpy(dtype=np.float64)))


_ENDS = ("", "_low", "_high")


def trend_p(rank: Floats, right: Floats, rng: np.random.Generator) -> float:
    """Chance that a random order has as low a covariance of rank and chance of being right.

    Parameters
    ----------
    rank, right : array, shape (n,)
        Rank of each label in time, and the chance that it is right.
    rng : Generator
        Draws the orders.
    """
    x, y = rank - rank.mean(), right - right.mean()
    spread = np.sqrt((x @ x) * (y @ y) / max(len(x) - 1, 1))
    if not spread:
        return 1.0
    z = float(x @ y / spread)
    if z > _WORTH:
        return float(ndtr(z))  # the normal approximation suffices where nothing is to be said
    lower, at_once = 0, max(1, _AT_ONCE // len(x))
    for start in range(0, _ORDERS, at_once):
        orders = rng.permuted(np.tile(y, (min(at_once, _ORDERS - start), 1)), axis=1)
        lower += int((orders @ x <= x @ y + 1e-12).sum())
    # with no random order as low, the normal approximation says how much lower
    return (lower + 1) / (_ORDERS + 1) if lower else min(1 / (_ORDERS + 1), float(ndtr(z)))


def holm(p: Floats, level: float = LEVEL) -> NDArray[np.bool_]:
    """Which hypotheses Holm's method rejects, shape (n,): the least p against level / n, and so on."""
    order = np.argsort(p, kind="stable")
    passed = p[order] <= level / np.arange(len(p), 0, -1)
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order] = np.cumprod(passed).astype(bool)
    return rejected


def _share(right: Floats) -> list[float]:
    """Accuracy and the ends of its interval."""
    numbers = (float(len(right)), float(right.sum()), float((right * (1 - right)).sum()))
    return [float(end[0]) for end in accuracy_interval(*(np.array([number]) for number in numbers))]
