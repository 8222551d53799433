"""Tables with one row per item and one column per annotator: CSV, TSV, Parquet, JSON or JSON Lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from annotmix._common.words import some
from annotmix.labels.columns import find_column, guess_column, near_column
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.input_files import InputFile
from annotmix.reading.values import as_ids, as_labels


def recognises(file: InputFile, columns: Columns) -> bool:
    """Whether a table is wide; a table that is neither long nor wide is an error that says why.

    A table is long where a column is called like an annotator, or the user names the column of the annotator
    or the label. It is wide where it is not long, items do not repeat, and other columns share few values.
    """
    if file.records is not None or columns.annotator is not None or columns.label is not None:
        return False
    table, names = file.table, list(file.table.columns)
    if guess_column(names, "annotator") is not None:
        return False
    key = columns.item or guess_column(names, "item") or names[0]
    rest = [column for column in names if column != key]
    near = near_column(names, "annotator")
    if key in names and len(rest) >= 2 and near is None and not table[key].duplicated().any():
        head = table[rest].head(1000).to_numpy(dtype=object).reshape(-1)
        distinct = {str(cell).strip() for cell in head} - {""}
        if len(distinct) <= max(30, len(head) // 20) and "label" not in [column.lower() for column in rest]:
            return True
    hint = f" Did you mean {near!r} for the annotator?" if near is not None else ""
    raise ValueError(
        f"{file.name!r} has the columns {some(names, 12)}: no column for the annotator, such as 'annotator', "
        f"and the others do not look like one column per annotator either.{hint} Name the columns with "
        "--item, --annotator and --label, or say --format wide."
    )


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The labels; -1 is no label where all others are numbers from 0."""
    return [_read(file.name, file.table, columns) for file in files]


def _read(name: str, table: pd.DataFrame, columns: Columns) -> LabelRows:
    by_name = columns.item or guess_column(table.columns, "item") or str(table.columns[0])
    key = find_column(table.columns, "item", by_name, name)
    annotators = [column for column in table.columns if column != key]
    if not annotators:
        raise ValueError(
            f"{name!r} has only the column {key!r}; expected one column per annotator beside it."
        )
    if len(set(annotators)) < len(annotators):
        raise ValueError(
            f"{name!r} has several columns of one name; every annotator needs a name of its own."
        )
    items, changed = as_ids(table[key])
    label, more = as_labels(table[annotators].to_numpy(dtype=object).reshape(-1), columns.missing)
    notes = [
        f"{name}: one row per item and one column per annotator; items are named by the column {key!r}.",
        *changed,
        *more,
    ]
    present = {text for text in label if text is not None}
    if "-1" in present and all(text.isdecimal() for text in present - {"-1"}):
        notes.append(f"-1 was read as no label ({int((label == '-1').sum())} cells).")
        label[label == "-1"] = None
    annotator = np.tile(np.array(annotators, dtype=object), len(table))
    return LabelRows(np.repeat(items, len(annotators)), annotator, label, notes)
