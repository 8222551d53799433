"""Columns of features that nearly determine the labels: often a true label under another name.

A classifier that learns such a column is right about these items, and useless for new ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from annotmix._common.words import shorten
from annotmix.labels.aggregation import majority_vote
from annotmix.labels.annotations import Annotations
from annotmix.labels.names import Index, locate
from annotmix.labels.posterior import posterior

#: What the note about a column says.
LEAKS = "nearly determines the labels"
#: Most distinct values of a column that is checked, and fewest items of a value on average.
MOST_VALUES, ITEMS_PER_VALUE = 50, 3
#: Items count whose class is this sure by labels alone; this many are needed.
SURE, FEWEST = 0.95, 30
#: A column leaks if it predicts this share of these classes, up to one standard error, as some of the classes
#: are wrong themselves, and at most this share of the errors is left that the most frequent class makes.
RIGHT, ERRORS_LEFT = 0.98, 0.1
#: Columns are looked at closely where at most this share of these errors is left in predicting votes.
WORTH = 0.8


class Leak(NamedTuple):
    """How far a column determines the labels.

    Attributes
    ----------
    column : str
    right : float
        Share of the items whose class it predicts.
    left : float
        Its errors as a share of the errors that the most frequent class alone makes.
    n_items : int
    """

    column: str
    right: float
    left: float
    n_items: int

    @property
    def certain(self) -> bool:
        """Whether the column nearly determines the labels."""
        slack = (RIGHT * (1 - RIGHT) / max(self.n_items, 1)) ** 0.5
        return self.right >= RIGHT - slack and self.left <= ERRORS_LEFT

    @property
    def note(self) -> str:
        """A sentence about it."""
        name = shorten(self.column, 60)
        return (
            f"The column {name!r} {LEAKS}: it predicts the class of {self.right:.1%} "
            f"of {self.n_items} items. If it was made from labels, or is not known of new items, leave it "
            f"out with --exclude {name}."
        )


def leaks(table: pd.DataFrame, annotations: Annotations) -> list[Leak]:
    """The columns that nearly determine the labels.

    Each value of a column stands for the class that most of the other items with this value have: of the
    items whose class is sure by their labels, or of all items by their votes.

    Parameters
    ----------
    table : DataFrame, one row per item
        Features, as they were read.
    annotations : Annotations
        Item n is row n of the table.
    """
    labelled = np.flatnonzero(annotations.labels_per_item > 0)
    few = {column: codes for column in table.columns if (codes := _codes(table[column])) is not None}
    if not few or annotations.n_classes < 2:
        return []
    votes = np.zeros(annotations.n_items, np.int64)
    names = majority_vote(annotations, random_state=0).to_numpy()
    votes[labelled] = locate(names, annotations.classes)
    by_votes = {column: _leak(column, codes, votes, labelled) for column, codes in few.items()}
    helpful = [column for column, leak in by_votes.items() if leak.left <= WORTH]
    if not helpful:
        return []
    q = posterior(annotations).answer.q
    sure = labelled[q[labelled].max(axis=1) >= SURE]
    by_labels = {column: _leak(column, few[column], q.argmax(axis=1), sure) for column in helpful}
    return [
        leak
        for column in helpful
        for leak in [by_labels[column] if by_labels[column].certain else by_votes[column]]
        if leak.certain
    ]


def _leak(column: str, codes: Index, y: Index, rows: Index) -> Leak:
    """How far a column predicts the classes `y` of the items at `rows`."""
    if len(rows) < FEWEST:
        return Leak(str(column), 0.0, 1.0, len(rows))
    baseline = 1 - np.bincount(y[rows]).max() / len(rows)
    wrong = 1 - _left_out_accuracy(codes[rows], y[rows])
    return Leak(str(column), 1 - wrong, wrong / baseline if baseline else 1.0, len(rows))


def _codes(column: pd.Series) -> Index | None:
    """Values as numbers from 0, shape (n,); None where there are too many of them, or only one."""
    texts = column.astype(str).str.strip()
    codes, values = pd.factorize(texts)
    if not 2 <= len(values) <= min(MOST_VALUES, len(column) / ITEMS_PER_VALUE):
        return None
    return np.asarray(codes, dtype=np.int64)


def _left_out_accuracy(codes: Index, y: Index) -> float:
    """Share of items whose class is the most frequent one of the other items with the same value."""
    counts = np.zeros((codes.max() + 1, y.max() + 1))
    np.add.at(counts, (codes, y), 1)
    others = counts[codes]
    others[np.arange(len(y)), y] -= 1
    return float(np.mean((others.argmax(axis=1) == y) & (others.sum(axis=1) > 0)))
