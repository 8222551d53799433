"""Prodigy's JSON Lines export: a line an answer of one session.

A line has `_session_id` or `_annotator_id`, `_input_hash`, `answer` ("accept", "reject" or "ignore"), and
either the options that were chosen in `accept`, or one `label` that was accepted or rejected. See
prodi.gy/docs.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from annotmix.reading.forms import Columns, Rows
from annotmix.reading.records import Collector, as_record, counted, first_text, identifier

Record = dict[str, Any]


def is_prodigy(record: Record) -> bool:
    """Whether a record looks like an answer in Prodigy."""
    return "answer" in record and any(
        key in record for key in ("_session_id", "_annotator_id", "_input_hash")
    )


def read_prodigy(records: list[Record], columns: Columns, name: str) -> Rows:
    """One choice, or one label that was accepted; of a single label in all, also its rejection."""
    asked = {
        str(record.get("label"))
        for record in records
        if not _is_choice(record) and record.get("label") is not None
    }
    binary = next(iter(asked)) if len(asked) == 1 else None
    found, left_out = Collector(), Counter[str]()
    for number, record in enumerate(records):
        where = f"{name}, entry {number}"
        item = _item(record, columns.task, where)
        found.text(item, first_text(record))
        annotator = (
            record.get("_annotator_id") or record.get("_session_id")
            if columns.worker is None
            else record.get(columns.worker)
        )
        answer = record.get("answer")
        if answer not in ("accept", "reject"):
            left_out["ignored answers"] += 1
        elif _is_choice(record):
            chosen = record["accept"] if answer == "accept" else []
            if len(chosen) == 1:
                found.add(item, annotator, chosen[0])
            else:
                left_out["answers with several choices" if chosen else "answers without a choice"] += 1
        elif record.get("label") is None:
            left_out["answers without a label"] += 1
        elif answer == "accept":
            found.add(item, annotator, record["label"])
        elif binary is not None:
            found.add(item, annotator, f"not {binary}")
        else:
            left_out["rejected labels (which of the others is right, they do not say)"] += 1
    return found.rows("prodigy", [f"{name}: Prodigy's export, a line an answer.", *counted(left_out)])


def _is_choice(record: Record) -> bool:
    return isinstance(record.get("accept"), list)


def _item(record: Record, given: str | None, where: str) -> str:
    meta = as_record(record.get("meta"))
    if given is not None:
        return identifier(record if given in record else {**record, **meta}, (given,), where)
    return identifier(record, ("_input_hash", "id", "text", "image"), where)
