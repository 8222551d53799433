"""Arrays over items, annotators and classes as tables that carry the names, and names as positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import some
from annotmix.labels.names import Index, Names

if TYPE_CHECKING:
    from annotmix.labels.annotations import Annotations


def index_of(names: Iterable[Any], role: str) -> pd.Index:
    """Names as an index that is called by its role, such as "item"; tuples stay one name each."""
    values = names if isinstance(names, np.ndarray) else list(names)
    return pd.Index(values, name=role, tupleize_cols=False)


def class_table(values: NDArray[Any], items: Iterable[Any], classes: Iterable[Any]) -> pd.DataFrame:
    """Values of shape (n_items, n_classes): one row per item, one column per class."""
    return pd.DataFrame(values, index=index_of(items, "item"), columns=index_of(classes, "label"))


def annotator_columns(values: NDArray[Any], items: Iterable[Any], annotators: Iterable[Any]) -> pd.DataFrame:
    """Values of shape (n_items, n_annotators): one row per item, one column per annotator."""
    return pd.DataFrame(values, index=index_of(items, "item"), columns=index_of(annotators, "annotator"))


def label_table(
    values: NDArray[Any], items: Iterable[Any], annotators: Iterable[Any], classes: Iterable[Any]
) -> pd.DataFrame:
    """Values of shape (n_items, n_annotators, n_classes): one row per item and annotator."""
    rows = pd.MultiIndex.from_product([index_of(items, "item"), index_of(annotators, "annotator")])
    return pd.DataFrame(
        values.reshape(len(rows), values.shape[-1]), index=rows, columns=index_of(classes, "label")
    )


def confusion_table(values: NDArray[Any], annotators: Iterable[Any], classes: Iterable[Any]) -> pd.DataFrame:
    """Matrices of shape (n_annotators, n_classes, n_classes); `table.loc[annotator]` is one of them.

    Returns
    -------
    DataFrame
        One row per `annotator` and true `class`, one column per `label`.
    """
    named = index_of(classes, "label")
    rows = pd.MultiIndex.from_product([index_of(annotators, "annotator"), named.rename("class")])
    return pd.DataFrame(values.reshape(len(rows), values.shape[-1]), index=rows, columns=named)


def confusion_array(
    table: pd.DataFrame, annotators: Iterable[Any], classes: Iterable[Any]
) -> NDArray[np.float64]:
    """The inverse of `confusion_table`, in the order of these names; nan where the table has no such row."""
    named = index_of(classes, "label")
    who = index_of(annotators, "annotator")
    rows = pd.MultiIndex.from_product([who, named.rename("class")])
    values = table.reindex(index=rows, columns=named).to_numpy(dtype=np.float64)
    return np.asarray(values.reshape(len(who), len(named), len(named)))


def label_series(annotations: Annotations, item: Index, label: Index) -> pd.Series:
    """Names of classes, indexed by names of items; `item` and `label` are positions, shape (n,)."""
    index = index_of(annotations.items[item], "item")
    return pd.Series(annotations.classes[label], index=index, name="label")


def positions(names: Names, wanted: Any, what: str) -> Index:
    """Position of every wanted name; an unknown name is an error that calls it `what`."""
    wanted = pd.Index(wanted)
    places: Index = pd.Index(names).get_indexer(wanted).astype(np.int64)
    if (places < 0).any():
        unknown = wanted[places < 0].unique()
        raise ValueError(f"{what} {some(list(unknown))} is unknown; known: {some(names)}.")
    return places


def gold_positions(
    annotations: Annotations, gold: pd.Series | Mapping[Any, Any] | None
) -> tuple[Index, Index]:
    """Rows of the items whose true classes are known, and these classes as numbers."""
    known = pd.Series({} if gold is None else gold, dtype=object)
    item = positions(annotations.items, known.index, "gold: item")
    if len(np.unique(item)) < len(item):
        raise ValueError(f"gold: repeated items {some(list(known.index[known.index.duplicated()]))}.")
    return item, positions(annotations.classes, known.to_numpy(), "gold: class")
