"""Label matrices, soft labels and long tables, read into index vectors and names.

Readers return the parts of `Annotations`: items, annotators and labels as numbers, their names, and weights
if there are any.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from annotmix._common.words import show, some
from annotmix.labels.columns import find_column
from annotmix.labels.names import Index, Names, as_names, encode, is_missing, plain

Floats = NDArray[np.float64]
Parts = tuple[Index, Index, Index, Names, Names, Names, Floats | None]


def read_matrix(
    Z: ArrayLike | pd.DataFrame,
    missing_label: Any,
    classes: Iterable[Any] | None,
    items: Iterable[Any] | None,
    annotators: Iterable[Any] | None,
) -> Parts:
    """A label matrix, as `Annotations.from_matrix` takes it."""
    if isinstance(Z, pd.DataFrame):
        items = Z.index if items is None else items
        annotators = Z.columns if annotators is None else annotators
    matrix = plain(Z)
    if matrix.ndim != 2:
        raise ValueError(
            f"A label matrix has one row per item and one column per annotator, found shape {matrix.shape}."
        )
    n_items, n_annotators = matrix.shape
    items = as_names(range(n_items) if items is None else items, n_items, "items")
    annotators = as_names(
        range(n_annotators) if annotators is None else annotators, n_annotators, "annotators"
    )
    item, annotator = np.nonzero(~is_missing(matrix, missing_label))
    label, class_names = encode(matrix[item, annotator], classes, "label")
    if (unknown := np.flatnonzero(label < 0)).size:
        n, m = item[unknown[0]], annotator[unknown[0]]
        raise ValueError(
            f"Label {show(matrix[n, m])} of item {show(items[n])} by annotator {show(annotators[m])} "
            f"is not among the classes {some(class_names)}."
        )
    return (item, annotator, label, items, annotators, class_names, None)


def read_soft(
    P: ArrayLike,
    classes: Iterable[Any] | None,
    items: Iterable[Any] | None,
    annotators: Iterable[Any] | None,
) -> Parts:
    """Soft labels, as `Annotations.from_soft` takes them."""
    soft = np.asarray(P, dtype=np.float64)
    if soft.ndim != 3:
        raise ValueError(
            "Soft labels have a weight for every item, annotator and class, of shape "
            f"(n_items, n_annotators, n_classes); found shape {soft.shape}."
        )
    listed = [items, annotators, classes]
    names = [
        as_names(range(length) if own is None else own, length, what)
        for own, length, what in zip(listed, soft.shape, ("items", "annotators", "classes"), strict=True)
    ]
    missing = np.isnan(soft)
    if len(partly := np.argwhere(missing.any(axis=2) & ~missing.all(axis=2))):
        n, m = partly[0]
        raise ValueError(
            f"The soft label of item {show(names[0][n])} by annotator {show(names[1][m])} has a weight "
            "for some classes only. Give 0 for a class that is ruled out, nan for all where there is no "
            "label."
        )
    item, annotator, label = np.nonzero(~missing & (soft != 0))
    return (item, annotator, label, names[0], names[1], names[2], soft[item, annotator, label])


def read_long(
    df: pd.DataFrame,
    item_column: str | None,
    annotator_column: str | None,
    label_column: str | None,
    weight: str | None,
    duplicates: str,
    classes: Iterable[Any] | None,
    items: Iterable[Any] | None,
    annotators: Iterable[Any] | None,
) -> Parts:
    """A long table, as `Annotations.from_long` takes it."""
    if duplicates not in ("error", "first", "last", "majority"):
        raise ValueError(f'duplicates must be "error", "first", "last" or "majority", found {duplicates!r}.')
    codes, names = [], []
    for role, named, known in (
        ("item", item_column, items),
        ("annotator", annotator_column, annotators),
        ("label", label_column, classes),
    ):
        column = find_column(df.columns, role, named)
        values = plain(df[column])
        missing = is_missing(values, None)
        if role != "label" and missing.any():
            row = int(np.flatnonzero(missing)[0])
            raise ValueError(
                f"Column {column!r} is empty in row {row} (index {df.index[row]!r}); "
                f"every label needs its {role}."
            )
        code = np.full(len(df), -1, dtype=np.int64)
        code[~missing], role_names = encode(values[~missing], known, role)
        if (unknown := np.flatnonzero((code < 0) & ~missing)).size:
            row = int(unknown[0])
            raise ValueError(
                f"{role} {show(values[row])} in row {row} is not among the {len(role_names)} given "
                f"names: {some(role_names)}."
            )
        codes.append(code)
        names.append(role_names)
    rows = np.flatnonzero(codes[2] >= 0)
    item, annotator, label = (code[rows] for code in codes)
    weights = _weights(df, weight, rows)
    if duplicates != "error":
        pair = item * len(names[1]) + annotator
        one = pair if weights is None else pair * max(len(names[2]), 1) + label
        keep = _keep_one(one, label, duplicates)
        item, annotator, label = item[keep], annotator[keep], label[keep]
        weights = None if weights is None else weights[keep]
    return (item, annotator, label, names[0], names[1], names[2], weights)


def _weights(df: pd.DataFrame, column: str | None, rows: Index) -> Floats | None:
    """The weights in some rows of a long table, where it has a column of them."""
    if column is None or (column == "weight" and column not in df.columns):
        return None
    values = df[find_column(df.columns, "weight", column)].iloc[rows]
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers < np.inf)))
    if len(wrong):
        raise ValueError(
            f"Column {column!r} must hold the weight of every label, a number of 0 or more; found "
            f"{show(values.iloc[wrong[0]])} in row {rows[wrong[0]]}. weight= names another column, None none."
        )
    return np.asarray(numbers)


def _keep_one(pair: Index, label: Index, rule: str) -> Index:
    """Positions to keep so that no pair is repeated."""
    if rule == "majority":
        cells = pd.DataFrame({"pair": pair, "label": label, "position": np.arange(len(pair))})
        votes = cells.groupby(["pair", "label"], sort=False)["position"].agg(["size", "min"]).reset_index()
        votes = votes.sort_values(["pair", "size", "min"], ascending=[True, False, True])
        return np.asarray(votes.drop_duplicates("pair")["min"], dtype=np.int64)
    return np.flatnonzero(~pd.Series(pair).duplicated(keep=rule).to_numpy())
