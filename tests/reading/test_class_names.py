"""Spellings of classes and words for no label: offered, and changed only as the user says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotmix.reading import Columns, read_labels, read_truth
from annotmix.reading.class_names import fold, offers, read_rename, with_names
from annotmix.reading.values import as_labels

HEADER = "task,worker,label\n"
ROWS = HEADER + "a,w1,cat\nb,w1,Cat\nc,w1,CAT \nd,w1,cat\ne,w1,dog\nf,w1,?\ng,w1,unsure\n"


@pytest.fixture
def labels(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(ROWS)
    return path


def test_offers_name_the_options_and_nothing_changes(labels):
    labelled = read_labels([labels])
    assert labelled.annotations.classes.tolist() == ["?", "CAT", "Cat", "cat", "dog", "unsure"]
    assert any("'cat', 'CAT', 'Cat'. --fold-case makes one of them" in note for note in labelled.notes)
    assert any(
        "'?' (1 label), 'unsure' (1 label) may stand for no label and count as classes: --missing '?' "
        "--missing unsure leaves them out." in note
        for note in labelled.notes
    )


def test_fold_case_and_missing_do_what_was_offered(labels):
    labelled = read_labels([labels], columns=Columns(fold_case=True, missing=("?", "unsure")))
    assert labelled.annotations.classes.tolist() == ["cat", "dog"]
    assert len(labelled.annotations) == 5
    assert not any("--fold-case makes" in note or "--missing" in note for note in labelled.notes)


def test_rename_classes_from_a_file(labels, tmp_path):
    path = tmp_path / "names.csv"
    path.write_text("old,new\nCat,cat\nCAT,cat\n?,\nunsure,\ndgo,dog\n")
    labelled = read_labels([labels], columns=Columns(rename=read_rename(path)))
    assert labelled.annotations.classes.tolist() == ["cat", "dog"]
    assert any("No label is called 'dgo'" in n and "Did you mean 'dog'" in n for n in labelled.notes)
    truth = tmp_path / "truth.csv"
    truth.write_text("id,truth\na,Cat\nb,DOG\nc,?\n")
    columns = Columns(rename=read_rename(path), fold_case=True)
    assert read_truth(truth, columns, classes=["cat", "dog"])[0] == {"a": "cat", "b": "dog"}
    for text, message in (
        ("old,new\na,b\na,c\n", "row 1: 'a' has two new names"),
        ("a,b,c\n1,2,3\n", "'old'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_rename(path)


NAMES = st.sampled_from(["cat", "Cat", "CAT", "a  b", "A b", "dog", "?", "Unsure", "ß", "SS", "1", ""])


@given(cells=st.lists(NAMES, min_size=1, max_size=20))
def test_folding_joins_exactly_what_differs_in_case_or_spaces(cells):
    texts, _ = as_labels(cells, ())
    folded, _ = with_names(texts, Columns(fold_case=True))
    for before, after in zip(texts, folded, strict=True):
        assert (before is None) == (after is None)
        assert before is None or fold(before) == fold(after)
        assert after is None or after in set(texts)
    distinct = {label for label in folded if label is not None}
    assert len({fold(label) for label in distinct}) == len(distinct)
    assert not any("--fold-case" in note for note in offers(folded, False))
    assert with_names(texts, Columns())[0] is texts
