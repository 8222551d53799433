"""Tables with one row per item, a list of annotators and a list of their labels.

Datasets of Hugging Face with labels of several annotators usually look like this. Without a column of ids,
the items are numbered from 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from annotmix._common.words import count, some
from annotmix.labels.columns import guess_column
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.formats.records import Collector, first_text, identifier, records_of
from annotmix.reading.input_files import InputFile, Record


def recognises(file: InputFile, columns: Columns) -> bool:
    """Whether records hold lists of annotators and of labels."""
    return all(_columns(file, columns))


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The labels; the first annotator of a row gave its first label, and so on."""
    return [_read(file, columns) for file in files]


def _read(file: InputFile, columns: Columns) -> LabelRows:
    annotator, label = _columns(file, columns)
    if annotator is None or label is None:
        listed = _of_lists(file.records or [], columns.several)
        raise ValueError(
            f"{file.name!r} has no lists of {'annotators' if annotator is None else 'labels'}; the columns "
            f"with lists are: {some(listed, 12) or 'none'}. Name them with --annotator and --label."
        )
    records = records_of(file)
    item = columns.item or guess_column(list(records[0]), "item")
    labels = Collector(columns)
    for number, record in enumerate(records):
        name = str(number) if item is None else identifier(record, (item,), f"{file.name}, row {number}")
        labels.text(name, first_text({key: value for key, value in record.items() if key != item}))
        who, what = (own if isinstance(own := record.get(key), list) else [] for key in (annotator, label))
        if len(who) != len(what):
            raise ValueError(
                f"{file.name!r}, row {number}: {count(len(who), 'annotator')} in {annotator!r}, but "
                f"{count(len(what), 'label')} in {label!r}; expected one label of each annotator."
            )
        for one, own in zip(who, what, strict=True):
            labels.add(name, one, own)
    named = "numbered from 0" if item is None else f"named by {item!r}"
    return labels.rows(
        f"{file.name}: one row per item, {named}, with lists of annotators in {annotator!r} and of labels in "
        f"{label!r}."
    )


def _columns(file: InputFile, columns: Columns) -> tuple[str | None, str | None]:
    """The columns of the annotators and the labels, None for one that is not there."""
    listed = _of_lists(file.records or [], columns.several)
    named = {"annotator": columns.annotator, "label": columns.label}
    annotator, label = (
        own if own in listed else _guess(listed, role) if own is None else None for role, own in named.items()
    )
    return annotator, label if label != annotator else None


def _of_lists(records: list[Record], nested: bool = False) -> list[str]:
    """The columns with a list of single values, or with `nested` of lists, in most of the first rows."""
    head = records[:20]
    return [
        str(key)
        for key in dict.fromkeys(key for record in head for key in record)
        if _is_listed(head, key, nested)
    ]


def _is_listed(head: list[Record], key: str, nested: bool) -> bool:
    present = [record[key] for record in head if record.get(key) is not None]
    lists = [value for value in present if isinstance(value, list)]
    flat = not any(isinstance(part, list | dict) for value in lists for part in value)
    return len(lists) * 2 > len(present) and (flat or nested)


def _guess(listed: list[str], role: str) -> Any:
    """The column that is called like a role, in the singular or the plural."""
    singular = {key.removesuffix("s") if not guess_column([key], role) else key: key for key in listed}
    column = guess_column(list(singular), role)
    return None if column is None else singular[column]
