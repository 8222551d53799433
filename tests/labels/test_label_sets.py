import json

import numpy as np
import pandas as pd
import pytest
from helpers.set_crowds import set_crowd
from hypothesis import given, settings
from hypothesis import strategies as st

from annotmix.labels import LabelSets
from annotmix.labels.set_texts import NONE, find_delimiter, read_set, write_set

TABLE = pd.DataFrame(
    {
        "item": ["x", "x", "y", "y", "z"],
        "annotator": ["ann", "bob", "ann", "bob", "ann"],
        "labels": [["b", "a"], ["a"], [], None, ["a", "a"]],
    }
)


@pytest.mark.parametrize(
    ("cell", "classes"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ('{"choices": ["a", "b"]}', ["a", "b"]),
        ('[{"choices": ["a"]}, "b"]', ["a", "b"]),
        ({"choices": []}, []),
        ({"a": True, "b": False}, ["a"]),
        ({"b", "a"}, ["a", "b"]),
        (np.array(["a", "b"]), ["a", "b"]),
        ("[]", []),
        (NONE, []),
        ("", None),
        (" ", None),
        (None, None),
        (float("nan"), None),
        ("a|b", ["a", "b"]),
        ("a | b|", ["a", "b"]),
        ("[draft", ["[draft"]),
        (3, [3]),
    ],
)
def test_a_set_is_read_from_any_form(cell, classes):
    assert read_set(cell, "|") == classes


@pytest.mark.parametrize(
    ("texts", "delimiter"),
    [
        (["a|b", "c"], "|"),
        (["a; b", "x, y"], ";"),
        (["a, b", "b"], ","),
        (["Arts, crafts", "Sport"], None),
        (["a", None, 3], None),
        (['["a", "b"]', "a"], None),
    ],
)
def test_the_delimiter_is_found(texts, delimiter):
    assert find_delimiter(texts) == delimiter


@pytest.mark.parametrize("cell", [[["a"]], {"shapes": ["a"]}, '[["a"]]'])
def test_what_is_no_set_is_refused(cell):
    with pytest.raises(ValueError, match="set of classes"):
        read_set(cell)


_NAMES = st.text(min_size=1, max_size=6).filter(lambda name: name != NONE)


@given(st.lists(_NAMES, unique=True, max_size=4))
def test_written_sets_are_read_again(names):
    whole = [name for name in names if not (len(names) == 1 and name[:1] in "[{")]
    assert read_set(write_set(whole), "|") == whole


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.frozensets(st.sampled_from("abc"))), max_size=12
    )
)
@settings(max_examples=60, deadline=None)
def test_every_form_gives_the_same_sets(entries):
    said = {(f"i{n}", f"m{m}"): sorted(own) for n, m, own in entries}
    item, annotator = (list(part) for part in zip(*said, strict=True)) if said else ([], [])
    names = {"items": [f"i{n}" for n in range(4)], "annotators": ["m0", "m1", "m2"], "classes": list("abc")}
    one = LabelSets.from_sets(item, annotator, list(said.values()), **names)
    texts = [json.dumps(own) for own in said.values()]
    table = pd.DataFrame({"item": item, "annotator": annotator, "labels": texts}, dtype=object)
    Z = np.full((4, 3, 3), np.nan)
    for (n, m), own in said.items():
        Z[int(n[1]), int(m[1])] = [name in own for name in "abc"]
    for other in (LabelSets.from_long(table, **names), LabelSets.from_array(Z, **names)):
        np.testing.assert_array_equal(one.to_array(), other.to_array())
        np.testing.assert_array_equal(one.members, other.members)
    np.testing.assert_array_equal(one.to_array(), Z)
    assert {(n, m): list(own) for n, m, own in one.to_long().itertuples(index=False)} == said
    for column, name in enumerate("abc"):
        np.testing.assert_array_equal(
            one.binary(name).to_matrix(missing_label=-1).to_numpy(dtype=float),
            np.where(np.isnan(Z[:, :, column]), -1, Z[:, :, column]),
        )


def test_the_empty_set_is_an_answer_and_no_answer_is_none():
    sets = LabelSets.from_long(TABLE)
    assert len(sets) == 4
    assert sets.n_empty == 1
    assert sets.labels_per_item.tolist() == [2, 1, 1]  # bob was not asked about y
    assert sets.binary("a").to_matrix().loc["y", "ann"] == False  # noqa: E712
    assert sets.binary("a").to_matrix().loc["y", "bob"] is None
    assert sets.to_long()["labels"].tolist() == [("a", "b"), ("a",), (), ("a",)]


def test_one_row_per_chosen_class():
    table = pd.DataFrame(
        {"item": ["x", "x", "y", "z"], "annotator": ["ann"] * 4, "label": ["b", "a", NONE, "c, d"]}
    )
    sets = LabelSets.from_long(table)
    assert sets.to_long()["labels"].tolist() == [("a", "b"), (), ("c, d",)]


def test_two_answers_of_one_annotator_are_refused():
    table = pd.DataFrame({"item": ["x", "x"], "annotator": ["ann"] * 2, "labels": ["a|b", "a"]})
    with pytest.raises(ValueError, match="more than one answer for item 'x', in row 1"):
        LabelSets.from_long(table)


def test_arrays_say_what_is_wrong_where():
    with pytest.raises(ValueError, match="annotator 1 about item 0 has nan for some classes"):
        LabelSets.from_array([[[1, 0], [1, np.nan]]])
    with pytest.raises(ValueError, match="annotator 0 about item 0 has values other"):
        LabelSets.from_array([[[1, 2]]])
    with pytest.raises(ValueError, match="shape"):
        LabelSets.from_array([[1, 2]])


def test_parts_and_names():
    _, sets = set_crowd(20, 5, 2)
    part = sets[3:9]
    assert part.n_items == 6
    np.testing.assert_array_equal(part.to_array(), sets.to_array()[3:9])
    turned = sets.align(classes=[*sets.classes[::-1], "new"])
    np.testing.assert_array_equal(turned.to_array()[:, :, :-1], sets.to_array()[:, :, ::-1])
    with pytest.raises(ValueError, match="'calm'"):
        sets.align(classes=sets.classes[1:])
    with pytest.raises(ValueError, match="no class"):
        sets.binary("jazz")
    with pytest.raises(ValueError, match="read-only"):
        sets.members[0, 0] = True


def test_it_shows_itself():
    sets = LabelSets.from_long(TABLE)
    assert repr(sets) == "LabelSets(3 items, 2 annotators, 2 classes, 4 answers, 1 of them empty)"
    assert "4 answers" in sets._repr_html_()
