"""Arrays over items, annotators and classes as tables of pandas that carry the names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


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
