import numpy as np
import pandas as pd
import pytest

from annotmix.review.estimate import progress, reviews_until, sample_order


def simulated(seed, n=800, times=1.0):
    """Items with a probability, and their true classes; labels are wrong `times` as often as they say."""
    rng = np.random.default_rng(seed)
    doubt = 0.6 * rng.beta(0.4, 2.0, size=n)
    wrong = rng.random(n) < times * doubt
    names = [f"i{k}" for k in range(n)]
    items = pd.DataFrame({"label": "a", "probability": 1 - doubt}, index=names)
    return items, pd.Series(np.where(wrong, "b", "a"), index=names)


def reviewed(items, true, rows):
    return {items.index[row]: true.iloc[row] for row in rows}


@pytest.mark.parametrize("times", [1.0, 2.0])
def test_intervals_hold_the_truth(times):
    """The share left after the least sure items, and the share of all from the sample."""
    left, whole = 0, 0
    for seed in range(40):
        items, true = simulated(seed, times=times)
        useful = np.argsort(items["probability"].to_numpy())[:60]
        result = progress(items, reviewed(items, true, useful))
        rest = np.delete(true.to_numpy(), useful)
        left += result.left.low <= (rest == "b").mean() <= result.left.high
        assert result.left.n == len(rest)
        assert result.sample is None
        drawn = reviewed(items, true, sample_order(len(items))[:60])
        sample = progress(items, drawn, drawn).sample
        whole += sample.low <= (true == "b").mean() <= sample.high
        assert sample.n == 60
    assert left >= 37
    assert whole >= 36


def test_the_sample_counts_items_that_were_decided_before():
    items, true = simulated(0, n=100)
    order = sample_order(100)
    known = reviewed(items, true, order[:10])
    assert progress(items, known, [items.index[order[9]]]).sample.n == 10
    assert progress(items, known, [items.index[order[4]]]).sample.n == 5
    unsure = {item: label for item, label in known.items() if item != items.index[order[2]]}
    assert progress(items, unsure, [items.index[order[9]]]).sample.n == 9


def test_decided_items_are_counted():
    items, true = simulated(1, n=50)
    known = reviewed(items, true, range(50))
    result = progress(items, known)
    assert result.decided == 50
    assert result.agreeing == (true == "a").sum()
    assert result.left == (0.0, 0.0, 0.0, 0)
    assert progress(items, {"of another run": "a"}).decided == 0


def test_reviews_until_a_quality():
    items, true = simulated(2)
    few, many = (reviews_until(items, {}, target) for target in (0.05, 0.01))
    assert 0 < few < many <= len(items)
    known = reviewed(items, true, np.argsort(items["probability"].to_numpy())[:few])
    assert reviews_until(items, known, 0.05) < few
    assert reviews_until(items, {}, 1.0) == 0
