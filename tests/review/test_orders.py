import numpy as np
import pandas as pd
import pytest

from annotmix.review.estimate import sample_order
from annotmix.review.orders import EVERY, ORDERS, ordered


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    names = [f"i{n}" for n in range(60)]
    items = pd.DataFrame(
        {"label": "a", "probability": rng.random(60), "disagreement": rng.random(60)}, index=names
    )
    items.iloc[0, 2] = np.nan  # without labels
    labels = pd.DataFrame({"item": rng.choice(names[1:], 200), "probability": rng.random(200)})
    return items, labels


@pytest.mark.parametrize("name", ORDERS)
def test_every_item_comes_once(tables, name):
    rows, drawn = ordered(name, *tables)
    assert sorted(rows) == list(range(60))
    assert drawn.shape == (60,)


def test_orders_begin_with_what_they_promise(tables):
    items, labels = tables
    assert ordered("doubtful", items, labels).rows[0] == items["probability"].argmin()
    assert ordered("disputed", items, labels).rows[0] == items["disagreement"].argmax()
    suspect = labels.loc[labels["probability"].idxmin(), "item"]
    assert items.index[ordered("suspicious", items, labels).rows[0]] == suspect
    with pytest.raises(ValueError, match="useful, doubtful"):
        ordered("best", items, labels)


def test_every_fourth_useful_item_is_the_next_of_the_sample(tables):
    """Against the obvious loop: take turns, and pass over items that were taken."""
    rows, drawn = ordered("useful", *tables)
    doubtful, sample = (list(ordered(name, *tables).rows) for name in ("doubtful", "sample"))
    turns = []
    for _ in range(60):
        turns += [(doubtful.pop(0), False) for _ in range(EVERY - 1) if doubtful] + [(sample.pop(0), True)]
    expected = {}
    for row, from_sample in turns:
        expected.setdefault(row, from_sample)
    assert list(zip(rows.tolist(), drawn.tolist(), strict=True)) == list(expected.items())
    assert rows[EVERY - 1] in sample_order(60)[:2]
