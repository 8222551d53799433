"""Tables with one row per label: CSV, TSV, Excel, Parquet, JSON or JSON Lines.

Several tables without a column of the annotator are one table per annotator, named after their files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.words import some
from annotmix.labels.columns import find_column, guess_column
from annotmix.reading.confidences import as_weights
from annotmix.reading.containers import base_name
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.formats.annotator_columns import choose_annotators
from annotmix.reading.input_files import InputFile
from annotmix.reading.label_cells import as_sets
from annotmix.reading.texts import item_texts
from annotmix.reading.times import label_times
from annotmix.reading.values import as_ids, as_labels, as_texts

#: Columns of the table of questions that `annotmix suggest --out` writes to be filled in.
_QUESTIONS = {"item", "annotator", "gain", "performance"}


def recognises(file: InputFile, columns: Columns) -> bool:
    """Every file that no other format recognises; mistakes in it are reported when it is read."""
    return True


def one_per_annotator(files: Sequence[InputFile], columns: Columns) -> bool:
    """Whether several tables have labels and no annotators: not as a column, nor as several columns.

    Items that repeat in a table have labels of several annotators, so that a column must name them.
    """
    if len(files) < 2 or columns.annotator is not None or columns.annotators:
        return False
    for file in files:
        names = list(file.table.columns)
        key = columns.item or guess_column(names, "item")
        label = columns.label or guess_column(names, "label")
        if guess_column(names, "annotator") is not None or key is None or label is None:
            return False
        if key not in names or label not in names:
            return False
        if file.table[key].duplicated().any():
            return False
        if len(choose_annotators(file.table, key, Columns(exclude=(label,)), strict=False).annotators) > 1:
            return False
    return True


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The labels; columns are found by name unless the user named them."""
    if not one_per_annotator(files, columns):
        return _said_once([_read(file, columns, None) for file in files], files)
    names = [base_name(file.path) for file in files]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"Several files are called {some(repeated)}, and annotators are named after their files; rename "
            "the files, or give them a column of the annotator."
        )
    parts = _said_once([_read(f, columns, name) for f, name in zip(files, names, strict=True)], files)
    parts[0].notes.insert(
        0, f"The files have no column of the annotator; annotators are named after the files: {some(names)}."
    )
    return parts


def _said_once(parts: list[LabelRows], files: Sequence[InputFile]) -> list[LabelRows]:
    """The same parts, where notes that are the same for several files name the first of them only."""
    if len(files) == 1:
        return parts
    said: dict[str, list[int]] = {}
    for number, (part, file) in enumerate(zip(parts, files, strict=True)):
        for note in part.notes:
            said.setdefault(note.removeprefix(f"{file.name}: "), []).append(number)
        part.notes.clear()
    for note, numbers in said.items():
        name = files[numbers[0]].name
        more = f" and {len(numbers) - 1} further files" if len(numbers) > 1 else ""
        parts[numbers[0]].notes.append(f"{name}{more}: {note}")
    return parts


def _read(file: InputFile, columns: Columns, annotator_name: str | None) -> LabelRows:
    """The labels of one table; all of them by `annotator_name`, if it is not None."""
    name, table = file.name, file.table
    wanted = {"item": columns.item, "annotator": columns.annotator, "label": columns.label}
    if annotator_name is not None:
        del wanted["annotator"]
    found = {role: find_column(table.columns, role, own, name) for role, own in wanted.items()}
    if len(set(found.values())) < len(found):
        raise ValueError(
            f"{name!r}: {', '.join(list(found)[:-1])} and label must be {len(found)} columns, found "
            f"{', '.join(map(repr, found.values()))}. Name them with --item, --annotator and --label."
        )
    listed = ", ".join(map(repr, found.values()))
    notes = [f"{name}: one row per label; {_and(found)} are in the columns {listed}."]
    item, changed = as_ids(table[found["item"]])
    if annotator_name is None:
        annotator, more = as_ids(table[found["annotator"]], "annotator")
    else:
        annotator, more = np.full(len(table), annotator_name, dtype=object), []
    cells = table[found["label"]]
    label, most = as_sets(cells, columns) if columns.several else as_labels(cells, columns.missing)
    notes += [*changed, *more, *most]
    weight, weight_column = _weights(table, columns.weight, name, notes)
    rest = table.drop(columns=list({*found.values()} - {found["item"]}))
    time, time_column = label_times(rest, name, notes)
    texts = item_texts(rest, found["item"], item, columns.text, name, notes)
    others = (found.get("annotator"), found["label"], weight_column, time_column)
    used = tuple(column for column in others if column is not None)
    # a question that nobody has answered yet is no answer without a label
    unparsed = np.zeros(len(table), dtype=bool) if set(table.columns) >= _QUESTIONS else None
    return LabelRows(item, annotator, label, notes, texts, weight, time, used, unparsed)


def _and(roles: Sequence[str] | dict[str, str]) -> str:
    *first, last = roles
    return f"{', '.join(first)} and {last}"


def _weights(table: pd.DataFrame, wanted: str | None, name: str, notes: list[str]) -> tuple[Any, str | None]:
    """Weights of the labels, shape (n,), nan where a cell is empty, and their column; None without one."""
    if wanted is None and guess_column(table.columns, "weight") is None:
        if "confidence" in (lower := {str(column).lower(): column for column in table.columns}):
            notes.append(
                f"The column {lower['confidence']!r} is not used; --weight {lower['confidence']} counts "
                "every label by it."
            )
        return None, None
    column = find_column(table.columns, "weight", wanted, name)
    texts, _ = as_texts(table[column], "weight")
    numbers, read_as = as_weights(texts, column)
    wrong = np.flatnonzero((texts != None) & ~((numbers >= 0) & (numbers < np.inf)))  # noqa: E711
    if len(wrong):
        raise ValueError(
            f"{name!r}: the weight in row {wrong[0]}, column {column!r}, is {texts[wrong[0]]!r:.60}; "
            "expected a number of 0 or more, a logarithm of a probability (none above 0), or low, medium and "
            "high. Name another column with --weight NAME."
        )
    if len(known := numbers[~np.isnan(numbers)]):
        form = f", read as {read_as}" if read_as else ""
        notes.append(
            f"Labels count by the column {column!r}{form}, from {known.min():.4g} to {known.max():.4g}."
        )
    return numbers, column
