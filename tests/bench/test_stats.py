"""The statistics against slow, obvious ones and against the paper's table."""

from __future__ import annotations

import math
from importlib import resources
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chi2, friedmanchisquare, norm

from annotmix.bench import stats
from annotmix.bench.ranking import from_csv, rank_sheet
from annotmix.bench.sheets import Sheet, render

PAPER = resources.files("annotmix.bench.paper") / "table3_clf_acc.csv"
#: Fig. 7 of the paper.
FIGURE_7 = {
    "mv-base": (9.36, 8.59),
    "mv-mixup": (6.50, 6.91),
    "ds-mixup": (4.41, 4.55),
    "crowd-layer": (8.23, 8.41),
    "trace-reg": (6.41, 6.45),
    "conal": (6.68, 6.77),
    "union-net": (8.23, 8.00),
    "madl": (6.32, 5.95),
    "geo-reg-f": (5.73, 5.32),
    "geo-reg-w": (6.45, 6.50),
    "crowd-ar": (8.45, 8.45),
    "annot-mix": (1.23, 2.09),
}
scores = arrays(float, st.tuples(st.integers(5, 9), st.integers(3, 6)), elements=st.integers(0, 6).map(float))


def _slow_rank(row: np.ndarray) -> list[float]:
    return [1 + sum(o > s for o in row) + 0.5 * (sum(o == s for o in row) - 1) for s in row]


def _slow_holm(p: np.ndarray) -> list[float]:
    """The adjusted p-value: the smallest level at which the step-down procedure rejects."""
    adjusted = []
    for i in range(len(p)):
        smaller = [j for j in range(len(p)) if (p[j], j) <= (p[i], i)]
        steps = [p[j] * (len(p) - sum((p[o], o) < (p[j], j) for o in range(len(p)))) for j in smaller]
        adjusted.append(min(1.0, max(steps)))
    return adjusted


@settings(deadline=None)
@given(scores)
def test_ranks_and_friedman(values):
    ranks = np.array([_slow_rank(row) for row in values])
    assert stats.rank(values).tolist() == ranks.tolist()
    statistic, p = stats.friedman(values)
    n, k = values.shape
    spread = ((ranks - (k + 1) / 2) ** 2).sum() / (n * (k - 1))  # k(k+1)/12 without ties
    if spread == 0:
        assert (statistic, p) == (0.0, 1.0)
        return
    expected = n * ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum() / spread
    assert statistic == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert p == pytest.approx(chi2.sf(expected, k - 1), rel=1e-6, abs=1e-12)


@given(arrays(float, st.integers(1, 8), elements=st.floats(0, 1)))
def test_holm(p):
    assert stats.holm(p) == pytest.approx(_slow_holm(p), abs=1e-15)


def test_holm_by_hand():
    assert stats.holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])


def test_comparison_is_the_formula():
    values = np.random.default_rng(0).normal(size=(7, 4))
    found = stats.compare(pd.DataFrame(values, columns=list("abcd")), "b")
    mean = np.array([_slow_rank(row) for row in values]).mean(axis=0)
    for name, rank in zip("abcd", mean, strict=True):
        assert found.table.loc[name, "rank"] == pytest.approx(rank)
        if name != "b":
            z = (rank - mean[1]) / math.sqrt(4 * 5 / (6 * 7))
            assert found.table.loc[name, "z"] == pytest.approx(z)
            assert found.table.loc[name, "p"] == pytest.approx(2 * (1 - norm.cdf(abs(z))))
    assert math.isnan(found.table.loc["b", "p_holm"])
    assert not found.table.loc["b", "significant"]


def test_the_papers_table_gives_the_corrected_result():
    found = {part[0]: rank_sheet(part, "annot-mix", ["true-base"])[1] for part in from_csv(str(PAPER), None)}
    assert list(found) == ["last", "best"]
    last, best = found["last"], found["best"]
    assert (round(last.chi2, 3), f"{last.p:.2e}") == (43.275, "9.73e-06")
    assert (round(best.chi2, 3), f"{best.p:.2e}") == (33.475, "4.40e-04")
    assert last.table["p_holm"].max() == last.table.loc["ds-mixup", "p_holm"]
    assert round(last.table.loc["ds-mixup", "p_holm"], 4) == 0.0385
    assert last.table["significant"].sum() == 11
    assert round(best.table.loc["geo-reg-f", "p_holm"], 4) == 0.0716
    assert round(best.table.loc["ds-mixup", "p_holm"], 4) == 0.1104
    assert set(best.table.index[~best.table["significant"]]) == {"annot-mix", "geo-reg-f", "ds-mixup"}
    for (name, ranks), number in product(FIGURE_7.items(), (0, 1)):
        assert (last, best)[number].table.loc[name, "rank"] == pytest.approx(ranks[number], abs=0.005001)


def test_too_few_datasets_are_refused_with_a_reason():
    table = pd.DataFrame(np.arange(18.0).reshape(6, 3), columns=list("abc"))
    table.iloc[[0, 3], 1] = math.nan
    with pytest.raises(ValueError, match=r"4 datasets \(0, 3 lack a score of some approach\) are too few"):
        stats.compare(table, "a")
    with pytest.raises(ValueError, match="at least 3 approaches, found 2"):
        stats.compare(pd.DataFrame(np.ones((6, 2)), columns=list("ab")), "a")
    with pytest.raises(ValueError, match="no approach 'x'"):
        stats.compare(table, "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no column 'approach'"),
        ("approach,dataset\nx,y\n", "no column 'with a score'"),
        ("approach,dataset,acc\nx,y,1\nx,z,one\n", "line 3: acc is 'one', no number"),
        ("", "not a CSV"),
        ("approach,dataset,acc\nx,y,1\nx,y,2\n", "several scores of x on y"),
    ],
)
def test_what_is_wrong_with_a_csv(tmp_path, text, message):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        [rank_sheet(part, "x", []) for part in from_csv(path, None)]


def test_a_csv_of_anybody(tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "mine.csv"
    rows = [
        (a, f"d{d}", i + rng.normal(), 9.0) for i, a in enumerate(["p", "q", "true-base"]) for d in range(8)
    ]
    pd.DataFrame(rows, columns=["approach", "dataset", "acc", "other"]).to_csv(path, index=False)
    ((epoch, score, table),) = from_csv(path, None)
    assert (epoch, score) == ("", "acc")
    sheet, found = rank_sheet((epoch, score, table), "true-base", [])
    assert found.table.index[0] == "true-base"
    assert found.chi2 == pytest.approx(
        friedmanchisquare(
            *(table[table["approach"] == a]["value"] for a in ("p", "q", "true-base"))
        ).statistic
    )
    assert any("rough" in note for note in sheet.notes)
    assert next(from_csv(path, "other"))[2]["value"].eq(9).all()


def test_names_in_a_csv_of_results_come_back(tmp_path):
    rows = [("-mixup", "=set", 0.5), ("'-mixup", "=set", -0.25), ("-1", "=set", 0.125)]
    table = pd.DataFrame(rows, columns=["approach", "dataset", "acc"])
    path = tmp_path / "mine.csv"
    path.write_text(render([Sheet("", [], [], table)], "csv"), "utf-8")
    assert "\n'-mixup,'=set,0.5\n" in path.read_text("utf-8")
    ((_, _, read),) = from_csv(path, None)
    assert read.to_numpy().tolist() == [list(row) for row in rows]
