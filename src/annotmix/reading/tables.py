"""Labels in tables: long (a row a label) or wide (a row an item, a column an annotator)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.words import some
from annotmix.labels.columns import find_column, guess_column, near_column
from annotmix.labels.names import MISSING
from annotmix.reading.forms import Columns, Rows
from annotmix.reading.values import Texts, as_texts


def read_long(table: pd.DataFrame, columns: Columns, name: str) -> Rows:
    """A row a label; the columns are found by name or given."""
    found = {
        role: find_column(table.columns, role, getattr(columns, role), name)
        for role in ("task", "worker", "label")
    }
    if len(set(found.values())) < 3:
        raise ValueError(
            f"{name!r}: item, annotator and label must be three columns, found "
            f"{', '.join(map(repr, found.values()))}. "
            "Name them with --task, --worker and --label."
        )
    notes = [
        f"{name}: a row a label; item, annotator and label are in the columns "
        f"{', '.join(repr(column) for column in found.values())}."
    ]
    task, worker, label = (
        _texts(table[column], role, columns.missing, notes) for role, column in found.items()
    )
    return Rows(task, worker, label, "long", notes, weight=_weights(table, columns.weight, name, notes))


def _weights(table: pd.DataFrame, given: str | None, name: str, notes: list[str]) -> Any:
    """Weights of the labels, shape (n,), nan where a cell is empty; None where there is no column of them."""
    if given is None and guess_column(table.columns, "weight") is None:
        if "confidence" in (lower := {str(column).lower(): column for column in table.columns}):
            notes.append(
                f"The column {lower['confidence']!r} is not used; --weight {lower['confidence']} counts "
                "every label by it."
            )
        return None
    column = find_column(table.columns, "weight", given, name)
    texts, _ = as_texts(table[column], "weight")
    numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero((texts != None) & ~((numbers >= 0) & (numbers < np.inf)))  # noqa: E711
    if len(wrong):
        raise ValueError(
            f"{name!r}: the weight in row {wrong[0]}, column {column!r}, is {texts[wrong[0]]!r:.60}; "
            "expected a number from 0 on. Name another column with --weight NAME."
        )
    if len(known := numbers[~np.isnan(numbers)]):
        notes.append(f"Labels count by the column {column!r}, from {known.min():g} to {known.max():g}.")
    return numbers


def read_wide(table: pd.DataFrame, columns: Columns, name: str) -> Rows:
    """A row an item and a column an annotator; -1 is no label where all others are numbers from 0."""
    refuse_weights(columns, name, "a table with a column an annotator")
    by_name = columns.task or guess_column(table.columns, "task") or str(table.columns[0])
    key = find_column(table.columns, "task", by_name, name)
    annotators = [column for column in table.columns if column != key]
    if not annotators:
        raise ValueError(f"{name!r} has only the column {key!r}; expected a column an annotator beside it.")
    if len(set(annotators)) < len(annotators):
        raise ValueError(
            f"{name!r} has several columns of one name; every annotator needs a name of its own."
        )
    notes = [f"{name}: a row an item, a column an annotator; items are named by the column {key!r}."]
    tasks = _texts(table[key], "task", columns.missing, notes)
    cells = table[annotators].to_numpy(dtype=object)
    label = _texts(cells.reshape(-1), "label", columns.missing, notes)
    present = {text for text in label if text is not None}
    if "-1" in present and all(text.isdecimal() for text in present - {"-1"}):
        notes.append(f"-1 was read as no label ({int((label == '-1').sum())} cells).")
        label[label == "-1"] = None
    task = np.repeat(tasks, len(annotators))
    worker = np.tile(np.array(annotators, dtype=object), len(table))
    return Rows(task, worker, label, "wide", notes)


def looks_wide(table: pd.DataFrame, columns: Columns, name: str) -> bool:
    """Whether a table is wide; a table that is neither long nor wide is an error that says why.

    A table is long where a column is called like an annotator, or the user names the annotator's or the
    label's. It is wide where that is not so, items do not repeat, and the other columns share few values.
    """
    names = list(table.columns)
    if columns.worker is not None or columns.label is not None or guess_column(names, "worker") is not None:
        return False
    key = columns.task or guess_column(names, "task") or names[0]
    rest = [column for column in names if column != key]
    slip = near_column(names, "worker")
    if key in names and len(rest) >= 2 and slip is None and not table[key].duplicated().any():
        head = table[rest].head(1000).to_numpy(dtype=object).reshape(-1)
        distinct = {str(cell).strip() for cell in head} - {""}
        if len(distinct) <= max(30, len(head) // 20) and "label" not in [column.lower() for column in rest]:
            return True
    hint = f" Did you mean {slip!r} for the annotator?" if slip is not None else ""
    raise ValueError(
        f"{name!r} has the columns {some(names, 12)}: no column for the annotator, such as 'worker', and it "
        "does not look like one column "
        f"an annotator either.{hint} Name the columns with --task, --worker and --label, or say "
        "--format wide."
    )


def refuse_weights(columns: Columns, name: str, what: str) -> None:
    """Weights are read from long tables; say so where the user named a column of them elsewhere."""
    if columns.weight is not None:
        raise ValueError(
            f"--weight {columns.weight}: {name!r} is {what}; weights are read from tables with a row a label."
        )


def _texts(values: Any, role: str, missing: Sequence[str], notes: list[str]) -> Texts:
    what = {"task": "item's id", "worker": "annotator", "label": "label"}[role]
    # an id "na" is an id; only labels are left out by a word
    words = (*MISSING, *missing) if role == "label" else ("nan",)
    texts, changed = as_texts(values, what, words)
    notes += changed
    return texts
