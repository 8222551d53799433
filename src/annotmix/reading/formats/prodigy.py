"""Prodigy's JSON Lines export: one line per answer of a session.

A line has `_session_id` or `_annotator_id`, `_input_hash`, `_timestamp`, `answer` ("accept", "reject" or
"ignore"), and either the options that were chosen in `accept`, or one `label` that was accepted or rejected.
See prodi.gy/docs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from annotmix._common.words import count, some
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

#: The name of a session without one: the time when it began.
_STARTED = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")


def recognises(file: InputFile, columns: Columns) -> bool:
    """Whether records hold an answer, and a session or a hash of Prodigy."""
    return most_records(
        file,
        lambda record: (
            "answer" in record
            and any(key in record for key in ("_session_id", "_annotator_id", "_input_hash"))
        ),
    )


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """One choice, or one label that was accepted; where only one label occurs, also its rejection."""
    return [_read(file.name, records_of(file), columns) for file in files]


def _read(name: str, records: list[Record], columns: Columns) -> LabelRows:
    offered = {
        str(record.get("label"))
        for record in records
        if not _is_choice(record) and record.get("label") is not None
    }
    binary = next(iter(offered)) if len(offered) == 1 else None
    labels, annotators = Collector(columns), set[Any]()
    for number, record in enumerate(records):
        item = _item(record, columns.item, f"{name}, entry {number}")
        labels.text(item, first_text(record))
        annotator = (
            record.get("_annotator_id") or record.get("_session_id")
            if columns.annotator is None
            else record.get(columns.annotator)
        )
        annotators |= {annotator} if isinstance(annotator, str) else set()
        answer, time = record.get("answer"), record.get("_timestamp")
        if answer not in ("accept", "reject"):
            labels.leave_out("ignored answer")
        elif _is_choice(record):
            if answer == "reject":
                labels.leave_out("rejected question")
                continue
            what = ("answer", "answers")
            labels.add_choices(
                item, annotator, record["accept"], time, what, "with several choices", "without a choice"
            )
        elif columns.several:
            alone = "about a single label (nothing is said about the others)"
            labels.leave_out(f"answer {alone}", f"answers {alone}")
        elif record.get("label") is None:
            labels.leave_out("answer without a label", "answers without a label")
        elif answer == "accept":
            labels.add(item, annotator, record["label"], time)
        elif binary is not None:
            labels.add(item, annotator, f"not {binary}", time)
        else:
            labels.leave_out(
                "rejected label (it does not say which of the others is right)",
                "rejected labels (they do not say which of the others is right)",
            )
    return labels.rows(f"{name}: Prodigy's export, one line per answer.", *_unnamed(annotators))


def _unnamed(annotators: set[Any]) -> list[str]:
    """A note about sessions without a name, which Prodigy names after the time when they began."""
    unnamed = sorted(own for own in annotators if isinstance(own, str) and _STARTED.fullmatch(own))
    if not unnamed:
        return []
    have = count(
        len(unnamed),
        "session has no name and counts as one annotator",
        "sessions have no name and count as one annotator each",
    )
    return [
        f"{have}: {some(unnamed)}. One person may have begun several; name sessions with ?session=NAME in "
        "Prodigy's address."
    ]


def _is_choice(record: Record) -> bool:
    return isinstance(record.get("accept"), list)


def _item(record: Record, field: str | None, where: str) -> str:
    if field is None:
        return identifier(record, ("_input_hash", "id", "text", "image"), where)
    meta = as_record(record.get("meta"))
    return identifier(record if field in record else {**record, **meta}, (field,), where)
