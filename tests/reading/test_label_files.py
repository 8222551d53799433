"""Labels in every form that people have."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from helpers.exports import DOCCANO, LABEL_STUDIO, PRODIGY, lines

from annotmix.reading import Columns, read_labels, read_truth


def triples(labelled):
    return {tuple(row) for row in labelled.annotations.to_long().itertuples(index=False)}


LONG = {("a", "w1", "cat"), ("a", "w2", "dog"), ("b", "w1", "dog")}
CSV = "task,worker,label\na,w1,cat\na,w2,dog\nb,w1,dog\n"


def named(*columns):
    return [dict(zip(columns, row, strict=True)) for row in sorted(LONG)]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.csv", CSV),
        ("labels.tsv", CSV.replace(",", "\t")),
        ("labels.csv", CSV.replace(",", ";")),
        ("labels.csv", CSV.replace("task,worker,label", "HITId,WorkerId,Answer")),
        ("labels.csv", CSV.replace("\n", "\r\n") + "\r\n"),
        (
            "labels.jsonl",
            lines(dict(zip(("item", "annotator", "class"), row, strict=True)) for row in sorted(LONG)),
        ),
        (
            "labels.json",
            json.dumps([dict(zip(("id", "user", "label"), row, strict=True)) for row in sorted(LONG)]),
        ),
    ],
)
def test_long_tables(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content.encode())
    labelled = read_labels([path])
    assert labelled.format == "long"
    assert triples(labelled) == LONG
    assert labelled.sources[0].rows == 3


def test_parquet_with_numbers(tmp_path):
    path = tmp_path / "labels.parquet"
    pd.DataFrame({"task": [1, 1, 2], "worker": ["w", "v", "w"], "label": [1.0, 0.0, np.nan]}).to_parquet(path)
    assert triples(read_labels([path])) == {("1", "w", "1"), ("1", "v", "0")}


def test_columns_can_be_named(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("x,y,z,label\na,w1,cat,no\na,w2,dog,no\nb,w1,dog,no\n")
    assert triples(read_labels([path], columns=Columns("x", "y", "z"))) == LONG


def test_wide_table(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,anna,ben\na,1,0\nb,-1,1\nc,,1\n007,1.0,NaN\n")
    labelled = read_labels([path])
    assert labelled.format == "wide"
    assert triples(labelled) == {
        ("a", "anna", "1"), ("a", "ben", "0"), ("b", "ben", "1"), ("c", "ben", "1"), ("007", "anna", "1"),
    }  # fmt: skip
    assert any("-1 was read as no label" in note for note in labelled.notes)


def test_label_studio(tmp_path):
    path = tmp_path / "export.json"
    path.write_text(json.dumps(LABEL_STUDIO))
    labelled = read_labels([path])
    assert labelled.format == "label-studio"
    assert triples(labelled) == {
        ("101", "anna@example.com", "Positive"),
        ("101", "12", "Positive"),
        ("102", "anna@example.com", "Negative"),
        ("103", "12", "Negative"),
    }
    assert labelled.texts == {"101": "good film", "102": "bad film", "103": "a film"}
    assert "1 cancelled annotation was left out." in labelled.notes
    by_field = read_labels([path], columns=Columns(item="url"))
    assert "https://example.com/101" in by_field.annotations.items


def test_label_studio_with_two_questions_asks_which(tmp_path):
    path = tmp_path / "export.json"
    second = json.loads(json.dumps(LABEL_STUDIO[0]).replace("sentiment", "topic").replace("Positive", "Film"))
    path.write_text(json.dumps([*LABEL_STUDIO, second | {"id": 104}]))
    with pytest.raises(ValueError, match=r"several questions .*'sentiment', 'topic'.*--label"):
        read_labels([path])
    assert triples(read_labels([path], columns=Columns(label="topic"))) == {
        ("104", "anna@example.com", "Film"),
        ("104", "12", "Film"),
    }


def test_doccano_folder_and_files(tmp_path):
    for name, records in DOCCANO.items():
        (tmp_path / f"{name}.jsonl").write_text(lines(records))
    expected = {("1", "anna", "pos"), ("2", "anna", "neg"), ("1", "ben", "pos"), ("2", "ben", "pos")}
    for paths in ([tmp_path], sorted(tmp_path.glob("*.jsonl"))):
        labelled = read_labels(paths)
        assert labelled.format == "doccano"
        assert triples(labelled) == expected
        assert labelled.texts["1"] == "good film"


def test_doccano_with_ids_of_each_file_goes_by_text(tmp_path):
    (tmp_path / "anna.jsonl").write_text(
        lines([{"id": 1, "text": "x", "label": ["p"]}, {"id": 2, "text": "y", "label": ["q"]}])
    )
    (tmp_path / "ben.jsonl").write_text(lines([{"id": 1, "text": "y", "label": ["p"]}]))
    labelled = read_labels([tmp_path])
    assert triples(labelled) == {("text-1", "anna", "p"), ("text-2", "anna", "q"), ("text-2", "ben", "p")}


def test_prodigy_choices(tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text(lines(PRODIGY))
    labelled = read_labels([path])
    assert labelled.format == "prodigy"
    assert triples(labelled) == {
        ("9", "films-anna", "POS"),
        ("9", "films-b", "NEG"),
        ("8", "films-anna", "NEG"),
    }
    assert "1 ignored answer was left out." in labelled.notes


def test_prodigy_binary_and_several_labels(tmp_path):
    path = tmp_path / "export.jsonl"
    one = [
        {"_input_hash": n, "_session_id": "s", "label": "SPAM", "answer": a}
        for n, a in enumerate(("accept", "reject"))
    ]
    path.write_text(lines(one))
    assert triples(read_labels([path])) == {("0", "s", "SPAM"), ("1", "s", "not SPAM")}
    path.write_text(lines([*one, {"_input_hash": 2, "_session_id": "s", "label": "HAM", "answer": "accept"}]))
    assert triples(read_labels([path])) == {("0", "s", "SPAM"), ("2", "s", "HAM")}


def test_repeated_labels_keep_the_last(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(CSV + "a,w1,dog\n")
    labelled = read_labels([path])
    assert ("a", "w1", "dog") in triples(labelled)
    assert any(note.startswith("1 label repeats") for note in labelled.notes)


WEIGHTED = "task,worker,label,weight\na,w1,cat,0.75\na,w1,dog,.25\nb,w1,dog,1\nb,w2,cat,0\na,w1,cat,0.5\n"


def test_weights_are_read_and_may_spread_a_label(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(WEIGHTED)
    labelled = read_labels([path])
    assert triples(labelled) == {("a", "w1", "cat", 0.5), ("a", "w1", "dog", 0.25), ("b", "w1", "dog", 1)}
    assert "Labels count by the column 'weight', from 0 to 1." in labelled.notes
    assert any(note.startswith("1 label repeats") for note in labelled.notes)


def test_a_confidence_counts_where_it_is_named(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(WEIGHTED.replace("weight", "Confidence"))
    plain = read_labels([path])
    assert plain.annotations.weight is None
    assert any("--weight Confidence counts every label by it" in note for note in plain.notes)
    assert ("b", "w1", "dog", 1) in triples(read_labels([path], columns=Columns(weight="Confidence")))


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        (WEIGHTED.replace(".25", "much"), Columns(), "weight in row 1, column 'weight', is 'much'"),
        (WEIGHTED.replace(".25", "-1"), Columns(), "row 1.*expected a number of 0 or more"),
        (WEIGHTED.replace(".25", ""), Columns(), "1 label has no weight, the first in row 1. Give 1"),
        (WEIGHTED, Columns(weight="wieght"), "no column 'wieght'.*Did you mean 'weight'.*--weight NAME"),
        ("task,w1,w2\na,0,1\nb,1,1\n", Columns(weight="w1"), "--weight w1.*one row per label"),
        (json.dumps(LABEL_STUDIO), Columns(weight="score"), "--weight score.*export of Label Studio"),
    ],
)
def test_weights_that_cannot_be_read(tmp_path, content, columns, message):
    path = tmp_path / "labels.csv"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        read_labels([path], columns=columns)


def test_classes_of_numbers_are_in_their_order(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\n" + "".join(f"{n},w,{n}.0\n" for n in (10, 9, 2)))
    assert read_labels([path]).annotations.classes.tolist() == ["2", "9", "10"]


def test_true_labels(tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("id,truth\n1.0,cat\n2.0,dog\n")
    truth, _, source = read_truth(path, Columns())
    assert truth == {"1": "cat", "2": "dog"}
    assert source.role == "truth"
    path.write_text("id,truth\n1,cat\n1,dog\n")
    with pytest.raises(ValueError, match="two true labels"):
        read_truth(path, Columns())
