"""Sets of classes in lists and arrays, read into the parts of `LabelSets`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from annotmix._common.words import show, some
from annotmix.labels.annotations import Annotations
from annotmix.labels.names import Index, Names, as_names, encode, plain

#: `answers`, `members` and `classes` of `LabelSets`.
Parts = tuple[Annotations, NDArray[np.bool_], Names]


def read_sets(
    item: ArrayLike,
    annotator: ArrayLike,
    sets: Sequence[Iterable[Any] | None],
    classes: Iterable[Any] | None,
    items: Iterable[Any] | None,
    annotators: Iterable[Any] | None,
) -> Parts:
    """Lists of items, annotators and classes, as `LabelSets.from_sets` takes them."""
    given = [None if own is None else list(own) for own in sets]
    chosen = np.empty(sum(map(len, (own for own in given if own is not None))), dtype=object)
    chosen[:] = list(chain.from_iterable(own for own in given if own is not None))
    code, class_names = encode(chosen, classes, "label")
    if (unknown := np.flatnonzero(code < 0)).size:
        raise ValueError(f"Class {show(chosen[unknown[0]])} is not among the classes {some(class_names)}.")
    who = []
    for values, known, role in ((item, items, "item"), (annotator, annotators, "annotator")):
        place, names = encode(plain(values), known, role)
        if (lost := np.flatnonzero(place < 0)).size:
            raise ValueError(
                f"{role} {show(plain(values)[lost[0]])} in row {lost[0]} is not among the {len(names)} "
                f"given names: {some(names)}."
            )
        who.append((place, names))
    (row, item_names), (column, annotator_names) = who
    size = np.array([-1 if own is None else len(own) for own in given], dtype=np.int64)
    if len({len(row), len(column), len(size)}) > 1:
        raise ValueError(
            f"item, annotator and sets must have the same length, found {len(row)}, {len(column)} and "
            f"{len(size)}."
        )
    answered = np.flatnonzero(size >= 0)
    pair, place = np.unique(
        row[answered] * max(len(annotator_names), 1) + column[answered], return_inverse=True
    )
    if len(pair) < len(answered) and size.max() > 1:
        again = answered[pd.Series(place).duplicated().to_numpy()][0]
        raise ValueError(
            f"annotator {show(annotator_names[column[again]])} has more than one answer for item "
            f"{show(item_names[row[again]])}, in row {again}. Keep one row per answer, or write one row "
            "per chosen class."
        )
    number, members = _numbered(len(pair), np.repeat(place, size[answered]), code, len(class_names))
    item_code, annotator_code = np.divmod(pair, max(len(annotator_names), 1))
    answers = Annotations(
        item_code, annotator_code, number, item_names, annotator_names, np.arange(len(members))
    )
    return answers, members, class_names


def read_array(
    Z: ArrayLike, classes: Iterable[Any] | None, items: Iterable[Any] | None, annotators: Iterable[Any] | None
) -> Parts:
    """0 and 1 for every item, annotator and class, as `LabelSets.from_array` takes them."""
    values = np.asarray(Z, dtype=np.float64)
    if values.ndim != 3:
        raise ValueError(
            f"Label sets as an array have shape (n_items, n_annotators, n_classes), found {values.shape}."
        )
    names = [
        as_names(range(length) if own is None else own, length, what)
        for own, length, what in zip(
            (items, annotators, classes), values.shape, ("items", "annotators", "classes"), strict=True
        )
    ]
    missing = np.isnan(values)
    partly = missing.any(axis=2) & ~missing.all(axis=2)
    wrong = ~(missing | (values == 0) | (values == 1)).all(axis=2)
    for bad, what in ((wrong, "values other than 0, 1 and nan"), (partly, "nan for some classes only")):
        if bad.any():
            n, m = np.argwhere(bad)[0]
            raise ValueError(
                f"The answer of annotator {show(names[1][m])} about item {show(names[0][n])} has {what}. "
                "Give 1 for a chosen class and 0 for others, nan for all where there is no answer."
            )
    item, annotator = np.nonzero(~missing.any(axis=2)) if values.shape[2] else np.nonzero(partly)
    answer, code = np.nonzero(values[item, annotator] == 1)
    number, members = _numbered(len(item), answer, code, values.shape[2])
    answers = Annotations(item, annotator, number, names[0], names[1], np.arange(len(members)))
    return answers, members, names[2]


def _numbered(n: int, answer: Index, code: Index, n_classes: int) -> tuple[Index, NDArray[np.bool_]]:
    """The number of each answer's set, shape (n,), and the distinct sets, shape (n_sets, n_classes).

    Class `code[p]` belongs to the answer `answer[p]`. Sets are ordered by their classes, the empty one first.
    """
    order = np.lexsort((code, answer))
    answer, code = answer[order], code[order]
    new = (np.diff(answer, prepend=-1) != 0) | (np.diff(code, prepend=-1) != 0)
    answer, code = answer[new], code[new]
    start = np.searchsorted(answer, np.arange(n + 1))
    keys = [tuple(code[start[p] : start[p + 1]].tolist()) for p in range(n)]
    number = {key: place for place, key in enumerate(sorted(set(keys)))}
    members = np.zeros((len(number), n_classes), dtype=bool)
    for key, place in number.items():
        members[place, list(key)] = True
    return np.array([number[key] for key in keys], dtype=np.int64), members
