"""doccano's JSON Lines export: one file an annotator, named after the annotator.

A line has `id`, `text` (or `data`, or `filename` of an image) and its classes in `label`, `labels` or `cats`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from annotmix.reading.forms import Columns, Rows
from annotmix.reading.records import Collector, counted, first_text, identifier

Record = dict[str, Any]
_LABELS = ("label", "labels", "cats")


def is_doccano(record: Record) -> bool:
    """Whether a record looks like a line of doccano: classes, and no annotator."""
    return any(isinstance(record.get(key), list | dict) for key in _LABELS)


def read_doccano(files: Mapping[str, list[Record]], columns: Columns) -> Rows:
    """The one class that each annotator gave an item.

    Parameters
    ----------
    files : mapping of annotator to records
    columns : Columns
    """
    notes = [
        "doccano's export, a file an annotator: "
        f"{', '.join(list(files)[:5])}{', …' if len(files) > 5 else ''}."
    ]
    by_text = columns.task is None and _ids_differ(files)
    if by_text:
        notes.append(
            "The same id has different texts in different files; items are told apart by their text."
        )
    found, left_out, numbers = Collector(), Counter[str](), dict[str, str]()
    for annotator, records in files.items():
        for number, record in enumerate(records):
            where = f"{annotator}, entry {number}"
            text = _text(record)
            if by_text or (columns.task is None and record.get("id") in (None, "")):
                if text is None:
                    raise ValueError(
                        f"{where} has neither an 'id' nor a text to identify its item. Name a field "
                        "with --task NAME."
                    )
                item = numbers.setdefault(text, f"text-{len(numbers) + 1}")
            else:
                item = identifier(record, (columns.task or "id",), where)
            found.text(item, text)
            chosen = _classes(record, columns.label, where)
            if len(chosen) == 1:
                found.add(item, annotator, chosen[0])
            else:
                left_out["entries with several classes" if chosen else "entries without a class"] += 1
    return found.rows("doccano", [*notes, *counted(left_out)])


def _classes(record: Record, given: str | None, where: str) -> list[Any]:
    key = given or next((key for key in _LABELS if key in record), "label")
    value = record.get(key)
    if isinstance(value, dict):
        value = [name for name, chosen in value.items() if chosen]
    if not isinstance(value, list):
        value = [] if value in (None, "") else [value]
    for entry in value:
        if isinstance(entry, list | dict):
            raise ValueError(
                f"{where}: {key} holds {entry!r:.60}, a marked span; only classes of whole texts "
                "are labels here."
            )
    return list(value)


def _text(record: Record) -> str | None:
    data = record.get("data")
    return data if isinstance(data, str) else first_text(record)


def _ids_differ(files: Mapping[str, list[Record]]) -> bool:
    """Whether an id means different texts in different files."""
    known: dict[str, str | None] = {}
    for records in files.values():
        for record in records:
            key, text = repr(record.get("id")), _text(record)
            if record.get("id") not in (None, "") and known.setdefault(key, text) != text:
                return True
    return False
