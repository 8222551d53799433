"""The texts of the items in a table of labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from annotmix.labels.columns import find_column, guess_column
from annotmix.reading.values import LONGEST_TEXT, Texts, readable

#: A column is about the items if at most this share of the items has several values in it.
_VARYING = 0.02


def as_text(value: Any) -> str:
    """A cell as a text, empty where it is missing."""
    if isinstance(value, str):
        return readable(value)
    return "" if value is None or value is pd.NA or value != value else str(value)


def varies(column: pd.Series, items: Texts) -> bool:
    """Whether a column has several values for one item, for more than a few of the items with several rows.

    Parameters
    ----------
    column : Series, shape (n,)
    items : array of str or None, shape (n,)
        The item of every row.
    """
    known = pd.DataFrame({"item": items, "value": [as_text(value) for value in column]})
    known = known[known["item"].notna() & (known["value"] != "")]
    sizes = known.groupby("item")["value"].agg(["size", "nunique"])
    repeated = sizes[sizes["size"] > 1]
    return bool(len(repeated)) and float((repeated["nunique"] > 1).mean()) > _VARYING


def item_texts(
    table: pd.DataFrame, key: str, items: Texts, named: str | None, name: str, notes: list[str]
) -> Mapping[str, str]:
    """The text of every item, from a column that is called like a text or that the user names.

    A column that differs between the labels of one item is a remark of the annotators and not used, unless
    the user names it.

    Parameters
    ----------
    table : DataFrame
        Without the columns of annotators, labels and weights.
    key : str
        Its column that names the item.
    items : array of str or None, shape (n,)
        The item of every row.
    named : str or None
        The column of the texts, where the user names it.
    name : str
        Name of the file, for messages.
    notes : list of str
        Gets a note.
    """
    others = [column for column in table.columns if column != key]
    if named is not None and named not in others:
        return {}  # the texts may be in another file
    column = named or guess_column(others, "text")
    if column is None:
        return {}
    column = find_column(others, "text", column, name)
    if named is None and varies(table[column], items):
        notes.append(
            f"{name}: the column {column!r} differs between labels of one item and is not used as its text; "
            f"--text-column {column} uses it all the same."
        )
        return {}
    texts: dict[str, str] = {}
    for item, cell in zip(items.tolist(), table[column].to_numpy(dtype=object), strict=True):
        if item is not None and item not in texts and (text := as_text(cell)).strip():
            texts[item] = text[:LONGEST_TEXT]
    if texts and not np.any([len(text) > 1 for text in texts.values()]):
        return {}
    return texts
