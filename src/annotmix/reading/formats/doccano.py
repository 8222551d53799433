"""doccano's exports: a ZIP file or folder with one file per annotator, named after the annotator.

An entry has `id`, `text` (or `data`, or `filename` of an image), `Comments`, and its classes in `label`,
`labels` or `cats`: a list in JSON and JSON Lines, text such as "good#long" in CSV. A project whose annotators
share their labels has one file, `all`, that does not name them.

Older versions wrote one file of JSON, whose entries have `annotations` with the numbers of `user` and
`label`; their JSON Lines have the names of labels, and an `annotation_approver`, who need not have labelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from annotmix._common.words import some
from annotmix.labels.columns import find_column, guess_column
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.formats.records import (
    Collector,
    as_record,
    first_text,
    identifier,
    most_records,
    records_of,
)
from annotmix.reading.input_files import InputFile, Record
from annotmix.reading.texts import as_text

_LABELS = ("label", "labels", "cats")
#: Columns of a CSV export.
_COLUMNS = ("id", "label", "Comments")


def recognises(file: InputFile, columns: Columns) -> bool:
    """Whether records hold classes, or a table has doccano's columns, and no field names the annotator."""
    if columns.annotator is not None or file.path.is_dir():
        return False
    if columns.several and file.records and guess_column(list(file.records[0]), "annotator") is not None:
        return False  # a table with one row per answer, whose labels are lists
    if file.records is None:
        return set(_COLUMNS) <= set(file.table.columns)
    return most_records(file, _is_entry)


def _is_entry(record: Record) -> bool:
    return _is_old(record) or any(isinstance(record.get(key), list | dict) for key in _LABELS)


def _is_old(record: Record) -> bool:
    """Whether an entry has a list of annotations with users, as old versions write it."""
    entries = record.get("annotations")
    return isinstance(entries, list) and all({"label", "user"} <= set(as_record(entry)) for entry in entries)


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The classes that each annotator gave an item."""
    names = [file.path.stem for file in files]
    if len(set(names)) < len(names):
        raise ValueError(
            f"Two files have the same name, {some(names)}; the annotator is named after the file."
        )
    if names == ["all"]:
        raise ValueError(
            f"{files[0].name!r} is the export of a doccano project whose annotators share their labels, and "
            "does not say who gave which. Export a project without shared annotations, or rename the file if "
            "one annotator gave all labels."
        )
    if any(file.records is not None and most_records(file, _is_old) for file in files):
        by_annotator = _by_user(files)
        notes = [
            "JSON of an old version of doccano: annotators and classes are numbers of doccano's. "
            "--rename-classes FILE names the classes."
        ]
    else:
        by_annotator = _by_annotator(files, columns.label or "label")
        notes = [
            f"doccano's export, one file per annotator: {', '.join(names[:5])}"
            f"{', …' if len(names) > 5 else ''}."
        ]
        if any("annotation_approver" in record for records in by_annotator.values() for record in records):
            notes.append(
                "JSON Lines of an old version of doccano join the labels of all annotators and do not say "
                "who gave which; 'annotation_approver' only approved them. Where several annotators "
                "labelled, export JSON instead, which names them."
            )
    by_text = columns.item is None and _ids_differ(by_annotator)
    if by_text:
        notes.append("The same id has different texts in different files; texts tell items apart.")
    labels, numbers = Collector(columns), dict[str, str]()
    for annotator, records in by_annotator.items():
        for number, record in enumerate(records):
            where = f"{annotator}, entry {number}"
            text = _text(record)
            if by_text or (columns.item is None and record.get("id") in (None, "")):
                if text is None:
                    raise ValueError(
                        f"{where} has neither an 'id' nor a text to identify its item. Name a field "
                        "with --item NAME."
                    )
                item = numbers.setdefault(text, f"text-{len(numbers) + 1}")
            else:
                item = identifier(record, (columns.item or "id",), where)
            labels.text(item, text)
            classes = _classes(record, columns.label, where)
            if not classes:  # the export has the same for items that nobody has looked at
                labels.leave_out("entry without a class", "entries without a class")
            else:
                labels.add_choices(
                    item, annotator, classes, None, ("entry", "entries"), "with several classes", ""
                )
    return [labels.rows(*notes)]


def _by_user(files: Sequence[InputFile]) -> Mapping[str, list[Record]]:
    """The records of old JSON by user, with the list of the classes that the user gave."""
    by_user: dict[str, list[Record]] = {}
    for file in files:
        for number, record in enumerate(records_of(file)):
            if not _is_old(record):
                raise ValueError(
                    f"{file.name}, entry {number} has no 'annotations' with 'user' and 'label', as the "
                    "others do."
                )
            given: dict[str, list[Any]] = {}
            for entry in record["annotations"]:
                where = f"{file.name}, entry {number}"
                if "start_offset" in entry:
                    raise ValueError(
                        f"{where} holds a marked span; only classes of whole texts are labels here."
                    )
                given.setdefault(identifier(entry, ("user",), where), []).append(entry["label"])
            for user, classes in given.items():
                by_user.setdefault(user, []).append({**record, "label": classes})
    return by_user


def _by_annotator(files: Sequence[InputFile], key: str) -> Mapping[str, list[Record]]:
    """The records by annotator, with lists of classes, which CSV joins by "#".

    A class may have a "#" in its name: a label is split where one of its parts occurs alone.
    """
    tables = [file for file in files if file.records is None]
    columns = (file.table[find_column(file.table.columns, "label", key, file.name)] for file in tables)
    cells = {as_text(cell) for column in columns for cell in column}
    several = {
        cell: parts
        for cell in cells
        if len(parts := cell.split("#")) > 1 and all(parts) and not cells.isdisjoint(parts)
    }
    by_annotator: dict[str, list[Record]] = {}
    for file in files:
        records = file.table.to_dict("records") if file.records is None else file.records
        if file.records is None:
            for record in records:
                cell = as_text(record[key])
                record[key] = several.get(cell, [cell] if cell else [])
        by_annotator[file.path.stem] = records
    return by_annotator


def _classes(record: Record, field: str | None, where: str) -> list[Any]:
    key = field or next((key for key in _LABELS if key in record), "label")
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


def _ids_differ(by_annotator: Mapping[str, list[Record]]) -> bool:
    """Whether an id means different texts in different files."""
    known: dict[str, str | None] = {}
    for records in by_annotator.values():
        for record in records:
            key, text = repr(record.get("id")), _text(record)
            if record.get("id") not in (None, "") and known.setdefault(key, text) != text:
                return True
    return False
