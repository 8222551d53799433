"""Datasets of Hugging Face as `save_to_disk` and the hub write them; see samples/README.md."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotmix.reading import Columns, read_labels

pa = pytest.importorskip("pyarrow")
SAMPLES = Path(__file__).parent / "samples" / "hugging_face"
LISTS = {
    ("0", "ann", "good"), ("0", "bob", "bad"), ("1", "ann", "bad"), ("1", "eve", "bad"), ("2", "bob", "good"),
    ("3", "ann", "bad"), ("3", "bob", "bad"), ("3", "eve", "good"), ("5", "eve", "good"),
}  # fmt: skip


def triples(labelled):
    return set(
        labelled.annotations.to_long()[["item", "annotator", "label"]].itertuples(index=False, name=None)
    )


@pytest.mark.parametrize("name", ["lists", "lists_splits", "hub", "lists/data-00000-of-00001.arrow"])
def test_lists_of_annotators_and_labels(name):
    labelled = read_labels([SAMPLES / name])
    assert labelled.format == "lists"
    assert triples(labelled) == LISTS
    assert labelled.texts["2"] == "Wonderful acting"
    assert any("'labels' are classes and were read by their names" in note for note in labelled.notes)
    assert any("split 'test'" in note for note in labelled.notes) == (name == "lists_splits")
    assert labelled.sources[0].rows == 6


def test_a_table_in_two_files():
    labelled = read_labels([SAMPLES / "long"])
    assert labelled.format == "long"
    assert triples(labelled) == {("a", "x", "good"), ("a", "y", "bad"), ("b", "x", "bad"), ("b", "y", "bad")}


def write_arrow(path, table, whole=False):
    writer = pa.ipc.new_file if whole else pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as file, writer(file, table.schema) as out:
        out.write_table(table)


@pytest.mark.parametrize("whole", [False, True])
def test_classes_without_a_name_images_and_nested_features(tmp_path, whole):
    features = {
        "votes": {
            "feature": {"who": {"dtype": "string"}, "label": {"names": ["a", "b"], "_type": "ClassLabel"}}
        },
        "label": {"names": ["a", "b"], "_type": "ClassLabel"},
    }
    table = pa.table(
        {
            "item": ["1", "2", "3"],
            "annotator": ["x", "x", "y"],
            "label": [1, -1, 0],
            "image": [{"bytes": b"x", "path": None}] * 3,
        }
    ).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    write_arrow(tmp_path / "data.arrow", table, whole)
    labelled = read_labels([tmp_path / "data.arrow"])
    assert triples(labelled) == {("1", "x", "b"), ("3", "y", "a")}
    assert any("not read: image" in note for note in labelled.notes)


def test_what_is_wrong_is_said(tmp_path):
    folder = tmp_path / "saved"
    shutil.copytree(SAMPLES / "lists", folder)
    whole = (folder / "data-00000-of-00001.arrow").read_bytes()
    (folder / "data-00000-of-00001.arrow").write_bytes(whole[:500])
    with pytest.raises(ValueError, match="not a whole file of Arrow or Parquet"):
        read_labels([folder])
    (folder / "state.json").write_text("{")
    with pytest.raises(ValueError, match="no whole JSON file"):
        read_labels([folder])
    (folder / "state.json").write_text('{"_data_files": [{"filename": "../../secret.arrow"}]}')
    (folder / "data-00000-of-00001.arrow").write_bytes(whole)
    assert triples(read_labels([folder])) == LISTS


def test_lists_that_do_not_fit(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"id": 1, "workers": ["a", "b"], "ratings": [1]}\n')
    with pytest.raises(ValueError, match=r"row 0: 2 annotators in 'workers', but 1 label in 'ratings'"):
        read_labels([path])
    path.write_text(
        '{"id": 1, "people": ["a", "b"], "said": [1, 2]}\n{"id": 2, "people": ["a"], "said": [1]}\n'
    )
    with pytest.raises(
        ValueError, match=r"no lists of annotators; the columns with lists are: 'people', 'said'"
    ):
        read_labels([path], "lists")
    columns = Columns(annotator="people", label="said")
    assert triples(read_labels([path], columns=columns)) == {
        ("1", "a", "1"),
        ("1", "b", "2"),
        ("2", "a", "1"),
    }


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damaged_files_give_labels_or_a_value_error(tmp_path, data):
    whole = bytearray((SAMPLES / "lists" / "data-00000-of-00001.arrow").read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "data.arrow"
    path.write_bytes(bytes(whole[: data.draw(st.integers(1, len(whole)))]))
    with suppress(ValueError):
        assert len(read_labels([path]).annotations)
