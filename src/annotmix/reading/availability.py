"""Annotators who are available, for how many labels, and at what cost: a table with one row per annotator."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

from annotmix.labels.columns import find_column, guess_column
from annotmix.reading.input_files import InputFile
from annotmix.reading.values import as_ids, as_texts


class Availability(NamedTuple):
    """Annotators who are available.

    Attributes
    ----------
    names : list of str
    cost : dict of annotator to float, or None
        Cost of one label, where the table has a column for it.
    load : dict of annotator to int
        Maximum number of labels per annotator; without an entry there is no limit.
    notes : list of str
        Notes about how the table was read.
    """

    names: list[str]
    cost: dict[str, float] | None
    load: dict[str, int]
    notes: list[str]


def read_availability(path: Path) -> Availability:
    """Read a table with a column of annotators and, where wanted, the columns cost and load."""
    file = InputFile(path)
    table, notes = file.table, file.notes
    column = find_column(table.columns, "available", None, path.name)
    texts, changed = as_ids(table[column], "annotator")
    names: list[str] = []
    for n, text in enumerate(texts):
        if text is None:
            raise ValueError(f"{path.name!r}, row {n}: the column {column!r} names no annotator.")
        if text in names:
            raise ValueError(f"{path.name!r}, row {n}: annotator {text!r} has two rows; keep one.")
        names.append(text)
    if not names:
        raise ValueError(f"{path.name!r} names no annotator in the column {column!r}.")
    numbers: dict[str, dict[str, float]] = {}
    for role, expected in {"cost": "a positive number", "load": "a whole number or nothing"}.items():
        if not (column := guess_column(table.columns, role) or ""):
            continue
        cells, _ = as_texts(table[column], role)
        numbers[role] = {}
        for n, (name, cell) in enumerate(zip(names, cells, strict=True)):
            value = _number(cell)
            if cell is None and role == "load":
                continue
            if not (value > 0 if role == "cost" else value >= 0 and value.is_integer()):
                raise ValueError(
                    f"{path.name!r}, row {n}: the {role} of {name!r} is {cell!r}, expected {expected}."
                )
            numbers[role][name] = value
        notes.append(f"{path.name}: the {role} of each annotator is in the column {column!r}.")
    load = {name: int(value) for name, value in numbers.get("load", {}).items()}
    return Availability(names, numbers.get("cost"), load, [*notes, *changed])


def _number(cell: Any) -> float:
    """A finite number, nan where it is none."""
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return math.nan
    return value if math.isfinite(value) else math.nan
