"""Helpers for exports in JSON; a record may hold anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from annotmix._common.words import some
from annotmix.labels.columns import ALIASES
from annotmix.reading.formats import LabelRows
from annotmix.reading.input_files import InputFile, Record
from annotmix.reading.values import LONGEST_TEXT, as_ids, readable


class Collector:
    """Collects labels one by one, the texts of their items, and counts of records that are left out."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, Any, Any]] = []
        self._texts: dict[str, str] = {}
        self._left_out = Counter[str]()

    def add(self, item: str, annotator: Any, label: Any) -> None:
        """Add a label."""
        self._rows.append((item, annotator, label))

    def leave_out(self, what: str) -> None:
        """Count something that gives no label, in the plural: "cancelled annotations"."""
        self._left_out[what] += 1

    def text(self, item: str, text: str | None) -> None:
        """Keep the text of an item; the first one counts."""
        if text is not None:
            self._texts.setdefault(item, text[:LONGEST_TEXT])

    def rows(self, *notes: str) -> LabelRows:
        """All labels as text."""
        said = [*notes, *(f"{count} {what} were left out." for what, count in self._left_out.items())]
        columns = []
        for number, what in enumerate(("item's id", "annotator", "label")):
            texts, changed = as_ids([row[number] for row in self._rows], what)
            columns.append(texts)
            said += changed
        item, annotator, label = columns
        return LabelRows(item, annotator, label, said, self._texts)


def records_of(file: InputFile) -> list[Record]:
    """The records of an export."""
    if file.records is None:
        raise ValueError(f"{file.name!r} is a table, but this format is JSON or JSON Lines.")
    return file.records


def most_records(file: InputFile, looks: Callable[[Record], bool]) -> bool:
    """Whether most of the first records look like this; a single odd record does not decide."""
    head = (file.records or [])[:20]
    return sum(map(looks, head)) * 2 > len(head)


def identifier(record: Mapping[str, Any], keys: Sequence[str], where: str) -> str:
    """The first of the fields that a record has, as text."""
    for key in keys:
        if record.get(key) not in (None, ""):
            texts, _ = as_ids([record[key]])
            if texts[0] is not None:
                return str(texts[0])
    raise ValueError(
        f"{where} has no {' or '.join(map(repr, keys))} to identify its item; it has "
        f"the fields {some(list(record), 12)}. Name the field with --item NAME."
    )


def first_text(record: Mapping[str, Any]) -> str | None:
    """The text of a record, in the field whose name says so."""
    fields = {str(key).lower(): value for key, value in record.items()}
    text = next((fields[alias] for alias in ALIASES["text"] if isinstance(fields.get(alias), str)), None)
    return None if text is None else readable(text)


def as_record(value: Any) -> Record:
    """A record as it is, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """A list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []
