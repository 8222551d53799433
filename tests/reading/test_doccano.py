"""doccano's exports as version 1.8 writes them: a ZIP file with one file per annotator."""

from __future__ import annotations

import json
import zipfile

import pandas as pd
import pytest

from annotmix.reading import read_labels
from annotmix.reading.formats import Columns

EXPORT = {
    "admin": [(1, "Such a great film", ["good"]), (2, "A dull mess", ["bad", "long"]), (3, "C", ["C#"])],
    "ann": [(1, "Such a great film", ["long"]), (2, "A dull mess", ["bad"]), (3, "C", [])],
}
LABELS = {("1", "admin", "good"), ("3", "admin", "C#"), ("1", "ann", "long"), ("2", "ann", "bad")}


def text_of(rows, ending):
    """A file after the rules of doccano's formatters and writers."""
    table = pd.DataFrame(rows, columns=["id", "text", "label"]).assign(Comments=[[] for _ in rows])
    if ending == "csv":
        joined = {name: table[name].map(lambda own: "#".join(sorted(own))) for name in ("label", "Comments")}
        return table.assign(**joined).to_csv(index=False)
    table["label"] = table["label"].map(sorted)
    return table.to_json(orient="records", force_ascii=False, lines=ending == "jsonl")


def triples(labelled):
    return set(
        labelled.annotations.to_long()[["item", "annotator", "label"]].itertuples(index=False, name=None)
    )


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv"])
@pytest.mark.parametrize("packed", [True, False])
def test_each_form(tmp_path, ending, packed):
    if packed:
        path = tmp_path / "export.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name, rows in EXPORT.items():
                archive.writestr(f"{name}.{ending}", text_of(rows, ending))
        paths = [path]
    else:
        paths = [tmp_path / f"{name}.{ending}" for name in EXPORT]
        for path, rows in zip(paths, EXPORT.values(), strict=True):
            path.write_text(text_of(rows, ending))
    labelled = read_labels(paths)
    assert labelled.format == "doccano"
    assert triples(labelled) == LABELS
    assert "1 entry with several classes was left out." in labelled.notes
    assert labelled.texts["1"] == "Such a great film"


def test_shared_labels_have_no_annotator(tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text(text_of(EXPORT["admin"], "jsonl"))
    with pytest.raises(ValueError, match="share their labels, and does not say who gave which"):
        read_labels([path])


OLD = [
    {"id": 1, "text": "a", "annotations": [{"label": 1, "user": 1}, {"label": 2, "user": 2}]},
    {"id": 2, "text": "b", "annotations": [{"label": 2, "user": 1}]},
    {"id": 3, "text": "c", "annotations": [{"label": 1, "user": 2}, {"label": 2, "user": 2}]},
    {"id": 4, "text": "d", "annotations": []},
]


@pytest.mark.parametrize("lines", [True, False])
def test_old_json_names_users_and_classes_by_number(tmp_path, lines):
    path = tmp_path / "file.json"
    own = [{**entry, "meta": {}, "annotation_approver": None} for entry in OLD]
    path.write_text("\n".join(map(json.dumps, own)) if lines else json.dumps(own))
    labelled = read_labels([path])
    assert labelled.format == "doccano"
    assert triples(labelled) == {("1", "1", "1"), ("1", "2", "2"), ("2", "1", "2")}
    assert "1 entry with several classes was left out." in labelled.notes
    assert labelled.texts["2"] == "b"
    named = read_labels([path], columns=Columns(rename={"1": "good", "2": "bad"}))
    assert triples(named) == {("1", "1", "good"), ("1", "2", "bad"), ("2", "1", "bad")}


def test_spans_of_old_json_are_no_labels(tmp_path):
    path = tmp_path / "file.json"
    spans = [
        {"id": 1, "text": "a", "annotations": [{"label": 1, "user": 1, "start_offset": 0, "end_offset": 1}]}
    ]
    path.write_text(json.dumps(spans))
    with pytest.raises(ValueError, match="marked span"):
        read_labels([path])


@pytest.mark.parametrize("approver", ["boss", None])
def test_an_approver_is_no_annotator(tmp_path, approver):
    path = tmp_path / "ann.jsonl"
    entries = [{"id": n, "text": "a", "labels": ["xy"[n]], "annotation_approver": approver} for n in range(2)]
    path.write_text("\n".join(map(json.dumps, entries)))
    labelled = read_labels([path])
    assert triples(labelled) == {("0", "ann", "x"), ("1", "ann", "y")}
    assert any("only approved them" in note for note in labelled.notes)
