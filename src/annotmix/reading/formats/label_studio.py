"""Label Studio's JSON export: a list of tasks with the annotations of several annotators.

A task has `id`, `data` and `annotations`. An annotation has `completed_by` (a number, or an object with an
`email`), `was_cancelled` and `result`, a list of answers; the answer to a choice has `from_name` (the
question) and `value.choices`. See labelstud.io/guide/task_format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from annotmix._common.words import some
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.formats.records import (
    Collector,
    as_list,
    as_record,
    first_text,
    identifier,
    most_records,
    records_of,
)
from annotmix.reading.input_files import InputFile, Record


def recognises(file: InputFile, columns: Columns) -> bool:
    """Whether records hold a list of annotations."""
    return most_records(
        file, lambda record: isinstance(record.get("annotations", record.get("completions")), list)
    )


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The choices in all annotations that were not cancelled."""
    return [_read(file.name, records_of(file), columns) for file in files]


def _read(name: str, records: list[Record], columns: Columns) -> LabelRows:
    question = _question(records, columns.label, name)
    labels = Collector()
    for number, task in enumerate(records):
        data = as_record(task.get("data"))
        item = _item(task, data, columns.item, f"{name}, task {number}")
        labels.text(item, first_text(data))
        for annotation in _annotations(task):
            choices = [c for own, listed in _choices(annotation) if own == question for c in listed]
            if annotation.get("was_cancelled"):
                labels.leave_out("cancelled annotations")
            elif len(choices) == 1:
                labels.add(item, _annotator(annotation), choices[0])
            else:
                what = "with several choices" if choices else "without a choice"
                labels.leave_out(f"annotations {what}")
    return labels.rows(f"{name}: Label Studio's export, answers to {question!r}.")


def _question(records: list[Record], wanted: str | None, name: str) -> str:
    """The one question that is answered by choices, or the one that the user named."""
    questions = list(
        dict.fromkeys(
            question
            for task in records
            for annotation in _annotations(task)
            for question, _ in _choices(annotation)
        )
    )
    if wanted is None and len(questions) == 1:
        return questions[0]
    if wanted in questions:
        return str(wanted)
    if not questions:
        raise ValueError(
            f"{name!r} looks like Label Studio's export, but holds no choices "
            "(annotations[].result[].value.choices). "
            "Only answers to a choice are labels of a whole item."
        )
    what = "several questions with choices" if wanted is None else f"no question {wanted!r}"
    raise ValueError(f"{name!r} has {what}: {some(questions, 12)}. Choose one with --label NAME.")


def _annotations(task: Record) -> list[Record]:
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


def _annotator(annotation: Record) -> Any:
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        return next((by[key] for key in ("email", "username", "id") if by.get(key) not in (None, "")), None)
    return by


def _item(task: Record, data: Record, field: str | None, where: str) -> str:
    if field is None:
        return identifier(task if "id" in task else data, ("id",), where)
    return identifier(data if field in data else task, (field,), where)
