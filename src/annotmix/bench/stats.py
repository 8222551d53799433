"""Do approaches differ over datasets? Mean ranks, the Friedman test, and comparisons with one of them.

Ranks are per dataset, 1 for the best, ties share their mean. With k approaches on n datasets and mean ranks
R_i, the Friedman statistic (corrected for ties) follows χ² with k−1 degrees of freedom if all are alike. An
approach i is compared with a chosen one j by z = (R_i − R_j) / √(k(k+1)/(6n)), two-sided normal p-values, and
Holm's step-down correction for the k−1 comparisons. (The paper's notebook divides by √(k(k−1)/(6n)), and its
loop accepts every remaining hypothesis at the first rejection.)

Ranks and the Friedman test are scipy's. Holm's correction is written here: scipy has none, and statsmodels is
a large dependency for five lines.

Demšar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Fewest datasets and approaches with which the χ² approximation says something.
MIN_DATASETS, MIN_APPROACHES = 5, 3
LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """The result of the tests.

    Attributes
    ----------
    table : DataFrame
        One row per approach, best rank first: `rank`, and against the chosen one `z`, `p`, `p_holm`,
        `significant` (missing for the chosen one itself).
    datasets : list of str
    chi2, p : float
        Friedman test.
    against : str
    left_out : list of str
        Datasets on which some approach has no score.
    """

    table: pd.DataFrame
    datasets: list[str]
    chi2: float
    p: float
    against: str
    left_out: list[str]


def compare(scores: pd.DataFrame, against: str) -> Comparison:
    """Test whether approaches differ from the chosen one.

    Parameters
    ----------
    scores : DataFrame, shape (n_datasets, n_approaches)
        Higher is better. Datasets with missing scores are left out.
    against : str
        The chosen approach, a column of `scores`.
    """
    from scipy.stats import norm

    if against not in scores.columns:
        raise ValueError(
            f"There is no approach {against!r} to compare with; found {', '.join(scores.columns)}."
        )
    whole = scores.dropna()
    left_out = [str(name) for name in scores.index.difference(whole.index, sort=False)]
    n, k = whole.shape
    if k < MIN_APPROACHES:
        raise ValueError(f"The Friedman test needs at least {MIN_APPROACHES} approaches, found {k}.")
    if n < MIN_DATASETS:
        gap = f" ({', '.join(left_out)} lack a score of some approach)" if left_out else ""
        raise ValueError(
            f"{n} datasets{gap} are too few to say whether approaches differ: ranks over fewer than "
            f"{MIN_DATASETS} datasets are mostly chance, and the test's approximation does not hold."
        )
    values = whole.to_numpy(dtype=float)
    mean = rank(values).mean(axis=0)
    chi2, p = friedman(values)
    others = [i for i, name in enumerate(whole.columns) if name != against]
    z = (mean - mean[list(whole.columns).index(against)]) / math.sqrt(k * (k + 1) / (6 * n))
    raw = 2 * norm.sf(np.abs(z))
    table = pd.DataFrame({"rank": mean, "z": z, "p": raw}, index=pd.Index(whole.columns, name="approach"))
    table["p_holm"] = math.nan
    table.iloc[others, table.columns.get_loc("p_holm")] = holm(raw[others])
    table["significant"] = table["p_holm"] < LEVEL
    table.loc[against, ["z", "p"]] = math.nan
    return Comparison(
        table.sort_values("rank", kind="stable"), [str(d) for d in whole.index], chi2, p, against, left_out
    )


def rank(scores: Floats) -> Floats:
    """Ranks of every row, shape (n, k): 1 for the highest score, ties share their mean."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(-scores, axis=1), dtype=float)


def friedman(scores: Floats) -> tuple[float, float]:
    """The Friedman statistic of scores, shape (n, k), corrected for ties, and its p-value."""
    from scipy.stats import friedmanchisquare

    if (scores == scores[:, :1]).all():
        return 0.0, 1.0  # all approaches are level everywhere, which scipy answers with nan
    statistic, p = friedmanchisquare(*scores.T)
    return float(statistic), float(p)


def holm(p: Floats) -> Floats:
    """Holm's step-down p-values: the i-th smallest of m times m−i+1, never falling, at most 1."""
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def pivot(rows: pd.DataFrame, exclude: Sequence[str]) -> pd.DataFrame:
    """Scores as datasets × approaches from long rows `approach`, `dataset`, `value`."""
    rows = rows[~rows["approach"].isin(exclude)]
    twice = rows[rows.duplicated(["approach", "dataset"])]
    if len(twice):
        name, dataset = twice.iloc[0][["approach", "dataset"]]
        raise ValueError(
            f"There are several scores of {name} on {dataset}; one is needed, such as their mean."
        )
    order = list(dict.fromkeys(rows["approach"])), list(dict.fromkeys(rows["dataset"]))
    table = rows.pivot(index="dataset", columns="approach", values="value")
    return table.reindex(index=order[1], columns=order[0])
