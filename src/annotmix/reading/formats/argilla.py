"""Argilla's exports: records with the responses of several users to one or more questions.

Argilla 2 writes nested records (`records.to_json`: `fields`, and `responses` by question, each with `value`
and `user_id`) and flat ones (`to_list(flatten=True)`, `to_datasets`, the hub: `mood.responses`,
`mood.responses.users` and `mood.responses.status`). Its server, and Argilla 1, have a list of `responses`
with `user_id`, `status` and `values` by question. Argilla 1 writes `mood` as a list of `user_id`, `value`
and `status` to the hub, and older records with one `annotation` by an `annotation_agent`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from annotmix.reading.formats import Columns, LabelRows
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

_RESPONSES, _USERS, _STATUS = ".responses", ".responses.users", ".responses.status"
#: Statuses of a response that counts; None where an export does not say.
_FINAL = ("submitted", "validated", "default", None)
_IDS = ("id", "external_id", "_server_id")


class _Response(NamedTuple):
    """What one user said about one question."""

    question: str
    annotator: Any
    value: Any
    status: str | None
    time: Any = None


def recognises(file: InputFile, columns: Columns) -> bool:
    """Whether records hold responses in one of Argilla's forms."""
    return file.records is not None and most_records(_unwrap(file.records), _is_record)


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The submitted responses with one class."""
    return [_read(file.name, _unwrap(records_of(file)), columns) for file in files]


def _is_record(record: Record) -> bool:
    nested = "fields" in record and isinstance(record.get("responses"), dict | list)
    flat = any(isinstance(key, str) and key.endswith(_USERS) for key in record)
    hub = any(f"{key}-suggestion" in record and _is_hub(value) for key, value in record.items())
    return nested or flat or hub or ("annotation_agent" in record and "annotation" in record)


def _read(name: str, records: list[Record], columns: Columns) -> LabelRows:
    responses = [list(_responses(record)) for record in records]
    questions = list(dict.fromkeys(own.question for listed in responses for own in listed))
    question = choose_question(questions, columns.label, name, "responses")
    labels, unknown = Collector(columns), False
    for number, (record, listed) in enumerate(zip(records, responses, strict=True)):
        item = _item(record, columns.item, number, f"{name}, record {number}")
        labels.text(item, _text(record))
        for own in listed:
            if own.question != question:
                continue
            values = own.value if isinstance(own.value, list) else [own.value]
            if own.status not in _FINAL:
                labels.leave_out(f"{own.status:.20} response")
            elif any(isinstance(value, dict | list) for value in values):
                labels.leave_out("response that is no class", "responses that are no class")
            elif columns.several and own.value in (None, ""):
                labels.leave_out("empty response")  # a question without an answer; [] is one without a class
            elif not columns.several and len(values) == 1 and values[0] in (None, ""):
                labels.leave_out("empty response")
            else:
                labels.add_choices(
                    item,
                    own.annotator,
                    values,
                    own.time,
                    ("response", "responses"),
                    "with several classes",
                    "without a class",
                )
                unknown |= own.status is None and (columns.several or len(values) == 1)
    notes = [f"{name}: Argilla's records, responses to {question!r}."]
    if unknown:
        notes.append(
            "This export does not say which responses are drafts or discarded, so all count; an export with "
            "to_datasets or to_list(flatten=True) says so."
        )
    return labels.rows(*notes)


def _responses(record: Record) -> Iterator[_Response]:
    responses = record.get("responses")
    if isinstance(responses, dict):
        for question, listed in responses.items():
            for own in map(as_record, as_list(listed)):
                yield _response(question, own, own.get("value"))
    elif isinstance(responses, list):
        for own in map(as_record, responses):
            for question, value in as_record(own.get("values")).items():
                yield _response(question, own, as_record(value).get("value"))
    elif "annotation_agent" in record:
        # its event_timestamp is the time of the record, not of the annotation
        own = {"user_id": record.get("annotation_agent"), "status": record.get("status")}
        if record.get("annotation") not in (None, [], ""):
            yield _response("annotation", own, record["annotation"])
    for key, listed in record.items():
        if (
            isinstance(key, str)
            and key.endswith(_RESPONSES)
            and key.removesuffix(_RESPONSES) + _USERS in record
        ):
            yield from _flat(record, key.removesuffix(_RESPONSES))
        elif f"{key}-suggestion" in record and _is_hub(listed):
            for own in _hub(listed):
                yield _response(key, own, own.get("value"))


def _response(question: Any, own: Record, value: Any) -> _Response:
    status = own.get("status")
    time = own.get("updated_at") or own.get("inserted_at")
    annotator = own.get("user_id")
    return _Response(
        str(question)[:200], annotator, value, None if status is None else str(status).lower(), time
    )


def _flat(record: Record, question: str) -> Iterator[_Response]:
    values, users, statuses = (as_list(record.get(question + end)) for end in (_RESPONSES, _USERS, _STATUS))
    if len(users) != len(values):
        raise ValueError(
            f"The record {record.get('id')!r:.60} has {len(values)} values in {question + _RESPONSES!r}, but "
            f"{len(users)} users; expected one user per value. Export the records anew."
        )
    for number, (value, user) in enumerate(zip(values, users, strict=True)):
        status = statuses[number] if number < len(statuses) else None
        yield _response(question, {"user_id": user, "status": status}, value)


def _is_hub(value: Any) -> bool:
    """Whether a value is a list of responses, or a record of lists, as Argilla 1 writes it to the hub."""
    parts = [value] if isinstance(value, dict) else as_list(value)
    return isinstance(value, dict | list) and all(
        isinstance(part, dict) and {"user_id", "value"} <= set(part) for part in parts
    )


def _hub(value: Any) -> list[Record]:
    if isinstance(value, list):
        return value
    columns = {key: as_list(value.get(key)) for key in ("user_id", "value", "status")}
    return [
        {key: listed[n] for key, listed in columns.items() if n < len(listed)}
        for n in range(len(columns["value"]))
    ]


def _unwrap(records: list[Record]) -> list[Record]:
    """The records of `to_dict`, which writes one object: columns as lists, or records by their ids."""
    if len(records) != 1:
        return records
    values = list(records[0].values())
    if "id" in records[0] and all(isinstance(value, list) for value in values):
        lengths = {len(value) for value in values}
        if len(lengths) == 1:
            return [dict(zip(records[0], row, strict=True)) for row in zip(*values, strict=True)] or records
    if values and all(isinstance(value, dict) and _is_record(value) for value in values):
        return values
    return records


def _item(record: Record, field: str | None, number: int, where: str) -> str:
    if field is not None:
        inside = {**as_record(record.get("metadata")), **as_record(record.get("fields")), **record}
        return identifier(inside, (field,), where)
    if all(record.get(key) in (None, "") for key in _IDS):
        return f"record-{number}"
    return identifier(record, _IDS, where)


def _text(record: Record) -> str | None:
    """The text of a record: a field that is called so, else the longest field."""
    for key in ("fields", "inputs"):
        fields = as_record(record.get(key))
        texts = [value for value in fields.values() if isinstance(value, str)]
        if texts:
            return first_text(fields) or max(texts, key=len)
    return first_text(record)
