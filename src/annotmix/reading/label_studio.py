"""Label Studio's JSON export: a list of tasks with the annotations of several people.

A task has `id`, `data` and `annotations`. An annotation has `completed_by` (a number, or an object with an
`email`), `was_cancelled` and `result`, a list of answers; the answer to a choice has `from_name` (the
question) and `value.choices`. See labelstud.io/guide/task_format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from annotmix._common.words import some
from annotmix.reading.forms import Columns, Rows
from annotmix.reading.records import Collector, as_list, as_record, counted, first_text, identifier

Record = dict[str, Any]


def is_label_studio(record: Record) -> bool:
    """Whether a record looks like a task of Label Studio."""
    return isinstance(record.get("annotations", record.get("completions")), list)


def read_label_studio(records: list[Record], columns: Columns, name: str) -> Rows:
    """Choices of all annotations that were not cancelled."""
    question = _question(records, columns.label, name)
    found, left_out = Collector(), Counter[str]()
    for number, task in enumerate(records):
        data = as_record(task.get("data"))
        item = _item(task, data, columns.task, f"{name}, task {number}")
        found.text(item, first_text(data))
        for annotation in _annotations(task):
            if annotation.get("was_cancelled"):
                left_out["cancelled annotations"] += 1
                continue
            chosen = [
                choice for asked, choices in _answers(annotation) if asked == question for choice in choices
            ]
            if len(chosen) == 1:
                found.add(item, _annotator(annotation), chosen[0])
            elif chosen:
                left_out["annotations with several choices"] += 1
            else:
                left_out["annotations without a choice"] += 1
    notes = [f"{name}: Label Studio's export, answers to {question!r}.", *counted(left_out)]
    return found.rows("label-studio", notes)


def _question(records: list[Record], given: str | None, name: str) -> str:
    """The one question that is answered by choices, or the one that was named."""
    asked = Counter(
        question
        for task in records
        for annotation in _annotations(task)
        for question, _ in _answers(annotation)
    )
    if given is None and len(asked) == 1:
        return next(iter(asked))
    if given in asked:
        return str(given)
    if not asked:
        raise ValueError(
            f"{name!r} looks like Label Studio's export, but holds no choices "
            "(annotations[].result[].value.choices). "
            "Only answers to a choice are labels of a whole item."
        )
    what = "several questions with choices" if given is None else f"no question {given!r}"
    raise ValueError(f"{name!r} has {what}: {some(list(asked), 12)}. Choose one with --label NAME.")


def _annotations(task: Record) -> list[Record]:
    return [
        entry
        for entry in as_list(task.get("annotations", task.get("completions")))
        if isinstance(entry, dict)
    ]


def _answers(annotation: Record) -> Iterator[tuple[str, list[Any]]]:
    for answer in as_list(annotation.get("result")):
        value = answer.get("value") if isinstance(answer, dict) else None
        if isinstance(value, dict) and "choices" in value:
            choices = value["choices"]
            yield (
                str(answer.get("from_name", "choice"))[:200],
                choices if isinstance(choices, list) else [choices],
            )


def _annotator(annotation: Record) -> Any:
    by = annotation.get("completed_by")
    if isinstance(by, dict):
        return next((by[key] for key in ("email", "username", "id") if by.get(key) not in (None, "")), None)
    return by


def _item(task: Record, data: Record, given: str | None, where: str) -> str:
    if given is None:
        return identifier(task, ("id",), where) if "id" in task else identifier(data, ("id",), where)
    return identifier(data if given in data else task, (given,), where)
