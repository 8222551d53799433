"""Who can be asked, how often, and at what cost: a table with a row an annotator."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

from annotmix.labels.columns import find_column, guess_column
from annotmix.reading import files
from annotmix.reading.values import as_texts


class Availability(NamedTuple):
    """Those who can be asked.

    Attributes
    ----------
    names : list of str
    cost : dict of annotator to float, or None
        Cost of a label, where the table has a column for it.
    load : dict of annotator to int
        Most labels, of those whose cell is not empty.
    notes : list of str
        What was understood.
    """

    names: list[str]
    cost: dict[str, float] | None
    load: dict[str, int]
    notes: list[str]


def read_availability(path: Path) -> Availability:
    """Read a table with the column worker and, where wanted, cost and load."""
    table, notes = files.read_table(path)
    worker = find_column(table.columns, "person", None, path.name)
    texts, changed = as_texts(table[worker], "annotator", ("nan",))
    names: list[str] = []
    for n, text in enumerate(texts):
        if text is None:
            raise ValueError(f"{path.name!r}, row {n}: the column {worker!r} names no annotator.")
        if text in names:
            raise ValueError(f"{path.name!r}, row {n}: annotator {text!r} stands there twice; keep one row.")
        names.append(text)
    if not names:
        raise ValueError(f"{path.name!r} names no annotator in the column {worker!r}.")
    numbers: dict[str, dict[str, float]] = {}
    for role, expected in {"cost": "a positive number", "load": "a whole number or nothing"}.items():
        if (column := guess_column(table.columns, role)) is None:
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
