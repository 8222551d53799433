"""Tables with one row per label: CSV, TSV, Parquet, JSON or JSON Lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotmix.labels.columns import find_column, guess_column
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.input_files import InputFile
from annotmix.reading.values import as_ids, as_labels, as_texts


def recognises(file: InputFile, columns: Columns) -> bool:
    """Every file that no other format recognises; mistakes in it are reported when it is read."""
    return True


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The labels; columns are found by name unless the user named them."""
    return [_read(file.name, file.table, columns) for file in files]


def _read(name: str, table: pd.DataFrame, columns: Columns) -> LabelRows:
    wanted = {"item": columns.item, "annotator": columns.annotator, "label": columns.label}
    names = [find_column(table.columns, role, own, name) for role, own in wanted.items()]
    if len(set(names)) < 3:
        raise ValueError(
            f"{name!r}: item, annotator and label must be three columns, found "
            f"{', '.join(map(repr, names))}. Name them with --item, --annotator and --label."
        )
    listed = ", ".join(map(repr, names))
    notes = [f"{name}: one row per label; item, annotator and label are in the columns {listed}."]
    item, changed = as_ids(table[names[0]])
    annotator, more = as_ids(table[names[1]], "annotator")
    label, most = as_labels(table[names[2]], columns.missing)
    notes += [*changed, *more, *most]
    return LabelRows(item, annotator, label, notes, weight=_weights(table, columns.weight, name, notes))


def _weights(table: pd.DataFrame, wanted: str | None, name: str, notes: list[str]) -> Any:
    """Weights of the labels, shape (n,), nan where a cell is empty; None without a column of weights."""
    if wanted is None and guess_column(table.columns, "weight") is None:
        if "confidence" in (lower := {str(column).lower(): column for column in table.columns}):
            notes.append(
                f"The column {lower['confidence']!r} is not used; --weight {lower['confidence']} counts "
                "every label by it."
            )
        return None
    column = find_column(table.columns, "weight", wanted, name)
    texts, _ = as_texts(table[column], "weight")
    numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero((texts != None) & ~((numbers >= 0) & (numbers < np.inf)))  # noqa: E711
    if len(wrong):
        raise ValueError(
            f"{name!r}: the weight in row {wrong[0]}, column {column!r}, is {texts[wrong[0]]!r:.60}; "
            "expected a number of 0 or more. Name another column with --weight NAME."
        )
    if len(known := numbers[~np.isnan(numbers)]):
        notes.append(f"Labels count by the column {column!r}, from {known.min():g} to {known.max():g}.")
    return numbers
