"""Helpers for exports in JSON; a record may hold anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from annotmix._common.words import count, some
from annotmix.labels.columns import ALIASES
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.input_files import InputFile, Record
from annotmix.reading.label_cells import as_sets
from annotmix.reading.times import as_seconds
from annotmix.reading.values import LONGEST_TEXT, as_ids, as_texts, readable


class Collector:
    """Collects labels one by one, the texts of their items, and counts of records that are left out.

    Parameters
    ----------
    columns : Columns, optional
        Its `missing` are labels that stand for no label. With `several`, labels are lists of classes.
    """

    def __init__(self, columns: Columns | None = None) -> None:
        self._columns = columns or Columns()
        self._rows: list[tuple[str, Any, Any]] = []
        self._times: list[float] = []
        self._texts: dict[str, str] = {}
        self._left_out = Counter[tuple[str, str]]()
        self._several = False

    def add(self, item: str, annotator: Any, label: Any, time: Any = None) -> None:
        """Add a label, or a list of classes; `time` is anything that `as_seconds` reads."""
        self._rows.append((item, annotator, label))
        self._times.append(as_seconds(time))

    def add_choices(
        self,
        item: str,
        annotator: Any,
        choices: list[Any],
        time: Any,
        answers: tuple[str, str],
        several: str,
        none: str,
    ) -> None:
        """Add an answer with any number of classes: all of them, or the one where only one is wanted.

        `answers` is what a tool calls one answer, and several of them; `several` and `none` are the ends of
        messages about those that are left out: "with several choices".
        """
        if self._columns.several:
            self.add(item, annotator, choices, time)
        elif len(choices) == 1:
            self.add(item, annotator, choices[0], time)
        else:
            what = several if choices else none
            self.leave_out(*(f"{noun} {what}" for noun in answers))
            self._several |= bool(choices)

    def leave_out(self, one: str, many: str | None = None) -> None:
        """Count something that gives no label: "cancelled annotation"; `one` and `many` as in `count`."""
        self._left_out[one, f"{one}s" if many is None else many] += 1

    def text(self, item: str, text: str | None) -> None:
        """Keep the text of an item; the first one counts."""
        if text is not None:
            self._texts.setdefault(item, text[:LONGEST_TEXT])

    def rows(self, *notes: str) -> LabelRows:
        """All labels as text."""
        said = [
            *notes,
            *(
                count(n, f"{one} was left out.", f"{many} were left out.")
                for (one, many), n in self._left_out.items()
            ),
        ]
        if self._several:
            said.append("--multi-label reads answers with several classes.")
        columns = []
        for number, what in enumerate(("item's id", "annotator", "label")):
            values = [row[number] for row in self._rows]
            if what == "label" and self._columns.several:
                texts, changed = as_sets(values, self._columns, split=False)
            else:
                missing = ("nan", *self._columns.missing) if what == "label" else ("nan",)
                texts, changed = as_texts(values, what, missing)
            columns.append(texts)
            said += changed
        item, annotator, label = columns
        time = np.array(self._times, dtype=np.float64)
        known = None if np.isnan(time).all() else time
        return LabelRows(item, annotator, label, said, self._texts, time=known)


def records_of(file: InputFile) -> list[Record]:
    """The records of an export."""
    if file.records is None:
        raise ValueError(f"{file.name!r} is a table, but this format is JSON or JSON Lines.")
    return file.records


def most_records(records: InputFile | Sequence[Record], looks: Callable[[Record], bool]) -> bool:
    """Whether most of the first records look like this; a single odd record does not decide."""
    head = (records.records or [] if isinstance(records, InputFile) else records)[:20]
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


def choose_question(questions: Sequence[str], wanted: str | None, name: str, what: str) -> str:
    """The one question, or the one that the user named; an error lists them.

    Parameters
    ----------
    questions : sequence of str
        Questions of the export.
    wanted : str, optional
        The value of --label.
    name : str
        Name of the file.
    what : str
        What a file without questions lacks: "choices (annotations[].result[].value.choices)".
    """
    if wanted is None and len(questions) == 1:
        return questions[0]
    if wanted is not None and wanted in questions:
        return wanted
    if not questions:
        raise ValueError(
            f"{name!r} holds no {what}. Only answers that stand for one class of a whole item are labels."
        )
    problem = "several questions with answers" if wanted is None else f"no question {wanted!r}, only"
    raise ValueError(f"{name!r} has {problem}: {some(list(questions), 12)}. Choose one with --label NAME.")


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
