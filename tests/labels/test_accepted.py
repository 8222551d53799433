"""What `fit` takes as labels, against the same labels placed by hand."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import DataConversionWarning

from annotmix.labels.accepted import as_annotations, is_long, require_labels
from annotmix.labels.annotations import Annotations

Z = np.array([[0, 1], [-1, 2], [1, 1]])
LABELS = {(0, 0): 0, (0, 1): 1, (1, 1): 2, (2, 0): 1, (2, 1): 1}
LONG = pd.DataFrame({"item": ["x", "y", "x"], "annotator": ["u", "v", "v"], "label": [0, 1, 2]})


def placed(a: Annotations) -> dict[tuple[int, Any], Any]:
    """{(row, annotator): class}, entry by entry."""
    entries = zip(a.item.tolist(), a.annotator.tolist(), a.label.tolist(), strict=True)
    return {(n, a.annotators[m]): a.classes[k] for n, m, k in entries}


# ---------------------------------------------------------------- forms


@pytest.mark.parametrize(
    "y",
    [
        Z,
        Z.tolist(),
        Z.astype(float),
        np.where(Z < 0, np.nan, Z),
        [[0, 1], [None, 2], [1, 1]],
        pd.DataFrame(Z),
        pd.DataFrame(Z).where(Z >= 0).astype("Int64"),
        Annotations.from_matrix(Z),
    ],
)
@pytest.mark.parametrize("rows", [None, [0, 1, 2], ["a", "b", "c"], [7, 8, 9]])
def test_matrices_by_position(y, rows):
    a = as_annotations(y, 3, rows)
    assert placed(a) == LABELS
    assert a.items.tolist() == ([0, 1, 2] if rows is None else rows)


def test_another_sign_for_missing():
    assert placed(as_annotations(np.where(Z < 0, 99, Z), 3, missing_label=99)) == LABELS
    assert placed(as_annotations([["a", "?"]], 1, missing_label="?")) == {(0, 0): "a"}


def test_long_table_by_name():
    a = as_annotations(LONG, 3, ["z", "y", "x"])
    assert placed(a) == {(2, "u"): 0, (1, "v"): 1, (2, "v"): 2}
    assert a.items.tolist() == ["z", "y", "x"]
    aliased = LONG.rename(columns={"item": "item", "annotator": "annotator"})
    assert placed(as_annotations(aliased, 3, ["z", "y", "x"])) == placed(a)
    assert placed(as_annotations(Annotations.from_long(LONG), 3, ["z", "y", "x"])) == placed(a)


def test_a_label_matrix_with_an_index_goes_by_name():
    y = pd.DataFrame(Z, index=["c", "b", "a"], columns=["u", "v"])
    a = as_annotations(y, 3, ["a", "b", "c"])
    assert placed(a) == {(2 - n, "uv"[m]): k for (n, m), k in LABELS.items()}


def test_rows_that_nobody_labelled_may_be_absent_on_either_side():
    y = pd.DataFrame({"u": [1, np.nan, 2]}, index=["a", "b", "c"])
    assert placed(as_annotations(y, 3, ["c", "new", "a"])) == {(2, "u"): 1, (0, "u"): 2}


@pytest.mark.parametrize("y", [Z, Z.tolist(), [0, 1, 0]])
def test_an_array_goes_by_position_whatever_the_rows_are_called(y):
    by_position = placed(as_annotations(y, 3))
    for rows in ([2, 1, 0], [1, 2, 0], [5, 0, 1], [("a", 1), ("a", 2), ("b", 1)], ["a", 1, 2.5]):
        a = as_annotations(y, 3, rows)
        assert placed(a) == by_position
        assert a.items.tolist() == rows
        assert [type(name) for name in a.items.tolist()] == [type(name) for name in rows]


@pytest.mark.parametrize("rows", [["a", "a", "b"], [0, 0, 1], ["a", None, "b"]])
def test_an_array_needs_no_names_of_rows(rows):
    a = as_annotations(Z, 3, rows)
    assert placed(a) == LABELS
    assert a.items.tolist() == [0, 1, 2]


def test_numbered_labels_of_a_shuffled_table_go_by_name_where_the_table_has_an_index():
    y = pd.DataFrame(Z).iloc[[2, 0, 1]]
    assert placed(as_annotations(y, 3, [0, 1, 2])) == LABELS


def test_a_pandas_vector_goes_by_position():
    y = pd.Series([5, 6, 7], index=[2, 1, 0])
    assert placed(as_annotations(y, 3, [0, 1, 2])) == {(0, 0): 5, (1, 0): 6, (2, 0): 7}


# ---------------------------------------------------------------- vectors


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([-1, 1, -1], [-1, 1]),
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"]), ["a", "b"]),
        (pd.Series(["b", "a", "b"]), ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([3, 2, 3], dtype="Int64"), [2, 3]),
        (pd.Series([3, 2, 3], dtype="category"), [2, 3]),
        (np.array([3, 2, 3], dtype=object), [2, 3]),
        ([True, False, True], [False, True]),
        (np.array([3.0, 2.0, 3.0]), [2, 3]),
    ],
)
def test_every_entry_of_a_vector_is_a_label(y, classes):
    a = as_annotations(y, 3)
    assert a.classes.tolist() == classes
    assert placed(a) == {(n, 0): label for n, label in enumerate(list(y))}


@pytest.mark.parametrize(
    "y",
    [
        [0, np.nan, 1],
        np.array([0, np.nan, 1], dtype=np.float32),
        ["a", None, "b"],
        np.array(["a", None, "b"], dtype=object),
        pd.Series(["a", None, "b"]),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series([0, None, 1], dtype="Int64"),
    ],
)
def test_a_missing_entry_of_a_vector(y):
    with pytest.raises(ValueError, match="Input y contains NaN: entry 1"):
        as_annotations(y, 3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([0.0, np.inf, 1.0], "infinity"),
        ([0.5, 0.25, 0.1], "Unknown label type: continuous"),
        (["a", 1, "a"], "Every label must be of one type, found int, str"),
        (3, "1d array"),
        (np.zeros((3, 2, 2, 2)), "dim 4"),
    ],
)
def test_what_is_no_label_at_all(y, message):
    with pytest.raises(ValueError, match=message):
        as_annotations(y, 3)


def test_a_column_vector_is_one_annotator_and_warns():
    with pytest.warns(DataConversionWarning, match="labels of one annotator"):
        a = as_annotations(np.array([[0], [-1], [1]]), 3)
    assert placed(a) == {(0, 0): 0, (2, 0): 1}


def test_a_table_with_one_column_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a = as_annotations(pd.DataFrame({"u": [0, -1, 1]}), 3)
    assert placed(a) == {(0, "u"): 0, (2, "u"): 1}


# ---------------------------------------------------------------- mismatches


@pytest.mark.parametrize(
    "y", [Z, [0, 1, 1], pd.DataFrame(Z, index=["a", "b", "c"]), Annotations.from_matrix(Z)]
)
@pytest.mark.parametrize("n_rows", [2, 4])
def test_another_number_of_rows(y, n_rows):
    with pytest.raises(ValueError, match=f"X has {n_rows} rows, the labels are about 3 items"):
        as_annotations(y, n_rows)


@pytest.mark.parametrize("y", [Z, [0, 1, 1]])
@pytest.mark.parametrize("n_rows", [2, 4])
def test_another_number_of_rows_is_noticed_where_rows_are_numbered(y, n_rows):
    with pytest.raises(ValueError, match=f"X has {n_rows} rows, the labels are about 3 items"):
        as_annotations(y, n_rows, range(n_rows))


@pytest.mark.parametrize("y", [LONG, Annotations.from_long(LONG), pd.DataFrame([[0], [1]], index=["x", "y"])])
def test_items_without_a_row(y):
    with pytest.raises(
        ValueError, match=r"1 of 2 labelled items have no row in X: 'x'\. .* named 'y', 'z'\."
    ):
        as_annotations(y, 2, ["y", "z"])


def test_tasks_of_a_long_table_are_names_even_where_they_are_numbers():
    y = LONG.assign(item=[0, 1, 0])
    assert placed(as_annotations(y, 2, [1, 0])) == {(1, "u"): 0, (0, "v"): 1, (1, "v"): 2}
    with pytest.raises(ValueError, match="2 of 2 labelled items have no row in X: 0, 1"):
        as_annotations(y, 2, ["1", "0"])


def test_a_long_table_needs_names_of_rows():
    with pytest.raises(ValueError, match=r"matched to the rows of X by name: .* items="):
        as_annotations(LONG, 2)


@pytest.mark.parametrize("rows", [["x", "y", "x"], ["x", "y", None]])
def test_names_of_rows_must_be_told_apart(rows):
    with pytest.raises(ValueError, match="every row needs a name of its own"):
        as_annotations(LONG, 3, rows)


# ---------------------------------------------------------------- known classes and annotators


def test_known_classes_keep_their_order():
    a = as_annotations(Z, 3, classes=[3, 2, 1, 0])
    assert a.classes.tolist() == [3, 2, 1, 0]
    assert placed(a) == LABELS
    with pytest.raises(ValueError, match="classes that are not known: 2"):
        as_annotations(Z, 3, classes=[0, 1])


def test_known_annotators_name_the_columns_of_an_array():
    assert placed(as_annotations(Z, 3, annotators=["p", "q"])) == {
        (n, "pq"[m]): k for (n, m), k in LABELS.items()
    }


def test_known_annotators_are_matched_by_the_columns_of_a_table():
    a = as_annotations(pd.DataFrame(Z, columns=["q", "p"]), 3, annotators=["p", "q", "r"])
    assert placed(a) == {(n, "qp"[m]): k for (n, m), k in LABELS.items()}
    assert a.annotators.tolist() == ["p", "q", "r"]
    with pytest.raises(ValueError, match="annotators that are not known: 'z'"):
        as_annotations(pd.DataFrame(Z, columns=["q", "z"]), 3, annotators=["p", "q", "r"])


@pytest.mark.parametrize("known", [[0], [0, 1, 2], ["p"]])
def test_an_array_with_another_number_of_columns(known):
    with pytest.raises(
        ValueError, match=f"have 2 columns, the model knows {len(known)} annotators.*DataFrame"
    ):
        as_annotations(Z, 3, annotators=known)


def test_a_vector_is_of_the_only_annotator_or_of_none():
    assert placed(as_annotations([0, 1], 2, annotators=["p"])) == {(0, "p"): 0, (1, "p"): 1}
    for known in ([0, 1], ["p", "q"]):
        with pytest.raises(ValueError, match="the model knows 2 annotators"):
            as_annotations([0, 1], 2, annotators=known)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["item", "annotator", "label"], True),
        (["label", "annotator", "item", "more"], True),
        (["item", "annotator"], False),
        (["item", "label", "w1"], False),
        ([0, 1, 2], False),
    ],
)
def test_is_long(columns, expected):
    assert is_long(pd.DataFrame(columns=columns)) is expected


# ---------------------------------------------------------------- enough labels


def test_labels_that_can_be_learnt_from():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_labels(Annotations.from_matrix(Z))


def test_no_labels_at_all():
    with pytest.raises(ValueError, match="There are no labels at all"):
        require_labels(Annotations.from_matrix([[-1, -1]]))
    with pytest.raises(ValueError, match="There are no labels at all"):
        require_labels(Annotations.from_matrix([[-1, -1]], classes=[0, 1]))


def test_labels_of_one_class():
    with pytest.raises(ValueError, match=r"All labels are of one class, 5; .* classes="):
        require_labels(Annotations.from_matrix([[5, 5]]))
    require_labels(Annotations.from_matrix([[5, 5]], classes=[5, 6]))


def test_items_without_labels_are_counted():
    with pytest.warns(UserWarning, match="2 of 4 items have no labels"):
        require_labels(Annotations.from_matrix([[0, 1], [-1, -1], [1, -1], [-1, -1]]))


# ---------------------------------------------------------------- together


def test_all_forms_of_the_same_labels_agree(noisy):
    X, Z, _ = noisy
    matrix = as_annotations(Z, len(X))
    table = pd.DataFrame(Z).stack().rename_axis(["item", "annotator"]).rename("label").reset_index()
    shuffled = table[table["label"] >= 0].sample(frac=1, random_state=0)
    for y in (shuffled, Annotations.from_long(shuffled), pd.DataFrame(Z)):
        assert placed(as_annotations(y, len(X), range(len(X)))) == placed(matrix)


def test_real_labels_of_rows_in_another_order(data_file):
    table = pd.read_csv(data_file("mgc/music_genre_mturk.csv"))[["id", "annotator", "class"]]
    table.columns = ["item", "annotator", "label"]
    rows = table["item"].drop_duplicates().sample(frac=1, random_state=0).tolist()
    a = as_annotations(table, len(rows), rows)
    expected = {(rows.index(n), m): k for n, m, k in table.itertuples(index=False)}
    assert placed(a) == expected
