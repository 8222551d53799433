"""`Annotations` against dictionaries and loops."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from dataclasses import FrozenInstanceError
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import percent_agreement
from annotmix.labels.columns import find_column

quick = settings(deadline=None, max_examples=40, derandomize=True)
VECTORS = ("item", "annotator", "label")
NAMES = ("items", "annotators", "classes")


def as_dict(a: Annotations) -> dict[tuple[Any, Any], Any]:
    """{(item, annotator): label} by name, read entry by entry."""
    entries = zip(a.item.tolist(), a.annotator.tolist(), a.label.tolist(), strict=True)
    return {(a.items[n], a.annotators[m]): a.classes[k] for n, m, k in entries}


#: What the columns of `long`, which are accepted, are called everywhere else.
ROLE = {"task": "item", "worker": "annotator", "label": "label"}


def long(*rows: tuple[Any, Any, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


@st.composite
def matrices(draw: st.DrawFn) -> list[list[Any]]:
    """Rows of labels and None; labels are all integers, all text or all fractions."""
    n, m = draw(st.integers(0, 7)), draw(st.integers(1, 5))
    label = draw(
        st.sampled_from(
            [st.integers(0, 4), st.sampled_from(["cat", "dog", "-1", "é"]), st.sampled_from([0.5, 2.25])]
        )
    )
    return draw(st.lists(st.lists(st.none() | label, min_size=m, max_size=m), min_size=n, max_size=n))


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Long tables with repeated pairs and missing labels."""
    task, worker = st.integers(-3, 3), st.sampled_from("abc")
    return long(*draw(st.lists(st.tuples(task, worker, st.none() | st.sampled_from("xyz")), max_size=25)))


# ---------------------------------------------------------------- from_matrix


def object_matrix(rows: list[list[Any]]) -> np.ndarray:
    Z = np.empty((len(rows), len(rows[0]) if rows else 3), dtype=object)
    for n, row in enumerate(rows):
        for m, value in enumerate(row):
            Z[n, m] = value
    return Z


@quick
@given(matrices())
def test_from_matrix_equals_a_loop(rows):
    a = Annotations.from_matrix(object_matrix(rows), missing_label=None)
    expected = {(n, m): z for n, row in enumerate(rows) for m, z in enumerate(row) if z is not None}
    assert as_dict(a) == expected
    assert a.classes.tolist() == sorted(set(expected.values()))
    assert (a.n_items, len(a)) == (len(rows), len(expected))


INTEGERS = {(0, 0): 2, (0, 1): 0, (1, 1): 1}


@pytest.mark.parametrize(
    ("Z", "missing"),
    [
        ([[2, 0], [-1, 1]], -1),
        (np.array([[2, 0], [-1, 1]], dtype=np.int8), -1),
        (np.array([[2, 0], [9, 1]], dtype=np.uint8), 9),
        ([[2, 0], [99, 1]], np.int64(99)),
        ([[2.0, 0.0], [-1.0, 1.0]], -1),
        ([[2, 0], [np.nan, 1]], -1),
        ([[2, 0], [np.nan, 1]], np.nan),
        ([[2, 0], [np.nan, 1]], np.float32("nan")),
        ([[2, 0], [None, 1]], None),
        ([[2, 0], [None, 1]], pd.NA),
        ([[2, 0], ["?", 1]], "?"),
        (np.array([[2, np.int64(0)], [None, 1.0]], dtype=object), -1),
        (np.ma.masked_array([[2, 0], [7, 1]], mask=[[0, 0], [1, 0]]), -1),
        (np.array([[2, 0], [np.nan, 1]], dtype=np.float32), -1),
        (pd.DataFrame([[2, 0], [-1, 1]]), -1),
        (pd.DataFrame([[2, 0], [None, 1]]), -1),
        (pd.DataFrame([[2, 0], [None, 1]], dtype="Int64"), -1),
        (pd.DataFrame([[2, 0], [-1, 1]], dtype="Int64"), -1),
        (pd.DataFrame({0: pd.array([2, None], dtype="Int64"), 1: [0, 1]}), -1),
        (pd.DataFrame({0: pd.array([2, None], dtype="Int64"), 1: [0.0, 1.0]}), -1),
        (pd.DataFrame([[2, 0], [None, 1]]).astype("category"), -1),
    ],
)
def test_integer_labels_in_every_form(Z, missing):
    a = Annotations.from_matrix(Z, missing)
    assert as_dict(a) == INTEGERS
    assert a.classes.dtype == np.int64


TEXT = {(0, 0): "dog", (0, 1): "cat", (1, 1): "dog"}


@pytest.mark.parametrize(
    ("Z", "missing"),
    [
        ([["dog", "cat"], [None, "dog"]], -1),
        ([["dog", "cat"], [np.nan, "dog"]], -1),
        ([["dog", "cat"], [-1, "dog"]], -1),
        ([["dog", "cat"], ["", "dog"]], ""),
        (np.array([["dog", "cat"], ["", "dog"]]), ""),
        (np.array([["dog", "cat"], ["?", "dog"]]), np.str_("?")),
        (np.array([[np.str_("dog"), "cat"], [None, "dog"]], dtype=object), -1),
        (pd.DataFrame([["dog", "cat"], [None, "dog"]]), -1),
        (pd.DataFrame([["dog", "cat"], [None, "dog"]], dtype="string"), -1),
        (pd.DataFrame([["dog", "cat"], ["none", "dog"]], dtype="string"), "none"),
        (pd.DataFrame([["dog", "cat"], [None, "dog"]], dtype=object), -1),
        (pd.DataFrame([["dog", "cat"], [None, "dog"]]).astype("category"), -1),
    ],
)
def test_text_labels_in_every_form(Z, missing):
    a = Annotations.from_matrix(Z, missing)
    assert as_dict(a) == TEXT
    assert a.classes.dtype == object
    assert {type(name) for name in a.classes} == {str}


@pytest.mark.parametrize(
    "Z",
    [
        np.array([[True, False], [False, True]]),
        pd.DataFrame([[True, False], [False, True]]),
        pd.DataFrame([[True, False], [False, True]], dtype="boolean"),
    ],
)
def test_booleans_are_classes(Z):
    a = Annotations.from_matrix(Z)
    assert a.classes.tolist() == [False, True]
    assert a.classes.dtype == bool
    assert a.label.tolist() == [1, 0, 0, 1]


def test_nullable_boolean_with_a_gap():
    a = Annotations.from_matrix(pd.DataFrame({"u": pd.array([True, None], dtype="boolean")}))
    assert as_dict(a) == {(0, "u"): True}


def test_fractions_stay_fractions():
    assert Annotations.from_matrix([[0.5, 1.0]]).classes.tolist() == [0.5, 1.0]


def test_the_text_minus_one_is_a_class_beside_a_missing_minus_one():
    assert Annotations.from_matrix([["-1", -1]]).classes.tolist() == ["-1"]


def test_huge_numbers_are_not_cut_to_64_bits():
    floats = Annotations.from_matrix([[1e300, 2.0**63, 1.0]])
    assert floats.classes.tolist() == [1.0, 2.0**63, 1e300]
    unsigned = Annotations.from_matrix(np.array([[2**63 + 1, 2**63 + 2, 1]], dtype=np.uint64))
    assert unsigned.classes.tolist() == [1, 2**63 + 1, 2**63 + 2]
    exact = Annotations.from_matrix([[2**53 + 1, 2**53, None]])
    assert exact.classes.tolist() == [2**53, 2**53 + 1]


def test_given_names_and_classes_keep_their_order():
    a = Annotations.from_matrix([["b", None]], classes=["c", "b", "a"], items=["x"], annotators=("v", "u"))
    assert as_dict(a) == {("x", "v"): "b"}
    assert [names.tolist() for names in (a.items, a.annotators, a.classes)] == [
        ["x"],
        ["v", "u"],
        ["c", "b", "a"],
    ]


@pytest.mark.parametrize(
    "classes",
    [
        [2, 1, 0],
        (c for c in (2, 1, 0)),
        np.array([2, 1, 0]),
        pd.Index([2, 1, 0]),
        list(np.array([2, 1, 0])),
        [2.0, 1, 0],
    ],
)
def test_classes_in_every_form(classes):
    a = Annotations.from_matrix([[0, 2]], classes=classes)
    assert a.label.tolist() == [2, 0]
    assert a.classes.tolist() == [2, 1, 0]


def test_numpy_scalars_as_names_become_plain():
    a = Annotations.from_matrix(
        [["x"], ["y"]],
        items=list(np.array([5, 3])),
        annotators=list(np.array(["w"])),
        classes=list(np.array(["y", "x"])),
    )
    assert a.items.dtype == np.int64
    assert type(a.annotators[0]) is str
    assert {type(c) for c in a.classes} == {str}


def test_a_data_frame_names_items_and_annotators():
    Z = pd.DataFrame([[1, -1], [0, 1]], index=["late", "early"], columns=["w9", "w1"])
    a = Annotations.from_matrix(Z)
    assert as_dict(a) == {("late", "w9"): 1, ("early", "w9"): 0, ("early", "w1"): 1}
    assert a.items.tolist() == ["late", "early"]
    assert Annotations.from_matrix(Z, items=[7, 8]).items.tolist() == [7, 8]


def test_tuples_as_names():
    index = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    a = Annotations.from_matrix(pd.DataFrame([[0], [1]], index=index))
    assert as_dict(a) == {(("a", 1), 0): 0, (("a", 2), 0): 1}
    assert as_dict(a.align(items=[("a", 2), ("b", 1), ("a", 1)])) == as_dict(a)


@pytest.mark.parametrize(
    ("Z", "arguments", "message"),
    [
        ([1, 2], {}, r"row per item and one column per annotator, found shape \(2,\)"),
        (np.zeros((2, 2, 2)), {}, r"found shape \(2, 2, 2\)"),
        ([["a", 1]], {}, "label must be of one type, found int, str"),
        (np.array([[True, 1]], dtype=object), {}, "label must be of one type, found bool, int"),
        (pd.DataFrame({"u": [True, False], "v": [0, 1]}), {}, "one type, found bool, int"),
        ([[np.inf, 1]], {}, "infinite"),
        ([[-np.inf, 1]], {}, "infinite"),
        (np.array([[np.inf, None]], dtype=object), {}, "infinite"),
        ([[0, 7]], {"classes": [0, 1]}, "^Label 7 of item 0 by annotator 1 is not among the classes 0, 1"),
        ([["a", "b"]], {"classes": ["b"], "items": ["i"]}, "Label 'a' of item 'i' by annotator 0"),
        ([[0, 1]], {"classes": ["0", "1"]}, "Label 0 .* classes '0', '1'"),
        ([[0, 1]], {"classes": [0, 1, 1]}, "classes all need different names; repeated: 1"),
        ([[0, 1]], {"classes": [0, 1, None]}, "classes all need a name; number 2 has none"),
        ([[0, 1]], {"classes": [0, 1, np.nan]}, "classes all need a name; number 2 has none"),
        ([[0], [1]], {"items": ["a", "a"]}, "items all need different names; repeated: 'a'"),
        ([[0], [1]], {"items": ["a", None]}, "items all need a name; number 1 has none"),
        ([[0], [1]], {"items": ["a"]}, "items must name 2 of them, found 1"),
        ([[0, 1]], {"annotators": ["a", "b", "c"]}, "annotators must name 2 of them, found 3"),
        (pd.DataFrame([[0, 1]], columns=["w", "w"]), {}, "annotators all need .* repeated: 'w'"),
        ([[0, 1]], {"missing_label": [0, 1]}, "missing_label must be one value"),
    ],
)
def test_matrices_that_are_refused(Z, arguments, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_matrix(Z, **arguments)


# ---------------------------------------------------------------- from_long


def keep_one_slowly(table: pd.DataFrame, rule: str) -> dict[tuple[Any, Any], Any]:
    given: dict[tuple[Any, Any], list[Any]] = {}
    for task, worker, label in table.itertuples(index=False):
        if not pd.isna(label):
            given.setdefault((task, worker), []).append(label)
    if rule == "majority":
        return {
            pair: max(labels, key=labels.count) for pair, labels in given.items()
        }  # max: earliest of the best
    return {pair: labels[0 if rule == "first" else -1] for pair, labels in given.items()}


@quick
@given(tables(), st.sampled_from(["first", "last", "majority"]))
def test_from_long_equals_a_loop(table, rule):
    a = Annotations.from_long(table, duplicates=rule)
    assert as_dict(a) == keep_one_slowly(table, rule)
    assert a.items.tolist() == sorted(set(table["task"]))
    assert a.annotators.tolist() == sorted(set(table["worker"]))


@quick
@given(tables())
def test_repeated_pairs_are_an_error_unless_told(table):
    pairs = Counter(zip(*(table[table["label"].notna()][c] for c in ("task", "worker")), strict=True))
    if max(pairs.values(), default=1) == 1:
        assert as_dict(Annotations.from_long(table)) == keep_one_slowly(table, "first")
    else:
        with pytest.raises(ValueError, match="more than one label"):
            Annotations.from_long(table)


def test_the_error_about_repeats_names_one_and_counts_them():
    table = long((1, "u", 0), (1, "u", 0), (2, "v", 0), (2, "v", 1), (2, "v", 1))
    with pytest.raises(
        ValueError,
        match=r"annotator 'u' has more than one label for item 1 \(3 repeats in all\).*duplicates=",
    ):
        Annotations.from_long(table)


@pytest.mark.parametrize(
    ("labels", "rule", "kept"),
    [
        ("abb", "first", "a"),
        ("abb", "last", "b"),
        ("abb", "majority", "b"),
        ("ba", "majority", "b"),
        ("abba", "majority", "a"),
        ("cbbcc", "majority", "c"),
    ],
)
def test_which_of_repeated_labels_is_kept(labels, rule, kept):
    table = long(*[(0, 0, label) for label in labels])
    assert as_dict(Annotations.from_long(table, duplicates=rule)) == {(0, 0): kept}


def test_a_missing_label_is_no_repeat_and_keeps_its_item_and_annotator():
    a = Annotations.from_long(long((1, "u", None), (1, "u", "x"), (2, "v", None)))
    assert as_dict(a) == {(1, "u"): "x"}
    assert (a.items.tolist(), a.annotators.tolist()) == ([1, 2], ["u", "v"])


def test_unknown_rule_for_repeats():
    with pytest.raises(ValueError, match=r"duplicates must be .* found 'best'"):
        Annotations.from_long(long((0, 0, 0)), duplicates="best")


@pytest.mark.parametrize("columns", [("Item ID", "WORKER_ID", "answer"), ("image", "user", "class")])
def test_columns_are_found_by_usual_names(columns):
    table = pd.DataFrame([["i", "w", 3]], columns=list(columns))
    assert as_dict(Annotations.from_long(table)) == {("i", "w"): 3}


@pytest.mark.parametrize("columns", list(permutations(["item", "annotator", "label"])))
def test_aliases_are_found_in_any_order(columns):
    row = {"item": "i", "annotator": "w", "label": 3}
    table = pd.DataFrame([[row[c] for c in columns]], columns=list(columns))
    assert as_dict(Annotations.from_long(table)) == {("i", "w"): 3}


def test_columns_can_be_named_and_default_names_come_first():
    table = pd.DataFrame({"photo": [1], "user": ["u"], "answer": ["yes"], "task": [9], "item": [8]})
    assert as_dict(Annotations.from_long(table, "photo", "user", "answer")) == {(1, "u"): "yes"}
    assert as_dict(Annotations.from_long(table, annotator="user", label="answer")) == {(8, "u"): "yes"}


@pytest.mark.parametrize(
    ("columns", "guess"),
    [
        (["taks", "worker", "label"], "taks"),
        (["task", "annotater", "label"], "annotater"),
        (["task", "worker", "lable"], "lable"),
    ],
)
def test_a_wrong_column_lists_what_there_is_and_guesses(columns, guess):
    with pytest.raises(ValueError, match=f"Did you mean '{guess}'") as error:
        Annotations.from_long(pd.DataFrame([[0, 0, 0]], columns=columns))
    assert all(repr(column) in str(error.value) for column in columns)


def test_no_guess_where_nothing_is_near():
    with pytest.raises(
        ValueError,
        match=r"The table has no column 'b'\. It has the columns 'task', 'zzz', 3\. Name it with annotator=",
    ) as error:
        find_column(["task", "zzz", 3], "annotator", "b")
    assert "Did you mean" not in str(error.value)


def test_a_column_that_stands_twice():
    with pytest.raises(ValueError, match="2 columns 'task'"):
        Annotations.from_long(pd.DataFrame([[0, 0, 0, 0]], columns=["task", "task", "worker", "label"]))


@pytest.mark.parametrize(
    ("column", "value"), [("task", None), ("task", np.nan), ("worker", None), ("worker", pd.NA)]
)
def test_a_missing_item_or_annotator_names_the_row(column, value):
    table = long((1, "u", 0), (2, "v", 1), (3, "w", 1)).astype(object)
    table.loc[1, column] = value
    table.index = ["first", "second", "third"]
    with pytest.raises(
        ValueError, match=rf"Column '{column}' is empty in row 1 \(index 'second'\).*needs its {ROLE[column]}"
    ):
        Annotations.from_long(table)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"classes": ["x"]}, "label 'y' in row 1 is not among the 1 given names: 'x'"),
        ({"items": [2]}, "item 1 in row 0 is not among the 1 given names: 2"),
        ({"annotators": list("uvqrst")}, r"annotator 'w' in row 1 .* 6 given names: .*\(6 in all\)"),
        ({"classes": ["x", "y", "x"]}, "classes all need .* repeated: 'x'"),
        ({"items": [1, 2, 2]}, "items all need .* repeated: 2"),
    ],
)
def test_names_outside_the_given_ones(known, message):
    with pytest.raises(ValueError, match=message):
        Annotations.from_long(long((1, "u", "x"), (2, "w", "y")), **known)


def test_given_names_keep_their_order_in_a_long_table():
    a = Annotations.from_long(long((1, "u", "x")), items=[3, 1, 2], annotators=["z", "u"], classes=["y", "x"])
    assert as_dict(a) == {(1, "u"): "x"}
    assert (a.item.tolist(), a.annotator.tolist(), a.label.tolist()) == ([1], [1], [1])


@pytest.mark.parametrize("column", ["task", "worker", "label"])
def test_a_column_of_several_types_is_named(column):
    table = long((1, 1, 1), (2, 2, 2)).astype(object)
    table.loc[0, column] = "one"
    with pytest.raises(ValueError, match=f"Every {ROLE[column]} must be of one type, found int, str"):
        Annotations.from_long(table)


@pytest.mark.parametrize("column", ["task", "label"])
def test_an_infinite_entry_is_refused(column):
    table = long((1, 1, 1), (2, 2, 2)).astype({column: float})
    table.loc[0, column] = -np.inf
    with pytest.raises(ValueError, match=f"An infinite {ROLE[column]}"):
        Annotations.from_long(table)


@pytest.mark.parametrize("dtype", ["Int64", "float64", "category", "object"])
def test_integer_columns_with_a_gap(dtype):
    table = long((1, 10, 0), (2, 10, None), (2, 11, 1))
    table["label"] = pd.array([0, None, 1], dtype="Int64").astype("object" if dtype == "category" else dtype)
    table = table.astype({"label": dtype, "worker": "category"})
    a = Annotations.from_long(table)
    assert as_dict(a) == {(1, 10): 0, (2, 11): 1}
    assert a.classes.dtype == a.annotators.dtype == np.int64


# ---------------------------------------------------------------- writers


@quick
@given(matrices(), st.randoms(use_true_random=False))
def test_matrix_and_long_table_lead_back(rows, shuffler):
    a = Annotations.from_matrix(object_matrix(rows), missing_label=None)
    back = Annotations.from_matrix(a.to_matrix())
    assert as_dict(back) == as_dict(a)
    assert back.items.tolist() == a.items.tolist()
    table = a.to_long()
    order = list(range(len(table)))
    shuffler.shuffle(order)
    back = Annotations.from_long(table.iloc[order], items=a.items, annotators=a.annotators, classes=a.classes)
    assert all(np.array_equal(getattr(back, part), getattr(a, part)) for part in VECTORS + NAMES)


@quick
@given(tables())
def test_a_long_table_leads_to_a_matrix_and_back(table):
    a = Annotations.from_long(table, duplicates="last")
    matrix = a.to_matrix()
    assert matrix.index.tolist() == sorted(set(table["task"]))
    cells = {(n, m): matrix.loc[n, m] for n in matrix.index for m in matrix.columns}
    assert {pair: z for pair, z in cells.items() if z is not None} == keep_one_slowly(table, "last")


def test_to_matrix_fills_with_what_is_asked_for():
    a = Annotations.from_matrix([[3, -1]])
    assert a.to_matrix().to_numpy().tolist() == [[3, -1]]
    assert a.to_matrix().to_numpy().dtype == np.int64
    assert a.to_matrix(-9).to_numpy().tolist() == [[3, -9]]
    assert a.to_matrix("none").to_numpy().tolist() == [[3, "none"]]
    assert Annotations.from_matrix([["a", None]]).to_matrix().to_numpy().tolist() == [["a", None]]


def test_to_matrix_refuses_a_filling_that_is_a_class():
    a = Annotations.from_matrix([[-1, 9]], missing_label=9)
    with pytest.raises(ValueError, match="missing_label -1 is also a class"):
        a.to_matrix()
    assert a.to_matrix(9).to_numpy().tolist() == [[-1, 9]]
    whole = Annotations.from_matrix([[-1, 1]], missing_label=None)
    assert whole.to_matrix().to_numpy().tolist() == [[-1, 1]]


# ---------------------------------------------------------------- order, immutability


@quick
@given(tables())
def test_sorted_by_item_and_start_finds_the_labels(table):
    a = Annotations.from_long(table, duplicates="first")
    pairs = list(zip(a.item.tolist(), a.annotator.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert len(a.start) == a.n_items + 1
    for n in range(a.n_items):
        assert [p for p in range(len(a)) if a.item[p] == n] == list(range(a.start[n], a.start[n + 1]))
    assert a.labels_per_item.tolist() == [a.item.tolist().count(n) for n in range(a.n_items)]
    assert a.labels_per_annotator.tolist() == [a.annotator.tolist().count(m) for m in range(a.n_annotators)]


def a_few() -> Annotations:
    return Annotations.from_matrix([["a", "b"], ["b", None], [None, None]], items=["x", "y", "z"])


@pytest.mark.parametrize(
    "copier", [lambda a: a, copy.deepcopy, copy.copy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_nothing_can_be_changed(copier):
    a = copier(a_few())
    assert as_dict(a) == as_dict(a_few())
    for part in (*VECTORS, *NAMES, "start", "labels_per_item", "labels_per_annotator"):
        values = getattr(a, part)
        with pytest.raises(ValueError, match="read-only"):
            values[0] = values[0]
    for part in VECTORS + NAMES:
        with pytest.raises(FrozenInstanceError):
            setattr(a, part, getattr(a, part))


def test_changing_the_source_changes_nothing():
    index, names = np.array([0, 1]), np.array(["x", "y"], dtype=object)
    a = Annotations(index, index, index, names, names, names)
    index[0], names[0] = 1, "other"
    assert as_dict(a) == {("x", "x"): "x", ("y", "y"): "y"}
    Z = np.array([[0, 1]])
    b = Annotations.from_matrix(Z)
    Z[:] = 5
    assert b.classes.tolist() == [0, 1]


def test_the_constructor_sorts_and_takes_lists():
    a = Annotations([1, 0, 0], [0, 1, 0], [0, 1, 0], ["x", "y"], [7, 8], ["no", "yes"])
    assert a.item.tolist() == [0, 0, 1]
    assert as_dict(a) == {("x", 7): "no", ("x", 8): "yes", ("y", 7): "no"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2], [0], [0], "ab", "a", "a"), "item must point into its 2 names, found values from 2 to 2"),
        (([-1], [0], [0], "ab", "a", "a"), "item must point into its 2 names"),
        (([0], [1], [0], "a", "a", "a"), "annotator must point into its 1 names"),
        (([0], [0], [0], "a", "a", []), "label must point into its 0 names"),
        (([0.0], [0], [0], "a", "a", "a"), "item must be a vector of integers, found float64"),
        (([[0]], [0], [0], "a", "a", "a"), r"item must be a vector of integers, .* shape \(1, 1\)"),
        (([0, 1], [0], [0], "ab", "a", "a"), "same length, found 2, 1 and 1"),
        (([0], [0], [0], "aa", "a", "a"), "items all need different names; repeated: 'a'"),
        (([0, 0], [0, 0], [0, 0], "a", "b", "c"), "annotator 'b' has more than one label for item 'a'"),
    ],
)
def test_the_constructor_checks(arguments, message):
    with pytest.raises(ValueError, match=message):
        Annotations(*[list(argument) for argument in arguments])


# ---------------------------------------------------------------- weights


@st.composite
def soft_labels(draw: st.DrawFn) -> np.ndarray:
    """Weights of 0, ¼, ½ or 1, or nan; shape (n, m, C)."""
    n, m, n_classes = draw(st.integers(0, 5)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    weight = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=n_classes, max_size=n_classes)
    row = st.lists(weight | st.just([np.nan] * n_classes), min_size=m, max_size=m)
    return np.array(draw(st.lists(row, min_size=n, max_size=n))).reshape(n, m, n_classes)


def as_soft(a: Annotations) -> np.ndarray:
    P = np.zeros((a.n_items, a.n_annotators, a.n_classes))
    P[a.item, a.annotator, a.label] = a.weight
    return P


@quick
@given(soft_labels(), st.randoms())
def test_soft_labels_lead_to_a_long_table_and_back(P, shuffler):
    a = Annotations.from_soft(P)
    np.testing.assert_array_equal(as_soft(a), np.nan_to_num(P))
    rows = list(range(len(a)))
    shuffler.shuffle(rows)
    names = {"items": a.items, "annotators": a.annotators, "classes": a.classes}
    again = Annotations.from_long(a.to_long().iloc[rows], **names)
    np.testing.assert_array_equal(as_soft(again), as_soft(a))
    moved = again.align(**{key: list(reversed(value.tolist())) for key, value in names.items()})
    np.testing.assert_array_equal(as_soft(moved), as_soft(a)[::-1, ::-1, ::-1])
    copied = pickle.loads(pickle.dumps(moved)).keep(moved.label >= 0)
    np.testing.assert_array_equal(as_soft(copied), as_soft(moved))


@quick
@given(soft_labels())
def test_a_weight_tells_what_it_is_above_the_least_of_all_classes(P):
    a = Annotations.from_soft(P)
    told = np.nan_to_num(P)
    told = told - told.min(axis=2, keepdims=True)
    np.testing.assert_array_equal(a.informative_weight, told[a.item, a.annotator, a.label])


def test_labels_without_weights_have_none_that_tell():
    assert Annotations.from_matrix([[0, 1]]).informative_weight is None
    thirds = Annotations.from_soft([[[1 / 3, 1 / 3, 1 - 2 / 3], [0.1, 0.2, 0.7]]])
    assert thirds.informative_weight[:3].tolist() == [0, 0, 0]  # flat, but for rounding
    np.testing.assert_allclose(thirds.informative_weight[3:], [0, 0.1, 0.6])


@quick
@given(soft_labels())
def test_counts_of_soft_labels_equal_loops(P):
    a = Annotations.from_soft(P)
    given = np.nan_to_num(P).sum(axis=2) > 0
    assert a.labels_per_item.tolist() == given.sum(axis=1).tolist()
    assert a.labels_per_annotator.tolist() == given.sum(axis=0).tolist()
    assert len(set(a.pair.tolist())) == given.sum()
    for n in range(a.n_items):
        assert (a.item[a.start[n] : a.start[n + 1]] == n).all()
    item, label, votes = a.votes()
    found = np.zeros((a.n_items, a.n_classes))
    found[item, label] = votes
    np.testing.assert_allclose(found, np.nan_to_num(P).sum(axis=1))
    shares = []
    for soft in np.nan_to_num(P):
        pairs = [(p, q) for i, p in enumerate(soft) for j, q in enumerate(soft) if i != j]
        total = sum(p.sum() * q.sum() for p, q in pairs)
        if total:
            shares.append(sum(p @ q for p, q in pairs) / total)
    assert percent_agreement(a) == pytest.approx(np.mean(shares) if shares else np.nan, nan_ok=True)


def test_a_confidence_is_a_weight_once_its_column_is_named():
    table = long(("x", "ann", "a"), ("x", "bob", "b"), ("y", "ann", None))
    table["confidence"] = [0.5, 1, np.nan]
    assert Annotations.from_long(table).weight is None
    assert Annotations.from_long(table, weight="confidence").weight.tolist() == [0.5, 1]
    renamed = table.rename(columns={"confidence": "weight"})
    assert Annotations.from_long(renamed).weight.tolist() == [0.5, 1]
    assert Annotations.from_long(renamed, weight=None).weight is None


@pytest.mark.parametrize(("rule", "kept"), [("first", [0.25, 0.5]), ("last", [0.75, 0.5])])
def test_with_weights_only_a_class_given_again_is_a_repeat(rule, kept):
    table = long(("x", "ann", "a"), ("x", "ann", "b"), ("x", "ann", "a"))
    table["weight"] = [0.25, 0.5, 0.75]
    assert Annotations.from_long(table, duplicates=rule).weight.tolist() == kept
    with pytest.raises(ValueError, match="'ann' has more than one weight of label 'a' for item 'x'"):
        Annotations.from_long(table)


def test_a_label_of_weight_zero_is_none():
    a = Annotations([0, 0, 1], [0, 0, 0], [0, 1, 0], "xy", ["ann"], "ab", [0, 0.5, 0])
    assert a.to_long().to_numpy().tolist() == [["x", "ann", "b", 0.5]]
    assert a.labels_per_item.tolist() == [1, 0]
    assert repr(a) == "Annotations(2 items, 1 annotator, 2 classes, 1 weighted label)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Annotations([0], [0], [0], "x", "a", "b", [1, 2]), "an entry for each of 1 labels"),
        (lambda: Annotations([0], [0], [0], "x", "a", "b", [-1]), "of 0 or more, found -1.0 for label 0"),
        (lambda: Annotations.from_soft([[[np.inf, 0]]]), "of 0 or more, found inf"),
        (lambda: Annotations.from_soft([[0.5, 0.5]]), r"found shape \(1, 2\)"),
        (lambda: Annotations.from_soft([[[np.nan, 1]]]), "item 0 by annotator 0 .* some classes only"),
        (lambda: Annotations.from_soft([[[1, 0]]], classes="abc"), "classes must name 2 of them, found 3"),
        (
            lambda: Annotations.from_long(long(("x", "ann", "a")).assign(weight="much")),
            "'weight' must hold the weight of every label.* found 'much' in row 0",
        ),
        (lambda: Annotations.from_long(long(("x", "ann", "a")), weight="sure"), "no column 'sure'"),
        (lambda: Annotations.from_soft([[[0.5, 0.5]]]).to_matrix(), "no place for weights; use to_long"),
    ],
)
def test_weights_that_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# ---------------------------------------------------------------- facts


def agreement_slowly(a: Annotations) -> float:
    shares = []
    for n in range(a.n_items):
        labels = [k for item, k in zip(a.item, a.label, strict=True) if item == n]
        pairs = [(i, j) for i in range(len(labels)) for j in range(len(labels)) if i != j]
        if pairs:
            shares.append(sum(labels[i] == labels[j] for i, j in pairs) / len(pairs))
    return sum(shares) / len(shares) if shares else float("nan")


@quick
@given(matrices())
def test_agreement_equals_a_double_loop(rows):
    a = Annotations.from_matrix(object_matrix(rows), missing_label=None)
    assert percent_agreement(a) == pytest.approx(agreement_slowly(a), abs=1e-12, nan_ok=True)


def test_agreement_by_hand():
    # two of six ordered pairs agree; all agree; a single label does not count
    a = Annotations.from_matrix([[0, 0, 1], [2, 2, -1], [1, -1, -1]])
    assert percent_agreement(a) == pytest.approx((2 / 6 + 1) / 2)
    assert np.isnan(percent_agreement(Annotations.from_matrix([[0, -1], [-1, 1]])))


def test_summary():
    figures = a_few().summary()
    assert figures.to_dict() == {
        "items": 3,
        "annotators": 2,
        "classes": 2,
        "labels": 3,
        "items without labels": 1,
        "annotators without labels": 0,
        "labels per item, mean": 1.0,
        "labels per item, min": 0,
        "labels per item, max": 2,
        "labels per annotator, mean": 1.5,
        "labels per annotator, min": 1,
        "labels per annotator, max": 2,
        "agreement": 0.0,
    }


def test_repr_and_len():
    assert repr(a_few()) == "Annotations(3 items, 2 annotators, 2 classes, 3 labels)"
    assert len(a_few()) == 3


@pytest.mark.parametrize(
    "a",
    [
        Annotations.from_matrix(np.zeros((0, 3), dtype=int)),
        Annotations.from_matrix(pd.DataFrame()),
        Annotations.from_matrix([[-1, -1]]),
        Annotations.from_matrix([[np.nan], [np.nan]]),
        Annotations.from_long(long()),
        Annotations.from_long(long(), duplicates="majority"),
        Annotations.from_long(long((1, 2, None)), duplicates="first"),
    ],
)
def test_no_labels_at_all(a):
    assert len(a) == len(a.to_long()) == a.n_classes == a.start[-1] == 0
    assert a.to_matrix().shape == (a.n_items, a.n_annotators)
    assert np.isnan(percent_agreement(a))
    figures = a.summary()
    assert (figures["labels"], figures["labels per item, max"]) == (0, 0)
    assert figures["items without labels"] == a.n_items
    assert len(a.align(items=["p", "q"], classes=["c"])) == 0


def test_a_million_labels_of_a_hundred_thousand_annotators():
    rng = np.random.default_rng(0)
    n_labels, n_items, n_annotators = 1_000_000, 400_000, 100_000
    item = np.arange(n_labels) % n_items
    table = pd.DataFrame(
        {
            "task": rng.permutation(n_items)[item],
            "worker": (item * 7 + np.arange(n_labels) // n_items) % n_annotators,
            "label": rng.integers(5, size=n_labels),
        }
    )
    a = Annotations.from_long(table)
    assert (len(a), a.n_items, a.n_annotators, a.n_classes) == (n_labels, n_items, n_annotators, 5)
    assert np.all(np.diff(a.item) >= 0)
    expected = table.sort_values(["task", "worker"])["label"].to_numpy()
    assert np.array_equal(a.classes[a.label], expected)


# ---------------------------------------------------------------- align


def test_align_moves_labels_with_their_names():
    a = a_few()
    b = a.align(items=["new", "y", "x"], annotators=[1, 0, 2], classes=["c", "b", "a"])
    assert as_dict(b) == as_dict(a)
    assert [names.tolist() for names in (b.items, b.annotators, b.classes)] == [
        ["new", "y", "x"],
        [1, 0, 2],
        ["c", "b", "a"],
    ]
    assert b.item.tolist() == [1, 2, 2]
    assert b.annotator.tolist() == [1, 0, 1]


@quick
@given(tables(), st.randoms(use_true_random=False))
def test_align_to_a_shuffled_order(table, shuffler):
    a = Annotations.from_long(table, duplicates="first")
    names = {
        part: [*getattr(a, part).tolist(), *extra]
        for part, extra in zip(NAMES, ([99], ["z"], ["w"]), strict=True)
    }
    for listed in names.values():
        shuffler.shuffle(listed)
    b = a.align(**names)
    assert as_dict(b) == as_dict(a)
    assert all(getattr(b, part).tolist() == listed for part, listed in names.items())


def test_align_without_names_changes_nothing():
    a, b = a_few(), a_few().align()
    assert all(np.array_equal(getattr(a, part), getattr(b, part)) for part in VECTORS + NAMES)


def test_align_drops_items_without_labels_only():
    assert a_few().align(items=["y", "x"]).items.tolist() == ["y", "x"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"items": ["x"]}, "The labels name items that are not known: 'y'. Known items are 'x'"),
        ({"annotators": ["0", "1"]}, "annotators that are not known: 0, 1. Known annotators are '0', '1'"),
        ({"classes": ["a"]}, "classes that are not known: 'b'"),
        ({"items": ["x", "y", "x"]}, "items all need .* repeated: 'x'"),
        ({"annotators": [0, 1, None]}, "annotators all need a name; number 2 has none"),
    ],
)
def test_align_refuses_to_lose_labels(names, message):
    with pytest.raises(ValueError, match=message):
        a_few().align(**names)


def test_booleans_are_not_numbers():
    with pytest.raises(ValueError, match=r"classes that are not known: 0, 1\. Known classes are False, True"):
        Annotations.from_matrix([[0, 1]]).align(classes=[False, True])


def test_align_with_its_own_names_is_free():
    a = Annotations.from_long(long((1, "u", "x"), (1, "v", "y"), (2, "u", "y")))
    assert a.align() is a
    assert a.align(items=a.items, annotators=a.annotators, classes=a.classes) is a
    assert a.align(items=[1, 2], annotators=iter(["u", "v"]), classes=("x", "y")) is a
    assert a.align(items=pd.Index([1, 2])) is a
    assert a.align(items=[2, 1]) is not a


def test_what_does_not_change_is_shared_not_copied():
    a = Annotations.from_long(long((1, "u", "x"), (1, "v", "y"), (2, "u", "y")))
    more = a.align(classes=["x", "y", "z"])
    assert more.item is a.item
    assert more.items is a.items
    assert a.keep(a.label == 0).annotators is a.annotators


def test_later_changes_of_the_arrays_it_was_made_of_do_not_reach_it():
    item, names = np.array([0, 1]), np.array([5, 6])
    shown = item.view()
    shown.setflags(write=False)
    made = [Annotations(part, [0, 0], [0, 0], names, ["u"], ["x"]) for part in (item, shown)]
    item[:], names[:] = 0, 7
    for a in made:
        assert (a.item.tolist(), a.items.tolist()) == ([0, 1], [5, 6])


# ---------------------------------------------------------------- real data


def test_labelme(data_file):
    Z = np.loadtxt(data_file("labelme/answers.txt"), dtype=int)
    a = Annotations.from_matrix(Z)
    assert (a.n_items, a.n_annotators, a.n_classes) == (1000, 77, 8)
    assert (a.labels_per_annotator == 0).sum() == a.summary()["annotators without labels"] == 18
    assert len(a) / a.n_items == pytest.approx(2.5, abs=0.05)
    assert np.array_equal(a.to_matrix().to_numpy(), Z)
    assert percent_agreement(a) == pytest.approx(agreement_slowly(a), abs=1e-12)
    truth = np.loadtxt(data_file("labelme/labels_train.txt"), dtype=int)
    assert np.mean(a.classes[a.label] != truth[a.item]) == pytest.approx(0.26, abs=5e-4)


def test_music_genres(data_file):
    table = pd.read_csv(data_file("mgc/music_genre_mturk.csv"))
    a = Annotations.from_long(table, item="id", label="class")
    assert (len(a), a.n_items, a.n_annotators, a.n_classes) == (2945, 700, 44, 10)
    assert len(a) / a.n_items == pytest.approx(4.2, abs=0.05)
    gold = pd.read_csv(data_file("mgc/music_genre_gold.csv")).set_index("id")["class"]
    labels = a.to_long()
    assert np.mean(labels["label"].to_numpy() != gold[labels["item"]].to_numpy()) == pytest.approx(
        0.44, abs=5e-4
    )


@pytest.mark.parametrize(("name", "n_labels"), [("bluebird", 4212), ("dog", 8070), ("web", 15567)])
def test_label_only_sets(data_file, name, n_labels):
    table = pd.read_csv(data_file(f"aggregation/{name}/label.csv"))
    a = Annotations.from_long(table)
    assert len(a) == n_labels
    assert as_dict(a) == {(n, m): k for n, m, k in table[["item", "worker", "label"]].itertuples(index=False)}


def test_repeated_pairs_in_zencrowd(data_file):
    table = pd.read_csv(data_file("aggregation/zencrowd_us/label.csv"))
    assert len(table) == 12190
    with pytest.raises(ValueError, match="more than one label"):
        Annotations.from_long(table)
    table.columns = ["task", "worker", "label"]
    for rule in ("first", "last", "majority"):
        assert as_dict(Annotations.from_long(table, duplicates=rule)) == keep_one_slowly(table, rule)


# ---------------------------------------------------------------- as scikit-learn splits them


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [[3, 0], np.array([], dtype=int), slice(1, 3), np.arange(4) > 1, 2])
def test_items_are_chosen_with_their_labels(rows, weighted):
    Z = np.array([["a", "b"], ["b", None], [None, None], ["a", "a"]], dtype=object)
    a = Annotations.from_matrix(Z, items=["w", "x", "y", "z"], annotators=["ann", "bo"])
    if weighted:
        a = Annotations(a.item, a.annotator, a.label, a.items, a.annotators, a.classes, np.arange(1.0, 6.0))
    chosen = np.atleast_1d(np.arange(4)[rows])
    part = a[rows]
    assert part.items.tolist() == a.items[chosen].tolist()
    assert (part.annotators.tolist(), part.classes.tolist()) == (["ann", "bo"], ["a", "b"])
    expected = pd.concat(
        [a.to_long().query("item == @item") for item in a.items[chosen]] or [a.to_long()[:0]]
    )
    assert part.to_long().to_numpy().tolist() == expected.to_numpy().tolist()


def test_a_repeated_item_is_refused_and_labels_are_no_sequence():
    a = Annotations.from_matrix([["a"], ["b"]], items=["x", "y"])
    with pytest.raises(ValueError, match="repeated: 'x'"):
        a[[0, 1, 0]]
    with pytest.raises(TypeError, match="not iterable"):
        iter(a)


def test_scikit_learn_splits_items():
    Z = np.where(np.random.default_rng(0).random((20, 3)) < 0.5, None, "a")
    Z[:, 0] = "b"
    a = Annotations.from_matrix(Z)
    assert np.asarray(a).tolist() == np.where(Z == "a", 0, np.where(Z == "b", 1, -1)).tolist()
    X = np.arange(20)
    X_train, X_test, train, test = train_test_split(X, a, random_state=0)
    assert (train.items.tolist(), test.items.tolist()) == (X_train.tolist(), X_test.tolist())
    assert len(train) + len(test) == len(a)
    weighted = Annotations.from_soft([[[0.5, 0.5]], [[1, 0]]])
    with pytest.raises(TypeError, match=r"cv=KFold\(5\)"):
        np.asarray(weighted)
