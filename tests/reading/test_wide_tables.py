"""Wide tables: annotators stay, all other columns are left out and named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotmix.reading import Columns, read_labels, read_truth
from annotmix.reading.formats.annotator_columns import choose_annotators

CLASSES = {
    "words": lambda k: f"class {k}",
    "numbers": str,
    "half steps": lambda k: str(k / 2),
    "sentences": lambda k: f"this is the long name of class {k}",
}


def crowd(seed, n_items, n_annotators, n_classes, density, naming):
    """A wide table of good annotators, guessers, and some who always give the class of the first item."""
    rng = np.random.default_rng(seed)
    names = np.array([CLASSES[naming](k) for k in range(n_classes)], dtype=object)
    y = rng.integers(n_classes, size=n_items)
    table = pd.DataFrame({"item": [f"i{n}" for n in range(n_items)]})
    for m in range(n_annotators):
        accuracy = rng.choice([0.9, 0.6, 0.0])
        z = np.where(rng.random(n_items) < accuracy, y, rng.integers(n_classes, size=n_items))
        if m > 1 and rng.random() < 0.2:
            z[:] = y[0]
        table[f"w{m}"] = np.where(rng.random(n_items) < density, names[z], "")
    table.loc[0, ["w0", "w1"][:n_annotators]] = names[y[0]]
    return table, names[y]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(1, 150),
    n_annotators=st.integers(1, 15),
    n_classes=st.integers(1, 20),
    density=st.sampled_from([0.05, 0.3, 1.0]),
    naming=st.sampled_from(sorted(CLASSES)),
)
def test_no_annotator_of_a_crowd_is_left_out(seed, n_items, n_annotators, n_classes, density, naming):
    table, _ = crowd(seed, n_items, n_annotators, n_classes, density, naming)
    choice = choose_annotators(table, "item", Columns())
    assert choice.left_out == {}
    assert choice.annotators == list(table.columns[1:])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), naming=st.sampled_from(sorted(CLASSES)))
def test_columns_that_are_no_annotators_are_left_out(seed, naming):
    table, truth = crowd(seed, 60, 4, 4, 1.0, naming)
    rng = np.random.default_rng(seed)
    n = len(table)
    others = {
        "gold": truth,
        "Notes": np.where(rng.random(n) < 0.2, "blurry", ""),
        "Bemerkung": [f"seen on day {k} by the lake" for k in range(n)],
        "width": [f"{value:.3f}" for value in rng.normal(size=n)],
        "age": rng.integers(100, 900, size=n).astype(str),
        "when": [f"2024-05-{k % 28 + 1:02d} 12:00" for k in range(n)],
        "stage": ["train"] * n,
        "language": rng.choice(["en", "de"], size=n),
        "hit": [f"H{k:05d}" for k in range(n)],
        "photo": [f"photos/{k}.jpg" for k in range(n)],
    }
    choice = choose_annotators(table.assign(**others), "item", Columns())
    assert choice.annotators == ["w0", "w1", "w2", "w3"]
    assert set(choice.left_out) == set(others)
    assert choice.gold == ["gold"]


def test_letters_and_series_of_names_are_annotators():
    rows = pd.DataFrame({"item": list("abc"), "x": list("121"), "y": list("122"), "z": list("112")})
    assert choose_annotators(rows, "item", Columns()).annotators == ["x", "y", "z"]
    rows.columns = ["item", "label", "label.1", "label.2"]
    assert choose_annotators(rows, "item", Columns()).annotators == ["label", "label.1", "label.2"]
    rows.columns = ["item", "ann", "bob", "label"]
    assert choose_annotators(rows, "item", Columns()).gold == ["label"]


def test_two_crowds_in_one_table_ask_the_user():
    table, _ = crowd(0, 40, 3, 3, 1.0, "words")
    rng = np.random.default_rng(0)
    for name in ("count", "size"):
        table[name] = rng.integers(5, size=40).astype(str)
    with pytest.raises(
        ValueError, match=r"groups that have no value in common: 'w0'.*'count', 'size'.*--annot"
    ):
        choose_annotators(table, "item", Columns())
    assert choose_annotators(table, "item", Columns(exclude=("count", "size"))).annotators == [
        "w0",
        "w1",
        "w2",
    ]


WIDE = "photo-id,ann,bob,gold,notes\na,1,0,1,\nb,0,0,0,blurry\nc,1,1,1,\n"


def test_the_user_decides_and_gold_is_offered_as_it_works(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(WIDE)
    labelled = read_labels([path])
    assert labelled.annotations.annotators.tolist() == ["ann", "bob"]
    left_out = next(note for note in labelled.notes if "left out" in note)
    assert "'gold' (true labels, by its name), 'notes' (a text, by its name)" in left_out
    assert any("--gold wide.csv --item-column photo-id" in note for note in labelled.notes)
    truth, _, _ = read_truth(path, Columns(item="photo-id"), "gold")
    assert truth == {"a": "1", "b": "0", "c": "1"}
    named = read_labels([path], columns=Columns(annotators=("ann", "gold")))
    assert named.annotations.annotators.tolist() == ["ann", "gold"]
    with pytest.raises(ValueError, match=r"--annotators: there is no column 'eve'.*'ann', 'bob'"):
        read_labels([path], columns=Columns(annotators=("eve",)))
    with pytest.raises(ValueError, match="no column of an annotator beside"):
        read_labels([path], "wide", Columns(exclude=("ann", "bob")))


def test_values_that_no_other_annotator_has_are_doubted_not_dropped():
    table, _ = crowd(1, 60, 4, 2, 1.0, "numbers")
    table["count"] = np.random.default_rng(0).choice(
        ["0", "1", "7", "8", "9"], size=60, p=[0.2, 0.2, 0.2, 0.2, 0.2]
    )
    choice = choose_annotators(table, "item", Columns())
    assert "count" in choice.annotators
    assert set(choice.doubtful["count"]) == {"7", "8", "9"}


def test_values_are_shown_as_they_are_written():
    table, _ = crowd(1, 60, 4, 2, 1.0, "numbers")
    table["grade"] = np.random.default_rng(0).choice(["A", "Be"], size=60)
    reason = choose_annotators(table, "item", Columns()).left_out["grade"]
    assert "'A'" in reason
    assert "'Be'" in reason
