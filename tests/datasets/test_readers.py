"""Readers on small files: what they make of whole ones, and that damaged ones never pass unnoticed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers import small_files
from helpers.small_files import FORMATS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from annotmix.datasets import DatasetFileError, readers


def check(raw):
    """What must hold for whatever a reader returns."""
    for part in raw.parts.values():
        assert len(part.y) == len(part.items) == len(set(part.items.tolist()))
        assert part.X is None or len(part.X) == len(part.y)
        assert len(part.y) == 0 or 0 <= part.y.min() <= part.y.max() < len(raw.classes)
    if raw.labels is not None:
        assert list(raw.labels.items) == list(raw.parts["train"].items)
        assert list(raw.labels.classes) == list(raw.classes)


@pytest.mark.parametrize("name", FORMATS)
def test_whole_files(name, tmp_path):
    raw = FORMATS[name](tmp_path).read()
    check(raw)
    assert all(len(part) for part in raw.parts.values())
    assert (raw.labels is not None) == (
        name in ("crowd_table", "label_matrix", "features", "cifar_h", "cifar_n")
    )


def test_crowd_table(tmp_path):
    raw = small_files.crowd_table(tmp_path).read()
    assert raw.labels.to_matrix().fillna("").to_numpy().tolist() == [
        ["jazz", "blues", ""],
        ["jazz", "", ""],
        ["", "", "blues"],
    ]
    assert list(raw.labels.annotators) == ["w1", "w2", "w3"]
    assert raw.parts["train"].y.tolist() == [1, 1, 0]
    np.testing.assert_array_equal(raw.parts["test"].X, [[1.5, -2], [0.3, 4]])


def test_label_matrix_drops_annotators_without_labels(tmp_path):
    small = small_files.label_matrix(tmp_path)
    raw = small.read()
    assert raw.labels.annotators.tolist() == [1, 2, 3]
    assert raw.labels.to_matrix().fillna("-").to_numpy().tolist() == [
        ["cat", "-", "dog"],
        ["frog", "frog", "-"],
        ["-", "cat", "cat"],
    ]
    assert raw.parts["valid"].X.tolist() == [str(tmp_path / "valid" / "dog" / "valid0.jpg")]
    wider = "".join(f"{line} -1\n" for line in small.paths["labels"].read_text().splitlines())
    small.paths["labels"].write_text(wider)
    assert small.read().labels.to_long().equals(raw.labels.to_long())


def test_features_in_place_of_photos(tmp_path):
    assert small_files.features(tmp_path).read().parts["test"].X.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_class_first_and_libsvm(tmp_path):
    raw = small_files.class_first(tmp_path).read()
    assert raw.parts["train"].X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert raw.parts["train"].y.tolist() == [0, 1, 0]
    raw = small_files.libsvm(tmp_path).read()
    assert raw.classes.tolist() == [0, 7]
    np.testing.assert_allclose(raw.parts["train"].X, [[0.5, 0, 2, 0], [0, -0.1, 0, 0], [0, 0, 0, 1]])


def test_texts(tmp_path):
    assert small_files.questions(tmp_path).read().parts["train"].X.tolist() == ["Who ?", "When in café ?"]
    raw = small_files.news(tmp_path).read()
    assert raw.parts["train"].X.tolist() == ['A "b" c', "d e, f"]
    assert raw.parts["train"].y.tolist() == [0, 1]


def test_photos_by_number_and_by_list(tmp_path):
    raw = small_files.mat(tmp_path).read()
    assert raw.parts["train"].items.tolist() == ["image_00001.jpg", "image_00005.jpg"]
    assert raw.parts["train"].y.tolist() == [0, 1]
    raw = small_files.photo_lists(tmp_path).read()
    assert raw.classes.tolist() == ["cat", "dog"]
    assert raw.parts["train"].y.tolist() == [0, 1]
    assert all(Path(path).is_file() for path in raw.parts["test"].X)


def test_a_matlab_file_is_parsed_only_with_its_checksum(tmp_path, monkeypatch):
    small = small_files.mat(tmp_path)
    small.paths["parts"].write_bytes(small.paths["parts"].read_bytes()[:-1])
    monkeypatch.setattr("scipy.io.loadmat", None)
    with pytest.raises(DatasetFileError, match=r"parts.mat.*does not have the sha256:"):
        small.read()


@pytest.mark.parametrize(
    ("labels", "n_classes"), [([[1, 2, 3, 1, 2]], 2), ([[0, 1]], 3), ([[1.5, 1]], 3), ("text", 3)]
)
def test_matlab_arrays_that_are_no_class_numbers(labels, n_classes, tmp_path):
    path = small_files.mat(tmp_path).paths["classes"]
    savemat(path, {"labels": labels})
    with pytest.raises(DatasetFileError, match=f"'labels' must be integers from 1 to {n_classes}"):
        readers.read_mat({"classes": path}, range(n_classes), {})


def test_first_of_repeated_labels_is_kept(tmp_path):
    small = small_files.crowd_table(tmp_path)
    before = small.read().labels.to_long()
    with open(small.paths["labels"], "a") as file:
        file.write("a,w1,1,2,blues\n")
    assert small.read().labels.to_long().equals(before)


def test_blank_lines_and_a_byte_order_mark_do_no_harm(tmp_path):
    small = small_files.class_first(tmp_path)
    small.paths["data"].write_bytes(b"\xef\xbb\xbfA,1,2\r\n\r\nB,3,4\r\n\n")
    assert small.read().parts["train"].X.tolist() == [[1, 2], [3, 4]]


MISTAKES = [
    ("crowd_table", "train", "b,3,4,jazz", "b,3,4", "line 3: 3 columns where 4 were expected"),
    (
        "crowd_table",
        "train",
        "b,3,4,jazz",
        "b,3,x,jazz",
        "line 3: column 3 must be a finite number, found 'x'",
    ),
    ("crowd_table", "train", "b,3,4,jazz", "b,3,nan,jazz", "line 3: column 3 must be a finite number"),
    ("crowd_table", "train", "b,3,4,jazz", "b,3,4,polka", "line 3: class 'polka' is not known"),
    ("crowd_table", "train", "b,3,4,jazz", "a,3,4,jazz", "line 3: id 'a' is already in line 2"),
    ("crowd_table", "train", "id,f0", "song,f0", "line 1: no column 'id'"),
    ("crowd_table", "test", "id,f0,f1,", "id,f1,f0,", "its columns are not those of 'train.txt'"),
    ("crowd_table", "labels", "b,w1", "q,w1", "line 4: id 'q' is not known"),
    ("crowd_table", "labels", "annotator", "worker", "line 1: no column 'annotator'"),
    ("crowd_table", "labels", "3,4,jazz", '3,4,"jazz', "not a whole table"),
    ("label_matrix", "labels", "-1 2 2 -1\n", "", "2 rows, but 3 in 'classes train.txt'"),
    ("label_matrix", "labels", "-1 2 2 -1", "-1 2 2", "line 2: 3 columns where 4 were expected"),
    (
        "label_matrix",
        "labels",
        "-1 2 2 -1",
        "-1 3 2 -1",
        "line 2: label must be an integer from -1 to 2, found '3'",
    ),
    ("label_matrix", "classes test", "1", "one", "line 2: class must be an integer from 0 to 2, found 'one'"),
    ("label_matrix", "names test", "test1", "test0", "line 2: photo 'test0.jpg' is already in line 1"),
    ("label_matrix", "names test", "test1", "other", "there is no such photo (1 of 2 are absent)"),
    ("label_matrix", "names test", "test1", "../x", "outside this folder"),
    ("class_first", "data", "B,3,4", "C,3,4", "line 2: class 'C' is not known; known are 'A', 'B'"),
    ("class_first", "data", "B,3,4", "B,3", "line 2: 2 columns where 3 were expected"),
    ("libsvm_plain", "data", "7 2:-1e-1", "7 2:", "line 2: 'class index:value …' was expected"),
    ("libsvm_plain", "data", "7 2:-1e-1", "7 5:1", "of another format"),
    ("questions", "train", "NUM:date When", "NUMBER:date When", "line 2: class 'NUMBER' is not known"),
    ("questions", "train", "NUM:date When in caf\xe9 ?", "NUM:date", "line 2: a class without a text"),
    ("news", "train", '"2","d",', '"5","d",', "line 2: class must be an integer from 1 to 2, found '5'"),
    ("news", "train", '"2","d","e, f"', '"2","d', "not a whole table (unexpected end of data)"),
]


@pytest.mark.parametrize(("name", "key", "old", "new", "message"), MISTAKES)
def test_mistakes_are_named_with_file_and_line(name, key, old, new, message, tmp_path):
    small = FORMATS[name](tmp_path)
    text = small.paths[key].read_text(encoding="latin-1")
    assert old in text
    small.paths[key].write_text(text.replace(old, new), encoding="latin-1")
    with pytest.raises(DatasetFileError) as error:
        small.read()
    assert message in str(error.value)
    assert str(tmp_path) in str(error.value)


def test_wrong_encoding_names_the_line(tmp_path):
    small = small_files.news(tmp_path)
    small.paths["train"].write_bytes('"1","a","b"\n"2","caf\xe9","c"\n'.encode("latin-1"))
    with pytest.raises(DatasetFileError, match="line 2: byte 0xe9 is not utf-8 text"):
        small.read()


def test_zip_without_a_table(tmp_path):
    small = small_files.cifar_h(tmp_path)
    with zipfile.ZipFile(small.paths["labels"], "w") as archive:
        archive.writestr("readme.txt", "")
    with pytest.raises(DatasetFileError, match=r"0 files \*\.csv in it where one was expected"):
        small.read()


@st.composite
def mangled(draw, content):
    """Bytes with a piece cut off, cut out, overwritten, doubled or put in."""
    a, b = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    noise = draw(
        st.one_of(st.binary(max_size=8), st.sampled_from([b"\n", b",", b"-1", b"\xff\xfe", b'"', b" "]))
    )
    way = draw(st.sampled_from(["cut off", "cut out", "overwrite", "double", "put in"]))
    return {
        "cut off": content[:a],
        "cut out": content[:a] + content[b:],
        "overwrite": content[:a] + noise + content[a + len(noise) :],
        "double": content[:b] + content[a:],
        "put in": content[:a] + noise + content[a:],
    }[way]


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_mangled_file_is_refused_or_still_makes_sense(name, data):
    folder = Path(tempfile.mkdtemp())
    try:
        small = FORMATS[name](folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and os.path.getsize(path))
        path = data.draw(st.sampled_from(files))
        path.write_bytes(data.draw(mangled(path.read_bytes())))
        with contextlib.suppress(DatasetFileError):
            check(small.read())
    finally:
        shutil.rmtree(folder)
