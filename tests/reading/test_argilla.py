"""Argilla's records as versions 2.8 and 1.29 write them; see samples/README.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annotmix.reading import Columns, read_labels

SAMPLES = Path(__file__).parent / "samples" / "argilla"
WITH_STATUS = ["flat.json", "names.json", "hub.parquet", "saved"]
USERS = [f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2, 3)]


def triples(labelled):
    return set(
        labelled.annotations.to_long()[["item", "annotator", "label"]].itertuples(index=False, name=None)
    )


def submitted(question):
    """The submitted responses with one value, by a slow look at the flat records."""
    return {
        (record["id"], user, str(value[0] if isinstance(value, list) else value))
        for record in json.loads((SAMPLES / "flat.json").read_text("utf-8"))
        if record[f"{question}.responses"] is not None
        for value, user, status in zip(
            *(record[f"{question}.responses{end}"] for end in ("", ".users", ".status")), strict=True
        )
        if status == "submitted" and (not isinstance(value, list) or len(value) == 1)
    }


@pytest.mark.parametrize("name", WITH_STATUS)
@pytest.mark.parametrize("question", ["mood", "tags", "stars"])
def test_submitted_responses_count(name, question):
    if name in ("hub.parquet", "saved"):
        pytest.importorskip("pyarrow")
    labelled = read_labels([SAMPLES / name], columns=Columns(label=question))
    assert labelled.format == "argilla"
    assert triples(labelled) == submitted(question)
    assert "1 discarded response was left out." in labelled.notes
    assert labelled.texts["r1"] == "I left after ten minutes"


@pytest.mark.parametrize("name", ["records.json", "index.json"])
def test_nested_records_do_not_say_what_is_submitted(name):
    labelled = read_labels([SAMPLES / name], columns=Columns(label="mood"))
    assert labelled.format == "argilla"
    assert triples(labelled) > submitted("mood")
    assert any("does not say which responses are drafts" in note for note in labelled.notes)


@pytest.mark.parametrize("name", ["v1_hub.parquet", "v1_records.json"])
def test_feedback_datasets_of_argilla_1(name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    labelled = read_labels([SAMPLES / name], columns=Columns(label="mood"))
    expected = {
        (f"r{n}", user, "good" if (n + k) % 2 else "bad")
        for n in range(3)
        for k, user in enumerate(USERS)
        if (n, k) != (1, 1)
    }
    assert triples(labelled) == expected
    assert "1 discarded response was left out." in labelled.notes
    assert labelled.texts["r2"] == "Wonderful acting"


def test_text_classification_of_argilla_1():
    labelled = read_labels([SAMPLES / "v1_text.json"])
    assert labelled.format == "argilla"
    assert triples(labelled) == {("1", "ann", "good"), ("3", "bob", "bad")}
    assert "1 discarded response was left out." in labelled.notes


def test_records_of_the_server_have_times(tmp_path):
    response = {
        "id": "x", "user_id": "u1", "status": "submitted", "values": {"mood": {"value": "good"}},
        "inserted_at": "2024-05-01T12:00:00", "updated_at": "2024-05-01T12:30:00",
    }  # fmt: skip
    draft = {**response, "user_id": "u2", "status": "draft"}
    record = {"id": "7", "external_id": None, "fields": {"review": "Fine."}, "responses": [response, draft]}
    path = tmp_path / "records.json"
    path.write_text(json.dumps({"items": [record]}["items"]))
    labelled = read_labels([path])
    assert triples(labelled) == {("7", "u1", "good")}
    assert labelled.time.tolist() == [1714566600.0]
    assert labelled.texts == {"7": "Fine."}


def test_questions_are_listed_and_records_without_ids_numbered(tmp_path):
    with pytest.raises(ValueError, match=r"several questions .*'mood', 'tags', 'stars'.*--label NAME"):
        read_labels([SAMPLES / "flat.json"])
    records = json.loads((SAMPLES / "records.json").read_text("utf-8"))
    path = tmp_path / "records.json"
    path.write_text(json.dumps([{**record, "id": None} for record in records]))
    assert "record-0" in read_labels([path], columns=Columns(label="mood")).annotations.items
    by_field = read_labels([path], columns=Columns(label="mood", item="text"))
    assert by_field.annotations.items[0] == "Such a great film"
    flat = [{"id": 1, "mood.responses": ["a", "b"], "mood.responses.users": ["u"]}]
    path.write_text(json.dumps(flat))
    with pytest.raises(ValueError, match=r"record 1 has 2 values in 'mood\.responses', but 1 users"):
        read_labels([path])
