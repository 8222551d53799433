"""In which order the items of a run are reviewed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.review.estimate import sample_order

#: Orders, and a sentence about each.
ORDERS = {
    "useful": "Items whose label is most likely wrong first, and every fourth one at random: that shows how "
    "good the other labels are, and what the run learns from these items holds for all.",
    "doubtful": "Items whose label is most likely wrong first.",
    "suspicious": "Items with the labels that annotators most likely gave wrongly first.",
    "disputed": "Items whose annotators disagree most first.",
    "sample": "A random sample: how good are the labels really?",
}
#: One item of so many in the order "useful" is drawn at random. Chosen on simulated reviews: the interval of
#: what is left then held the truth in 85 to 100 % of them when labels were up to twice as often wrong as the
#: posterior said, and hardly fewer wrong labels were found.
EVERY = 4


class Order(NamedTuple):
    """Rows of all items in an order, and whether each was drawn at random, shape (N,) each."""

    rows: NDArray[np.int64]
    drawn: NDArray[np.bool_]


def ordered(name: str, items: pd.DataFrame, labels: pd.DataFrame) -> Order:
    """The items in an order of `ORDERS`.

    Parameters
    ----------
    name : str
    items, labels : DataFrame
        As in `Findings`.
    """
    n, sample = len(items), sample_order(len(items))
    if name == "sample":
        return Order(sample, np.ones(n, dtype=bool))
    doubt = 1 - items["probability"].to_numpy(dtype=np.float64)
    if name == "disputed":
        first = items["disagreement"].fillna(0.0).to_numpy(dtype=np.float64)
    elif name == "suspicious":
        first = 1 - labels.groupby("item")["probability"].min().reindex(items.index).fillna(1.0).to_numpy()
    elif name in ORDERS:
        first = doubt
    else:
        raise ValueError(f"An order is one of {', '.join(ORDERS)}, found {name!r}.")
    rows = np.lexsort((-doubt, -first)).astype(np.int64)
    return _mixed(rows, sample) if name == "useful" else Order(rows, np.zeros(n, dtype=bool))


def _mixed(rows: NDArray[np.int64], sample: NDArray[np.int64]) -> Order:
    """`rows`, after every `EVERY` - 1 of them the next item of the sample; each item where it is first."""
    n = len(rows)
    turn = np.concatenate([np.arange(n) * EVERY // (EVERY - 1), (np.arange(n) + 1) * EVERY - 1])
    both, drawn = np.concatenate([rows, sample]), np.arange(2 * n) >= n
    order = np.argsort(turn, kind="stable")
    _, first = np.unique(both[order], return_index=True)
    kept = order[np.sort(first)]
    return Order(both[kept], drawn[kept])
