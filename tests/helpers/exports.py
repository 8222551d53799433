"""Exports of labelling tools, made by hand after their documented formats."""

from __future__ import annotations

import json


def _task(number, text, *annotations):
    return {
        "id": number,
        "data": {"text": text, "url": f"https://example.com/{number}"},
        "annotations": list(annotations),
        "predictions": [],
        "created_at": "2021-03-09T21:52:49.513742Z",
        "project": 83,
    }


def _annotation(by, *choices, cancelled=False, question="sentiment"):
    answer = {
        "id": "Dx_aB91ISN",
        "from_name": question,
        "to_name": "text",
        "type": "choices",
        "value": {"choices": list(choices)},
    }
    result = [answer] if choices else []
    return {"id": 1, "completed_by": by, "result": result, "was_cancelled": cancelled, "ground_truth": False}


ANNA, BEN = {"id": 7, "email": "anna@example.com"}, 12

#: Label Studio: three tasks, two people; one annotation is cancelled, one has two choices, one has none.
LABEL_STUDIO = [
    _task(101, "good film", _annotation(ANNA, "Positive"), _annotation(BEN, "Positive")),
    _task(102, "bad film", _annotation(ANNA, "Negative"), _annotation(BEN, "Positive", cancelled=True)),
    _task(
        103, "a film", _annotation(ANNA, "Positive", "Negative"), _annotation(BEN, "Negative"), _annotation(9)
    ),
]

#: doccano: one file an annotator, in the fields of its versions.
DOCCANO = {
    "anna": [
        {"id": 1, "text": "good film", "label": ["pos"]},
        {"id": 2, "text": "bad film", "label": ["neg"]},
        {"id": 3, "text": "a film", "label": []},
    ],
    "ben": [
        {"id": 1, "data": "good film", "labels": ["pos"]},
        {"id": 2, "data": "bad film", "cats": {"pos": 1.0, "neg": 0.0}},
        {"id": 3, "data": "a film", "label": ["pos", "neg"]},
    ],
}


def _answer(text, session, answer="accept", **more):
    shared = {"_input_hash": len(text), "_task_hash": 5, "_session_id": session, "_view_id": "choice"}
    return {"text": text, "answer": answer, **shared, **more}


_OPTIONS = [{"id": "POS", "text": "positive"}, {"id": "NEG", "text": "negative"}]
#: Prodigy: choices; an ignored answer, one with two choices, and one by `_annotator_id`.
PRODIGY = [
    _answer("good film", "films-anna", options=_OPTIONS, accept=["POS"]),
    _answer("good film", "films-ben", options=_OPTIONS, accept=["NEG"], _annotator_id="films-b"),
    _answer("bad film", "films-anna", options=_OPTIONS, accept=["NEG"]),
    _answer("bad film", "films-ben", "ignore", options=_OPTIONS, accept=[]),
    _answer("a film", "films-anna", options=_OPTIONS, accept=["POS", "NEG"]),
]


def lines(records):
    return "\n".join(json.dumps(record) for record in records) + "\n"
