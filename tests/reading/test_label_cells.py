"""Files whose answers name several classes, in every format."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from annotmix.reading import Columns, read_labels
from annotmix.reading.label_files import read_true_sets

STUDIO = Path(__file__).parent / "samples" / "label_studio"
SETS = {("x", "ann"): ("a", "b"), ("x", "bob"): ("a",), ("y", "ann"): (), ("y", "bob"): ("b", "c")}
SEVERAL = Columns(several=True)


def sets_of(path, columns=SEVERAL):
    return {
        (item, annotator): labels
        for item, annotator, labels in read_labels([path], columns=columns)
        .sets.to_long()
        .itertuples(index=False)
    }


def write(path, records):
    path.write_text("\n".join(map(json.dumps, records)))
    return path


@pytest.mark.parametrize("form", ["text_JSON_MIN.json", "text_CSV.csv", "text_TSV.tsv"])
def test_every_export_of_label_studio_gives_the_same_sets(form):
    columns = Columns(label="tags", several=True)
    whole, other = (read_labels([STUDIO / name], columns=columns) for name in ("text_JSON.json", form))
    pd.testing.assert_frame_equal(whole.sets.to_long(), other.sets.to_long())
    assert whole.time.tolist() == other.time.tolist()
    assert whole.sets.n_empty == 11  # submitted without a tag
    assert whole.sets.n_items == 6  # tasks that nobody answered have no answer


def test_without_the_option_a_note_offers_it():
    notes = read_labels([STUDIO / "text_JSON.json"], columns=Columns(label="tags")).notes
    assert any("with several choices were left out" in note for note in notes)
    assert "--multi-label reads answers with several classes." in notes


@pytest.mark.parametrize(
    "cells",
    [
        ["a|b", "a", "(none)", "b|c"],
        ["b; a", "a", "[]", "c;b"],
        ["a, b", "a", "none", "b, c"],
        ['["a", "b"]', '["a"]', "[]", '["b", "c"]'],
        ['{"choices": ["a", "b"]}', "a", '{"choices": []}', "['b', 'c']"],
    ],
)
def test_long_and_wide_tables_in_every_way_of_writing(tmp_path, cells):
    columns = Columns(several=True, no_class=("none",))
    long = pd.DataFrame([(*pair, cell) for pair, cell in zip(SETS, cells, strict=True)])
    long.to_csv(tmp_path / "long.csv", index=False, header=["item", "annotator", "labels"])
    assert sets_of(tmp_path / "long.csv", columns) == SETS
    wide = pd.DataFrame({"item": ["x", "y"], "ann": cells[::2], "bob": cells[1::2]})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    assert sets_of(tmp_path / "wide.csv", columns) == SETS


def test_one_row_per_chosen_class(tmp_path):
    rows = [(*pair, name) for pair, own in SETS.items() for name in own or ("(none)",)]
    pd.DataFrame(rows).to_csv(tmp_path / "l.csv", index=False, header=["item", "annotator", "label"])
    assert sets_of(tmp_path / "l.csv") == SETS
    notes = read_labels([tmp_path / "l.csv"], columns=SEVERAL).notes
    assert any("one row per chosen class" in note for note in notes)


def test_an_empty_cell_is_no_answer_unless_the_user_says_so(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text("item,annotator,labels\nx,ann,a|b\nx,bob,\ny,ann,b\n")
    assert ("x", "bob") not in sets_of(path)
    assert any('--no-class ""' in note for note in read_labels([path], columns=SEVERAL).notes)
    assert sets_of(path, Columns(several=True, no_class=("",)))["x", "bob"] == ()


def test_the_newest_answer_counts_and_names_can_be_changed(tmp_path):
    path = tmp_path / "l.csv"
    path.write_text(
        "item,annotator,labels,updated_at\nx,ann,A|b,2024-02-02\nx,ann,b,2024-01-01\ny,ann,a|skip,\ny,bob,skip,\n"
    )
    columns = Columns(several=True, fold_case=True, missing=("skip",), rename={"b": "B2"})
    sets = sets_of(path, columns)
    assert {pair: {name.lower() for name in own} for pair, own in sets.items()} == {
        ("x", "ann"): {"a", "b2"}, ("y", "ann"): {"a"},
    }  # fmt: skip


def test_argilla_prodigy_doccano_and_lists(tmp_path):
    argilla = [
        {"id": item, "fields": {"text": item}, "responses": {"topics": [
            {"user_id": who, "value": list(SETS[item, who])} for who in ("ann", "bob")]}}
        for item in "xy"
    ]  # fmt: skip
    assert sets_of(write(tmp_path / "argilla.jsonl", argilla)) == SETS
    prodigy = [
        {"_input_hash": item, "_session_id": who, "answer": "accept", "accept": list(own)}
        for (item, who), own in SETS.items()
    ] + [{"_input_hash": "z", "_session_id": "ann", "answer": "ignore", "accept": []}]
    assert sets_of(write(tmp_path / "prodigy.jsonl", prodigy)) == SETS
    lists = [
        {
            "id": item,
            "annotators": ["ann", "bob"],
            "labels": [list(SETS[item, who]) for who in ("ann", "bob")],
        }
        for item in "xy"
    ]
    assert sets_of(write(tmp_path / "lists.jsonl", lists)) == SETS
    rows = [{"item": item, "annotator": who, "labels": list(own)} for (item, who), own in SETS.items()]
    assert sets_of(write(tmp_path / "rows.jsonl", rows)) == SETS
    folder = tmp_path / "doccano"
    folder.mkdir()
    for who in ("ann", "bob"):
        entries = [{"id": item, "text": item, "label": list(SETS[item, who])} for item in "xy"]
        write(folder / f"{who}.jsonl", entries)
    # doccano writes the same for an item without a class and one that nobody has looked at
    assert sets_of(folder) == {pair: own for pair, own in SETS.items() if own}


def test_single_labels_that_look_like_several_get_a_note(tmp_path):
    path = tmp_path / "l.csv"
    rows = [
        f"i{n},{who},{label}" for n, label in enumerate(["a|b", "a", "b", "a|c", "c"]) for who in ("p", "q")
    ]
    path.write_text("\n".join(["item,annotator,label", *rows]))
    assert any("--multi-label" in note for note in read_labels([path]).notes)
    assert read_labels([path]).annotations.n_classes == 5


def test_true_sets(tmp_path):
    (tmp_path / "t.csv").write_text("item,truth\nx,a|b\ny,(none)\nz,\n")
    truth, _, source = read_true_sets(tmp_path / "t.csv", SEVERAL)
    assert truth == {"x": ("a", "b"), "y": ()}
    assert source.role == "truth"
