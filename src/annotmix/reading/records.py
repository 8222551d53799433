"""Small pieces for readers of exported records, which may hold anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from annotmix._common.words import some
from annotmix.labels.columns import ALIASES
from annotmix.reading.forms import Rows
from annotmix.reading.values import as_texts

#: Longest text of an item that is kept.
LONGEST_TEXT = 100_000


class Collector:
    """Collects labels one by one, and the texts of their items."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, Any, Any]] = []
        self._texts: dict[str, str] = {}

    def add(self, item: str, annotator: Any, label: Any) -> None:
        """One label."""
        self._rows.append((item, annotator, label))

    def text(self, item: str, text: str | None) -> None:
        """What an item says; the first text counts."""
        if text is not None:
            self._texts.setdefault(item, text[:LONGEST_TEXT])

    def rows(self, form: str, notes: list[str]) -> Rows:
        """All labels as text."""
        columns = []
        for number, what in enumerate(("item's id", "annotator", "label")):
            values, changed = as_texts([row[number] for row in self._rows], what, ("nan",))
            columns.append(values if len(values) else np.empty(0, dtype=object))
            notes = notes + changed
        task, worker, label = columns
        return Rows(task, worker, label, form, notes, self._texts)


def identifier(record: Mapping[str, Any], keys: Sequence[str], where: str) -> str:
    """The first of the fields that a record has, as text."""
    for key in keys:
        if record.get(key) not in (None, ""):
            values, _ = as_texts([record[key]], "item's id")
            if values[0] is not None:
                return str(values[0])
    raise ValueError(
        f"{where} has no {' or '.join(map(repr, keys))} to identify its item; it has "
        f"the fields {some(list(record), 12)}. Name the field with --task NAME."
    )


def first_text(record: Mapping[str, Any]) -> str | None:
    """The text of a record, in the field whose name says so."""
    fields = {str(key).lower(): value for key, value in record.items()}
    found = next((fields[alias] for alias in ALIASES["text"] if isinstance(fields.get(alias), str)), None)
    return None if found is None else found.encode("utf-8", "replace").decode("utf-8")


def as_record(value: Any) -> dict[str, Any]:
    """A record as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """A list as it is, anything else as nothing."""
    return value if isinstance(value, list) else []


def counted(left_out: Counter[str]) -> list[str]:
    """What was left out, as notes."""
    return [f"{count} {what} were left out." for what, count in left_out.items()]
