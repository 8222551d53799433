"""What is known about annotators: a table with one row per annotator, with kinds, prices and limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from annotmix._common.words import count, some
from annotmix.labels.columns import find_column, guess_column
from annotmix.labels.kinds import KINDS, UNKNOWN, kind_called
from annotmix.reading.containers import is_table_name
from annotmix.reading.input_files import InputFile, Source
from annotmix.reading.values import as_ids, as_texts

#: Numbers that the table may have, the least of each, and what a cell must be.
_NUMBERS = {"cost": "a number of 0 or more, or nothing", "load": "a whole number or nothing"}
#: Labels that stand for an answer that could not be parsed, where the table has models; in any case.
UNPARSED = ("?", "unparsed", "unparsable", "unparseable", "parse error", "parse_error", "parsing error")
_TEXTS = ("model", "prompt", "group")


class AnnotatorTable(NamedTuple):
    """What a file says about annotators.

    Attributes
    ----------
    table : DataFrame, indexed by annotator
        `kind` ("people", "models", "rules" or "unknown"), `group`, `model` and `prompt` (text, "" where
        nothing is said), `cost` (of one label) and `load` (most labels), nan where nothing is said.
    notes : list of str
        Notes about how the table was read.
    source : Source
    """

    table: pd.DataFrame
    notes: list[str]
    source: Source

    @property
    def names(self) -> list[str]:
        """The annotators, in the order of the file."""
        return list(self.table.index)

    @property
    def cost(self) -> dict[str, float] | None:
        """Cost of one label of the annotators that have one; None where none has."""
        return _known(self.table["cost"]) or None

    @property
    def load(self) -> dict[str, int]:
        """Maximum number of labels per annotator; without an entry there is no limit."""
        return {name: int(value) for name, value in _known(self.table["load"]).items()}

    def compared_with(self, annotators: Sequence[str]) -> list[str]:
        """Notes about annotators with labels and no row, and about rows without labels."""
        name, rows = self.source.name, set(self.names)
        notes = []
        if strangers := [own for own in annotators if own not in rows]:
            notes.append(
                f"{len(strangers)} of {count(len(annotators), 'annotator')} "
                f"{'has' if len(strangers) == 1 else 'have'} no row in {name} and no known kind: "
                f"{some(strangers)}."
            )
        if idle := [own for own in self.names if own not in set(annotators)]:
            notes.append(
                f"{len(idle)} of {count(len(rows), 'annotator')} in {name} gave no label: {some(idle)}."
            )
        return notes


def annotators_file(values: Sequence[str]) -> Path | None:
    """The file that `--annotators` names; None where it names annotators."""
    return Path(values[0]) if len(values) == 1 and is_table_name(values[0]) else None


def read_annotators(path: Path) -> AnnotatorTable:
    """Read a table with the column annotator and, where wanted, kind, model, prompt, group, cost and load."""
    file = InputFile(path)
    table, notes = file.table, file.notes
    column = find_column(table.columns, "available", None, path.name)
    texts, changed = as_ids(table[column], "annotator")
    for n, text in enumerate(texts):
        if text is None:
            raise ValueError(f"{path.name!r}, row {n}: the column {column!r} names no annotator.")
    if not len(texts):
        raise ValueError(f"{path.name!r} names no annotator in the column {column!r}.")
    names = pd.Index(texts, name="annotator", tupleize_cols=False)
    if (again := names.duplicated()).any():
        n = int(again.argmax())
        raise ValueError(f"{path.name!r}, row {n}: annotator {names[n]!r} has two rows; keep one.")
    rest = [own for own in table.columns if own != column]
    facts: dict[str, Any] = {}
    for role in ("kind", *_TEXTS, *_NUMBERS):
        own = guess_column(rest, role)
        if own is None:
            facts[role] = np.nan if role in _NUMBERS else UNKNOWN if role == "kind" else ""
            continue
        cells, _ = as_texts(table[own], role)
        facts[role] = [_fact(role, cell, path.name, n, names[n]) for n, cell in enumerate(cells)]
        notes.append(f"{path.name}: the {role} of each annotator is in the column {own!r}.")
    columns = ["kind", "group", "model", "prompt", "cost", "load"]
    return AnnotatorTable(
        pd.DataFrame(facts, index=names)[columns], [*notes, *changed], file.source("annotators")
    )


def _fact(role: str, cell: str | None, file: str, row: int, name: str) -> Any:
    """A cell as what it stands for, or an error that says what was expected."""
    if role in _TEXTS:
        return cell or ""
    if role == "kind":
        if (kind := kind_called(cell or "")) is not None:
            return kind
        expected = f"{', '.join(KINDS)} or nothing"
    else:
        value, expected = _number(cell), _NUMBERS[role]
        if cell is None or (value >= 0 and (role == "cost" or value.is_integer())):
            return value
    raise ValueError(f"{file!r}, row {row}: the {role} of {name!r} is {cell!r:.60}, expected {expected}.")


def _known(numbers: pd.Series) -> dict[str, float]:
    return {str(name): float(value) for name, value in numbers.dropna().items()}


def _number(cell: Any) -> float:
    """A finite number, nan where it is none."""
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return math.nan
    return value if math.isfinite(value) else math.nan
