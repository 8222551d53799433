"""One label per item from many: majority vote, and any method by its name."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from annotmix.labels import crowdkit
from annotmix.labels.annotations import ROUNDING, Annotations
from annotmix.labels.dawid_skene import dawid_skene
from annotmix.labels.forms import labels_alone
from annotmix.labels.named import class_table, label_series, positions
from annotmix.labels.names import Index, Names

# ---------------------------------------------------------------- majority vote


@overload
def majority_vote(
    labels: Any, *, ties: Literal["random"] = "random", random_state: Any = None
) -> pd.Series: ...
@overload
def majority_vote(labels: Any, *, ties: Literal["all"], random_state: Any = None) -> pd.DataFrame: ...
def majority_vote(
    labels: Any, *, ties: Literal["random", "all"] = "random", random_state: Any = None
) -> pd.Series | pd.DataFrame:
    """The class that most annotators gave, for every item that has labels.

    Parameters
    ----------
    labels : Annotations, long table, label matrix or soft labels
        A label of weight w has w votes.
    ties : {"random", "all"}
        Where several classes have the most votes: take one of them, each as likely, or return them all.
    random_state : int, Generator or None
        Breaks the ties.

    Returns
    -------
    Series or DataFrame
        "random": class names, indexed by item. "all": booleans, one row per item and one column per class,
        true for every class with the most votes.

    Examples
    --------
    >>> a = Annotations.from_matrix([["cat", "cat", "dog"], ["cat", "dog", None]], items=["x", "y"])
    >>> majority_vote(a, random_state=0)["x"]
    'cat'
    >>> majority_vote(a, ties="all").loc["y"].to_dict()
    {'cat': True, 'dog': True}
    """
    if ties not in ("random", "all"):
        raise ValueError(f'ties must be "random" or "all", found {ties!r}.')
    annotations = labels_alone(labels)
    item, label = _most_votes(annotations)
    first = np.flatnonzero(np.diff(item, prepend=-1))
    if ties == "all":
        winners = np.zeros((annotations.n_items, annotations.n_classes), dtype=bool)
        winners[item, label] = True
        return class_table(winners, annotations.items, annotations.classes).iloc[item[first]]
    n_tied = np.diff(first, append=len(item))
    tied = np.flatnonzero(n_tied > 1)
    first[tied] += draw(annotations.items[item[first[tied]]], n_tied[tied], random_state)
    return label_series(annotations, item[first], label[first])


def _most_votes(annotations: Annotations) -> tuple[Index, Index]:
    """Items and their classes with the most votes, sorted by item; a tie gives several entries."""
    item, label, votes = annotations.votes()
    first = np.flatnonzero(np.diff(item, prepend=-1))
    most = np.repeat(np.maximum.reduceat(votes, first), np.diff(first, append=len(item))) if len(item) else 0
    won = votes >= most * (1 - ROUNDING)
    return item[won], label[won]


def draw(names: Names, n: Index, random_state: Any) -> Index:
    """For every name a number from 0 to n − 1, each as likely; shape (len(names),).

    The number depends on the seed and the name alone: a tie is broken alike whatever other items there are.
    """
    mixed = pd.util.hash_array(names, categorize=False)
    mixed ^= np.random.default_rng(random_state).integers(2**64, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # as in splitmix64
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return np.asarray(mixed % n.astype(np.uint64), dtype=np.int64)


# ---------------------------------------------------------------- any method by name


def aggregate(labels: Any, method: str = "mv", *, random_state: Any = None, **params: Any) -> pd.Series:
    """One class for every item that has labels, by the method named.

    Parameters
    ----------
    labels : Annotations, long table, label matrix or soft labels
    method : str
        "mv" (`majority_vote`), "ds" (`dawid_skene`), or "crowd-kit:NAME" for any aggregator of class labels
        in crowd-kit, for example "crowd-kit:GLAD".
    random_state : int, Generator or None
        Breaks ties ("mv") or seeds crowd-kit's aggregator, if it has a seed; "ds" needs no randomness.
    **params
        Parameters of the method: of `dawid_skene`, or of crowd-kit's class and its `fit_predict`.

    Returns
    -------
    Series, indexed by item
        Class names; items without labels are missing from it.

    Examples
    --------
    >>> a = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]])
    >>> aggregate(a, "ds").tolist()
    [0, 1]
    """
    annotations = labels_alone(labels)
    if method == "mv":
        return majority_vote(annotations, ties="random", random_state=random_state, **params)
    if method == "ds":
        return dawid_skene(annotations, **params).labels
    if not method.startswith("crowd-kit:"):
        raise ValueError(f'method must be "mv", "ds" or "crowd-kit:NAME", found {method!r}.')
    aggregate_labels = crowdkit.fit_predict(
        annotations, method.removeprefix("crowd-kit:"), random_state, **params
    )
    item = positions(annotations.items, aggregate_labels.index, "item")
    label = positions(annotations.classes, aggregate_labels.to_numpy(), "class")
    order = np.argsort(item)
    return label_series(annotations, item[order], label[order])


def aggregated(annotations: Annotations, labels: pd.Series) -> Annotations:
    """One label per item, as `Annotations` of a single annotator named "aggregated"."""
    item = positions(annotations.items, labels.index, "item")
    label = positions(annotations.classes, labels.to_numpy(), "class")
    names = np.array(["aggregated"], dtype=object)
    return Annotations(item, np.zeros_like(item), label, annotations.items, names, annotations.classes)
