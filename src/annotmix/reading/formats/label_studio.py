"""Label Studio's exports: JSON, JSON-MIN, CSV and TSV, which give the same labels.

JSON is a list of tasks with `id`, `data` and `annotations`. An annotation has `completed_by` (a number, or an
object with an `email`), `was_cancelled`, `updated_at` and `result`, a list of answers; the answer to a choice
has `from_name` (the question) and `value.choices`. The other forms have one row per annotation; see
`label_studio_tables`. An item is a task, named by its id or by a field of its data; tasks that annotmix has
written name the item of the run in the field `ITEM_FIELD` of their data, which counts before both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.formats.label_studio_tables import ITEM_FIELD, Table, is_table
from annotmix.reading.formats.records import (
    Collector,
    as_list,
    as_record,
    choose_question,
    first_text,
    identifier,
    most_records,
    records_of,
)
from annotmix.reading.input_files import InputFile, Record
from annotmix.reading.times import as_seconds
from annotmix.reading.values import as_ids


class _Annotation(NamedTuple):
    """One annotation of a task: `choices` answer the question."""

    item: str
    annotator: Any
    choices: list[Any]
    time: float
    number: float
    cancelled: bool


def recognises(file: InputFile, columns: Columns) -> bool:
    """Whether records hold a list of annotations, or rows have the columns of Label Studio."""
    return is_table(file) or most_records(file, _is_task)


def _is_task(record: Record) -> bool:
    """Whether a record has a list of annotations; doccano 1.0 has one of labels."""
    annotations = record.get("annotations", record.get("completions"))
    return isinstance(annotations, list) and not any("label" in as_record(entry) for entry in annotations)


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The newest choice of each annotator for each task; of several classes, also the choice of none."""
    labels, annotations, notes = Collector(columns), list[_Annotation](), list[str]()
    for file in files:
        read_one = _read_table if is_table(file) else _read_tasks
        notes += read_one(file, columns, labels, annotations)
    _add_newest(labels, annotations)
    return [labels.rows(*notes)]


def _read_tasks(
    file: InputFile, columns: Columns, labels: Collector, annotations: list[_Annotation]
) -> list[str]:
    """Add annotations and texts of a JSON export; returns notes."""
    tasks = records_of(file)
    questions = dict.fromkeys(
        question for task in tasks for entry in _entries(task) for question, _ in _choices(entry)
    )
    what = "choices (annotations[].result[].value.choices)"
    question = choose_question(list(questions), columns.label, file.name, what)
    for number, task in enumerate(tasks):
        data = as_record(task.get("data"))
        item = _item(task, data, columns.item, f"{file.name}, task {number}")
        labels.text(item, first_text(data))
        for entry in _entries(task):
            choices = [c for own, listed in _choices(entry) if own == question for c in listed]
            cancelled = bool(entry.get("was_cancelled") or entry.get("skipped"))
            by = entry.get("completed_by")
            annotations.append(_annotation(item, _annotator(by), choices, entry, entry.get("id"), cancelled))
    return [f"{file.name}: Label Studio's export, answers to {question!r}."]


def _read_table(
    file: InputFile, columns: Columns, labels: Collector, annotations: list[_Annotation]
) -> list[str]:
    """Add annotations and texts of a JSON-MIN, CSV or TSV export; returns notes."""
    table = Table(file)
    question, notes = table.question(columns.label)
    for number, row in enumerate(table.rows):
        item = identifier(row, (ITEM_FIELD, columns.item or "id"), f"{file.name}, row {number}")
        labels.text(item, first_text({key: value for key, value in row.items() if key != question}))
        if row.get("annotation_id") in (None, ""):
            continue  # a task without annotations
        by = row.get(columns.annotator or "annotator")
        by = None if by == "None" else by  # the tables' word for no user
        choices = table.choices(row, question)
        annotations.append(_annotation(item, by, choices, row, row.get("annotation_id"), cancelled=False))
    return [f"{file.name}: Label Studio's export, one row per annotation, answers to {question!r}.", *notes]


def _annotation(
    item: str, annotator: Any, choices: list[Any], entry: Mapping[str, Any], number: Any, cancelled: bool
) -> _Annotation:
    time = as_seconds(entry.get("updated_at"))
    if math.isnan(time):
        time = as_seconds(entry.get("created_at"))
    try:
        own = float(number)
    except (TypeError, ValueError, OverflowError):
        own = math.nan
    return _Annotation(item, annotator, choices, time, own, cancelled)


def _add_newest(labels: Collector, annotations: Iterable[_Annotation]) -> None:
    """Add the newest annotation of each annotator for each item, in an order that all forms share.

    Cancelled annotations are left out first. The newest is the one with the highest `updated_at`, else
    `created_at`, else id, else the last one in the file. Where it does not answer the question, the annotator
    has withdrawn an earlier answer.
    """
    by_item: dict[str, list[_Annotation]] = {}
    for annotation in annotations:
        if annotation.cancelled:
            labels.leave_out("cancelled annotation")
        else:
            by_item.setdefault(annotation.item, []).append(annotation)
    for listed in by_item.values():
        listed.sort(key=lambda own: (_or_least(own.time), _or_least(own.number)))
        names, _ = as_ids([own.annotator for own in listed], "annotator")
        newest = {name: place for place, name in enumerate(names)}
        for place, (name, own) in enumerate(zip(names, listed, strict=True)):
            if name is not None and newest[name] != place:
                newer = "with a newer one by the same annotator for the same item"
                labels.leave_out(f"annotation {newer}", f"annotations {newer}")
            else:
                labels.add_choices(
                    own.item, own.annotator, own.choices, own.time,
                    ("annotation", "annotations"), "with several choices", "without a choice",
                )  # fmt: skip


def _or_least(number: float) -> float:
    return -math.inf if math.isnan(number) else number


def _entries(task: Record) -> list[Record]:
    listed = as_list(task.get("annotations", task.get("completions")))
    return [entry for entry in listed if isinstance(entry, dict)]


def _choices(annotation: Record) -> Iterator[tuple[str, list[Any]]]:
    """Questions and the choices that answer them."""
    for answer in as_list(annotation.get("result")):
        value = as_record(as_record(answer).get("value"))
        if "choices" in value:
            choices = value["choices"]
            name = str(answer.get("from_name", "choice"))[:200]
            yield name, choices if isinstance(choices, list) else [choices]


def _annotator(by: Any) -> Any:
    if isinstance(by, dict):
        return next((by[key] for key in ("email", "username", "id") if by.get(key) not in (None, "")), None)
    return by


def _item(task: Record, data: Record, field: str | None, where: str) -> str:
    if data.get(ITEM_FIELD) not in (None, ""):
        return identifier(data, (ITEM_FIELD,), where)
    if field is None:
        return identifier(task if "id" in task else data, ("id",), where)
    return identifier(data if field in data else task, (field,), where)
