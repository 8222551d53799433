"""The index vectors of `Annotations`: checked, sorted by item, read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotmix._common.words import show
from annotmix.labels.names import Index, Names, ascending

Floats = NDArray[np.float64]

#: The names that the index vectors of `Annotations` point to.
NAMES_OF = {"item": "items", "annotator": "annotators", "label": "classes"}


def sorted_labels(labels: Sequence[Any], weight: Any, names: Sequence[Names]) -> dict[str, Any]:
    """The labels, sorted by item, annotator and, with weights, class; those of weight 0 are left out.

    Parameters
    ----------
    labels : three arrays of int, shape (n_labels,)
        Items, annotators and classes.
    weight : array of float, shape (n_labels,), or None
    names : three arrays
        The names that the arrays point to.

    Returns
    -------
    dict
        `item`, `annotator`, `label` and `weight`, read-only.
    """
    index = {
        role: _checked_index(role, values, own)
        for role, values, own in zip(NAMES_OF, labels, names, strict=True)
    }
    if len(set(map(len, index.values()))) > 1:
        n_items, n_annotators, n_labels = map(len, index.values())
        raise ValueError(
            "item, annotator and label must have the same length, found "
            f"{n_items}, {n_annotators} and {n_labels}."
        )
    keys = [index["item"], index["annotator"]]
    if weight is not None:
        keys, weight = [*keys, index["label"]], _checked_weight(weight, len(index["label"]))
    order = ascending(keys, [len(own) for own in names][: len(keys)])
    ascends = isinstance(order, slice)
    if weight is not None and not weight.all():
        order = np.arange(len(weight))[order]
        order = order[weight[order] > 0]
    made: dict[str, Any] = {
        role: frozen(values if isinstance(order, slice) else values[order]) for role, values in index.items()
    }
    if not ascends:
        _refuse_repeats(made, weight is not None, names)
    return made | {"weight": None if weight is None else frozen(weight[order])}


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """The values as a read-only array; a copy unless it is read-only already."""
    if not values.flags.writeable and values.flags.owndata:
        return values
    copy = np.array(values)
    copy.setflags(write=False)
    return copy


def _checked_index(role: str, values: Any, names: Names) -> Index:
    index = np.asarray(values)
    if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
        raise ValueError(f"{role} must be a vector of integers, found {index.dtype} of shape {index.shape}.")
    if len(index) and (index.min() < 0 or index.max() >= len(names)):
        raise ValueError(
            f"{role} must point into its {len(names)} names, found values from {index.min()} to "
            f"{index.max()}."
        )
    return index.astype(np.int64, copy=False)


def _checked_weight(weight: Any, length: int) -> Floats:
    """Weights as numbers, finite and not negative."""
    numbers = np.asarray(weight, dtype=np.float64)
    if numbers.shape != (length,):
        raise ValueError(f"weight must have an entry for each of {length} labels, found {numbers.shape}.")
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers < np.inf)))
    if len(wrong):
        raise ValueError(
            f"A weight must be a number of 0 or more, found {numbers[wrong[0]]} for label {wrong[0]} "
            f"({len(wrong)} in all). Give 1 to a label that counts in full."
        )
    return numbers


def _refuse_repeats(labels: dict[str, Index], weighted: bool, names: Sequence[Names]) -> None:
    """Refuse several labels of one annotator for one item; with weights, for one class."""
    item, annotator, label = (labels[role] for role in NAMES_OF)
    same = (np.diff(item) == 0) & (np.diff(annotator) == 0)
    if weighted:
        same &= np.diff(label) == 0
    repeated = np.flatnonzero(same)
    if len(repeated):
        p = repeated[0]
        items, annotators, classes = names
        what = f"weight of label {show(classes[label[p]])}" if weighted else "label"
        raise ValueError(
            f"annotator {show(annotators[annotator[p]])} has more than one {what} for item "
            f"{show(items[item[p]])} ({len(repeated)} repeats in all). Use "
            'Annotations.from_long with duplicates="first", "last" or "majority" to keep one of them.'
        )
