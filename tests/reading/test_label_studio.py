"""Label Studio's JSON, JSON-MIN, CSV and TSV exports give the same labels."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from helpers.label_studio_project import kept, newest, projects, write
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from annotmix.reading import Columns, read_images, read_labels
from annotmix.reading.formats import label_studio
from annotmix.reading.input_files import InputFile

SAMPLES = Path(__file__).parent / "samples" / "label_studio"
FORMS = ["text_JSON.json", "text_JSON_MIN.json", "text_CSV.csv", "text_TSV.tsv"]


def triples(labelled):
    return set(
        labelled.annotations.to_long()[["item", "annotator", "label"]].itertuples(index=False, name=None)
    )


def same_labels(paths, columns):
    """The labels of several files, which must all be the same, with texts, times and orders."""
    first, *others = [read_labels([path], columns=columns) for path in paths]
    assert first.format == "label-studio"
    for other in others:
        assert other.format == "label-studio"
        pd.testing.assert_frame_equal(other.annotations.to_long(), first.annotations.to_long())
        assert other.annotations.annotators.tolist() == first.annotations.annotators.tolist()
        assert other.texts == first.texts
        assert other.time.tolist() == first.time.tolist()
    return first


def test_each_form_gives_the_same_labels():
    labelled = same_labels([SAMPLES / form for form in FORMS], Columns(label="mood"))
    assert {label for item, who, label in triples(labelled) if (item, who) == ("1", "3")} == {"good"}
    assert ("4", "1") not in {own[:2] for own in triples(labelled)}  # cancelled
    assert ("5", "2") not in {own[:2] for own in triples(labelled)}  # empty
    assert labelled.texts["1"] == "Such a great film #0"
    by_field = same_labels([SAMPLES / form for form in FORMS], Columns(label="mood", item="ref"))
    assert by_field.annotations.items[0] == "r0"


def test_several_choices_are_left_out_with_a_count():
    labelled = same_labels([SAMPLES / form for form in FORMS], Columns(label="tags"))
    assert {label for _, _, label in triples(labelled)} <= {"long", "sad", "funny"}
    for form in FORMS:
        notes = read_labels([SAMPLES / form], columns=Columns(label="tags")).notes
        assert any("with several choices w" in note for note in notes)
        assert any(note.startswith("1 annotation with a newer one by the same") for note in notes)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("label", [None, "annotation_id", "modo"])
def test_of_several_questions_one_is_named(form, label):
    with pytest.raises(ValueError, match=r"question.*'mood', 'tags'\. Choose one with --label NAME") as error:
        read_labels([SAMPLES / form], columns=Columns(label=label))
    assert "lead_time" not in str(error.value)
    assert "'ref'" not in str(error.value)


def test_one_question_needs_no_name(tmp_path):
    table = pd.read_csv(SAMPLES / "text_CSV.csv", dtype=str, keep_default_na=False).drop(columns="tags")
    table.assign(source="web").to_csv(tmp_path / "labels.csv", index=False)
    assert triples(read_labels([tmp_path / "labels.csv"])) == triples(
        read_labels([SAMPLES / "text_JSON.json"], columns=Columns(label="mood"))
    )


def test_a_column_that_may_be_a_question_is_mentioned(tmp_path):
    table = pd.read_csv(SAMPLES / "text_CSV.csv", dtype=str, keep_default_na=False).drop(columns="tags")
    table.assign(source=(table["id"].astype(int) % 2).map({0: "web", 1: "mail"})).to_csv(
        tmp_path / "labels.csv", index=False
    )
    labelled = read_labels([tmp_path / "labels.csv"])
    assert any("answers to 'mood'" in note for note in labelled.notes)
    assert any("'source'" in note and "--label NAME" in note for note in labelled.notes)


def test_the_newest_counts_by_time_then_by_id(tmp_path):
    def annotation(number, choice, **times):
        answer = {"from_name": "mood", "type": "choices", "value": {"choices": [choice]}}
        return {"id": number, "completed_by": 1, "result": [answer], **times}

    old, new = "2026-01-01T10:00:00Z", "2026-01-01T12:30:00+02:00"
    tasks = [
        [annotation(1, "a", updated_at=new), annotation(2, "b", updated_at=old)],
        [annotation(1, "a", created_at=new, updated_at=None), annotation(2, "b", created_at=old)],
        [annotation(2, "a"), annotation(1, "b")],
        [annotation(10, "a"), annotation(9, "b")],
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": n, "data": {}, "annotations": own} for n, own in enumerate(tasks)]))
    assert triples(read_labels([path])) == {(str(n), "1", "a") for n in range(4)}


def test_times_come_along():
    labelled = read_labels([SAMPLES / "text_CSV.csv"], columns=Columns(label="mood"))
    table = labelled.annotations.to_long().assign(time=labelled.time)
    own = table[(table["item"] == "1") & (table["annotator"] == "3")]
    assert own["time"].item() == pd.Timestamp("2026-11-18T07:29:35.203866Z").timestamp()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tasks=projects(), question=st.sampled_from(["mood", "tags"]))
def test_generated_projects_are_the_same_in_each_form(tmp_path, tasks, question):
    expected = newest(tasks, question)
    assume(expected)
    for path in write(tasks, tmp_path):
        (file,) = InputFile.each(path)
        assert label_studio.recognises(file, Columns())
        (rows,) = label_studio.read([file], Columns(label=question))
        assert sorted(zip(rows.item, rows.annotator, rows.label, strict=True)) == sorted(expected)
        assert set(rows.texts) == {
            str(task["id"]) for task in tasks if path.name == "JSON.json" or kept(task)
        }


def test_the_whole_exports_of_a_project(data_file):
    text = [data_file(f"label_studio/{form}") for form in FORMS]
    assert len(same_labels(text, Columns(label="mood")).annotations) == 114
    image = [data_file(f"label_studio/img_{form}") for form in ("JSON.json", "JSON_MIN.json", "CSV.csv")]
    labelled = same_labels(image, Columns(item="image"))
    assert len(labelled.annotations) == 180
    photos = data_file("label_studio/photos/digit 0.png").parent
    items = read_images(photos, labelled.annotations.items.tolist(), show=False)
    assert set(items.ids) == set(labelled.annotations.items)
    truth = json.loads(data_file("label_studio/img_truth.json").read_text("utf-8"))
    votes = labelled.annotations.to_long().groupby("item")["label"].agg(lambda own: own.mode()[0])
    named = {item: path.name.replace(" ", "_") for item, path in zip(items.ids, items.X, strict=True)}
    assert sum(truth[named[item]] == label for item, label in votes.items()) > 50
