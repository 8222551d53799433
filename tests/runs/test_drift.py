"""Annotators who get worse over time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from annotmix.reading.times import iso
from annotmix.runs.drift import FEWEST, holm, trend_p, worse_over_time


def labels(seed, n=150, tired=True):
    """Labels of six annotators, of whom the first goes from 95 % to 45 %, if tired."""
    rng = np.random.default_rng(seed)
    parts = []
    for m in range(6):
        when = rng.random(n)
        accuracy = 0.95 - 0.5 * when if tired and m == 0 else np.full(n, 0.8)
        right = np.where(rng.random(n) < accuracy, 0.97, 0.08)
        parts.append(
            pd.DataFrame({"annotator": f"w{m}", "probability": right, "time": iso(1.7e9 + 1e6 * when)})
        )
    return pd.concat(parts, ignore_index=True)


def test_who_gets_tired_is_named_with_figures():
    table = worse_over_time(labels(0))
    assert table.loc[table["worse"], "annotator"].tolist() == ["w0"]
    row = table.iloc[0]
    assert row["first_low"] < row["first"] < row["first_high"]
    assert row["first"] > 0.7 > 0.65 > row["last"]
    assert row["n_labels"] == 150


def test_nobody_is_named_too_often_and_the_tired_mostly():
    named = [worse_over_time(labels(seed, tired=False))["worse"].any() for seed in range(20)]
    assert sum(named) <= 4  # one of 20 is expected; more than 4 have a chance of 0.3 %
    found = [worse_over_time(labels(seed))["worse"].iloc[0] for seed in range(6)]
    assert sum(found) >= 5


def test_few_labels_and_labels_without_time_are_left_alone():
    few = labels(0).groupby("annotator").head(FEWEST - 1)
    assert worse_over_time(few).empty
    assert worse_over_time(few.drop(columns="time")).empty
    assert worse_over_time(labels(0).assign(time="")).empty


def test_the_chance_of_an_order_is_that_of_all_orders():
    from itertools import permutations

    rng = np.random.default_rng(0)
    rank, right = np.arange(7.0), np.array([0.9, 0.95, 0.8, 0.7, 0.3, 0.5, 0.1])
    orders = np.array(list(permutations(right)))
    exact = (orders @ (rank - rank.mean()) <= right @ (rank - rank.mean()) + 1e-12).mean()
    assert abs(trend_p(rank, right, rng) - exact) < 0.002
    assert trend_p(rank, np.full(7, 0.5), rng) == 1


def test_holm_is_holm():
    p = np.array([0.04, 0.001, 0.013, 0.5])
    assert holm(p).tolist() == [False, True, True, False]
    assert holm(np.zeros(0)).tolist() == []
