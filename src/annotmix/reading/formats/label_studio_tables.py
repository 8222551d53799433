"""Label Studio's exports with one row per annotation: JSON-MIN, CSV and TSV.

A row has the fields of the task's data, the task's `id`, one field per answered question, and `annotator`,
`annotation_id`, `created_at`, `updated_at` and `lead_time`. A single choice is text; several choices are
`{"choices": [...]}`; answers about several regions are a list of both. Cancelled annotations are not in the
file, and a task without annotations is one row without an annotator.
"""

from __future__ import annotations

import json
import math
from typing import Any

from annotmix._common.words import some
from annotmix.reading.formats.records import choose_question
from annotmix.reading.input_files import InputFile

#: The field of a task's data that says which item of a run the task is about; it precedes the task's id.
ITEM_FIELD = "annotmix_item"
#: The beginning of all fields of the data that annotmix adds to what annotators see.
OWN_FIELDS = "annotmix_"
#: Fields of the data in which tasks of annotmix show items.
SHOWN_FIELDS = ("text", "image", "features")
#: Fields of an annotation that are neither data of the task nor answers; the first are always there.
_ALWAYS = ("annotator", "annotation_id", "lead_time")
_OWN = (*_ALWAYS, "id", "created_at", "updated_at", "agreement", "history")
#: With more different answers than this, and more than half of the answers different, a column is free text.
_MANY_ANSWERS = 50


def is_table(file: InputFile) -> bool:
    """Whether a file has the columns of Label Studio's annotations."""
    if file.records is not None:
        head = file.records[:20]
        return sum(all(key in record for key in _ALWAYS) for record in head) * 2 > len(head)
    return set(_ALWAYS) <= set(file.table.columns)


class Table:
    """The rows of a file, and the columns that may hold answers.

    Attributes
    ----------
    rows : list of dict
    """

    def __init__(self, file: InputFile):
        self._name = file.name
        columns = list(file.table.columns)
        if len(set(columns)) < len(columns):
            raise ValueError(f"{file.name!r} has several columns of one name; export it anew.")
        self.rows: list[dict[str, Any]] = (
            file.records if file.records is not None else file.table.to_dict("records")
        )
        data = _before_id(file)
        if ITEM_FIELD in columns:
            data |= {column for column in columns if column.startswith(OWN_FIELDS)} | {*SHOWN_FIELDS}
        self._named = [column for column in columns if column not in _OWN]
        self._candidates = [column for column in self._named if column not in data]

    def choices(self, row: dict[str, Any], question: str) -> list[Any]:
        """The choices that answer a question."""
        return _choices(row.get(question)) or []

    def question(self, wanted: str | None) -> tuple[str, list[str]]:
        """The column of the answers, and a note about columns that may hold answers, too.

        Answers differ between annotations of a task, data do not. A column that never does may be either.
        """
        answers = {column: self._answers(column) for column in self._candidates}
        differing = [column for column, own in answers.items() if own is not None and own.differ]
        possible = [column for column, own in answers.items() if own is not None and own.repeat]
        maybe = [column for column in possible if column not in differing]
        if wanted in self._named:
            return str(wanted), []
        if wanted is None and len(differing) == 1:
            return differing[0], self._note(maybe)
        questions = [*differing, *maybe] or self._candidates
        return choose_question(questions, wanted, self._name, "column with choices"), []

    def _note(self, columns: list[str]) -> list[str]:
        if not columns:
            return []
        return [
            f"The columns {some(columns)} are the same in all annotations of a task and were read as its "
            "data; where one answers a question, name it with --label NAME."
        ]

    def _answers(self, column: str) -> _Answers | None:
        """The answers in a column, None where it holds anything but choices."""
        own = _Answers()
        for row in self.rows:
            choices = _choices(row.get(column))
            if choices is None:
                return None
            if row.get("annotation_id") not in (None, ""):
                own.add(str(row.get("id")), json.dumps(choices, default=str))
        return None if own.free_text else own


class _Answers:
    """Answers in one column, to tell questions from data."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}
        self._count: dict[str, int] = {}
        self.differ = False

    def add(self, task: str, answer: str) -> None:
        self.differ |= self._first.setdefault(task, answer) != answer
        self._count[answer] = self._count.get(answer, 0) + 1

    @property
    def free_text(self) -> bool:
        return len(self._count) > max(_MANY_ANSWERS, sum(self._count.values()) // 2)

    @property
    def repeat(self) -> bool:
        """Whether tasks share an answer, and there is more than one."""
        return 1 < len(self._count) < len(self._first)


def _before_id(file: InputFile) -> set[str]:
    """Fields that are data of the task: JSON-MIN has them before the task's id. Other forms are sorted."""
    fields: set[str] = set()
    for record in file.records or []:
        keys = list(record)
        if "id" in keys:
            fields.update(keys[: keys.index("id")])
    return fields


def _choices(cell: Any) -> list[Any] | None:
    """The choices in a cell, None where it holds no choices."""
    if cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell)):
        return []
    value = cell
    if isinstance(cell, str) and cell[:1] in ("{", "["):
        try:
            value = json.loads(cell)
        except (ValueError, RecursionError):
            return [cell]  # a class that is called so
    choices: list[Any] = []
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict):
            if not isinstance(part.get("choices"), list):
                return None
            choices += part["choices"]
        else:
            choices.append(part)
    return choices
