"""Bad input: a clear error or a correct result with a note, never anything else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.exports import DOCCANO, LABEL_STUDIO, PRODIGY, lines
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from annotmix.reading import Columns, read_features, read_images, read_labels, read_texts

HEADER = "task,worker,label\n"
STUDIO = b"annotation_id,annotator,id,lead_time,mood\n1,2,3,4,a\n1,3,3,4,b\n"


def write(folder, content, name="labels.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("task,wroker,label\na,b,c\n", r"'task', 'wroker', 'label'.*Did you mean 'wroker'"),
        ("task,worker,lable\na,b,c\n", r"no column for the label.*'lable'\. Did you mean 'lable'.*--label"),
        ("a,b\n1,2\n", r"no column for the annotator.*--annotators NAMES"),
        (HEADER, "no rows"),
        ("", "is empty"),
        ("task,worker,label\na,b,c,d\n", "more fields"),
        ('task,worker,label\n"a,b,c\n', "not a whole table"),
        ("[1, 2]", "expected an object"),
        ('[{"id": 1', "not JSON"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        (b"PAR1xxxx", "not a whole Parquet"),
        (b"\x00\x01\x02", "not a text file"),
        (b"\xff\xfea", "begins like utf-16"),
        (HEADER + "a,,cat\n", "no labels"),
        (HEADER + "".join(f"{n},w,{n / 7}\n" for n in range(200)), r"200 different labels.*--label"),
        (HEADER + f"a,{'x' * 10_000_000},cat\n", "10000000 characters.*wrong column"),
        ('[{"task": 1, "worker": {"a": 1}, "label": 2}]', "annotator in row 0"),
    ],
)
def test_errors_say_what_to_do(tmp_path, content, expected):
    with pytest.raises(ValueError, match=expected):
        read_labels([write(tmp_path, content)])


def test_named_column_that_is_absent_guesses(tmp_path):
    path = write(tmp_path, HEADER + "a,b,c\n")
    with pytest.raises(ValueError, match=r"no column 'lbl'.*Did you mean 'label'"):
        read_labels([path], columns=Columns(label="lbl"))
    with pytest.raises(ValueError, match=r"no file .*Did you mean .*labels\.csv"):
        read_labels([tmp_path / "label.csv"])
    with pytest.raises(ValueError, match=r"Unknown format 'doccanno'\. Did you mean 'doccano'"):
        read_labels([path], "doccanno")


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8-sig", None),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("cp1252", "cp1252"),
        ("latin-1", "cp1252"),
    ],
)
def test_encodings_are_decided_and_said(tmp_path, encoding, note):
    text = HEADER + "".join(f"{n},Zoë,Käse\n" for n in range(5)) + "9,Zoë,Brot\n"
    labelled = read_labels([write(tmp_path, text.encode(encoding))])
    assert labelled.annotations.annotators.tolist() == ["Zoë"]
    assert labelled.annotations.classes.tolist() == ["Brot", "Käse"]
    assert note is None or any(note in said for said in labelled.notes)


def test_mixed_encodings_are_read_line_by_line(tmp_path):
    content = HEADER.encode() + "a,Zoë,x\n".encode() + "b,Zoë,y\n".encode("cp1252")
    labelled = read_labels([write(tmp_path, content)])
    assert labelled.annotations.annotators.tolist() == ["Zoë"]
    assert any("mixes encodings" in note and "line 3" in note for note in labelled.notes)


def test_numbers_read_as_floats_are_whole_again(tmp_path):
    labelled = read_labels([write(tmp_path, HEADER + "1.0,7,1.0\n2.0,7,0.0\n3.0,7,nan\n")])
    assert labelled.annotations.items.tolist() == ["1", "2"]
    assert labelled.annotations.classes.tolist() == ["0", "1"]
    assert any("Read as no label: 'nan' 1 time" in note for note in labelled.notes)


def test_leading_zeros_and_versions_survive(tmp_path):
    labelled = read_labels([write(tmp_path, HEADER + "007,w,a\n7,w,b\n1.10,w,a\n1.0,w,b\n")])
    assert labelled.annotations.items.tolist() == ["007", "7", "1.10", "1.0"]


def test_hostile_fields_stay_text(tmp_path):
    names = ["=cmd|' /C calc'!A0", "<script>alert(1)</script>", "../../etc/passwd", "@SUM(A1)"]
    table = pd.DataFrame({"task": names, "worker": names, "label": ["a", "b", "a", "b"]})
    table.to_csv(tmp_path / "labels.csv", index=False)
    annotations = read_labels([tmp_path / "labels.csv"]).annotations
    assert annotations.items.tolist() == names
    assert annotations.annotators.tolist() == names


def test_ten_megabytes_of_text_are_cut(tmp_path):
    path = write(tmp_path, f"id,text\n1,{'word ' * 2_000_000}\n2,short\n", "texts.csv")
    items = read_texts(path)
    assert len(items.X[0]) == 100_000
    assert any("cut after" in note for note in items.notes)


def test_features_leave_out_what_is_called_like_a_label(tmp_path):
    path = write(tmp_path, "id,x,class\n1,2,a\n2,3,b\n", "items.csv")
    assert read_features(path).X.columns.tolist() == ["x"]
    assert read_features(path, include=["class"]).X.columns.tolist() == ["x", "class"]
    with pytest.raises(ValueError, match="no column 'y'"):
        read_features(path, exclude=["y"])


def test_arrays_with_ids(tmp_path):
    np.save(tmp_path / "X.npy", np.arange(6.0).reshape(3, 2))
    ids = write(tmp_path, "id\na\nb\nc\n", "ids.txt")
    assert read_features(tmp_path / "X.npy", ids).ids == ["a", "b", "c"]
    assert read_features(tmp_path / "X.npy").ids == ["0", "1", "2"]
    with pytest.raises(ValueError, match=r"names 2 items, but 'X\.npy' has 3 rows"):
        read_features(tmp_path / "X.npy", write(tmp_path, "a\nb\n", "two.txt"))
    np.save(tmp_path / "bad.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not a whole NPY file"):
        read_features(tmp_path / "bad.npy")


def test_unreadable_images_are_listed_skipped_and_counted(tmp_path):
    from PIL import Image

    folder = tmp_path / "photos"
    (folder / "in").mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(folder / "in" / "a.png")
    whole = (folder / "in" / "a.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[:45])
    (folder / "no.jpg").write_text("not an image")
    (tmp_path / "outside.png").write_bytes(whole)
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    items = read_images(folder, ["a"], show=False)
    assert items.ids == ["a"]
    assert [path.name for path in items.X] == ["a.png"]
    assert any(note.startswith("2 images cannot be read and were skipped: cut.png (") for note in items.notes)


# ---------------------------------------------------------------- mangled exports

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "", "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
SAMPLES = Path(__file__).parent / "samples"
EXPORTS = [
    LABEL_STUDIO, DOCCANO["anna"], DOCCANO["ben"], PRODIGY,
    *(
        json.loads((SAMPLES / name).read_text("utf-8"))[:3]
        for name in (
            "label_studio/text_JSON_MIN.json", "argilla/flat.json", "argilla/records.json",
            "argilla/v1_records.json", "argilla/v1_text.json",
        )
    ),
    [{"text": "x", "annotators": ["ann", "bob"], "labels": [0, 1]}, {"annotators": ["ann"], "labels": ["1"]}],
]  # fmt: skip


def mangle(value, draw):
    """The same value with parts lost or replaced by anything."""
    if draw(st.integers(0, 19)) == 0:
        return draw(_VALUES)
    if isinstance(value, list):
        return [mangle(own, draw) for own in value if draw(st.integers(0, 14))]
    if isinstance(value, dict):
        return {key: mangle(own, draw) for key, own in value.items() if draw(st.integers(0, 14))}
    return value


def only_a_value_error(paths, form, columns=None):
    try:
        labelled = read_labels(paths, form, columns)
    except ValueError:
        return
    table = labelled.annotations.to_long()
    assert len(table)
    assert all(isinstance(cell, str) and cell for cell in table.to_numpy().ravel())
    table.to_csv().encode("utf-8")


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.data(),
    which=st.integers(0, len(EXPORTS) - 1),
    form=st.sampled_from([None, None, "label-studio", "doccano", "prodigy", "argilla", "lists", "long"]),
    label=st.sampled_from([None, "mood"]),
)
def test_mangled_records(tmp_path, data, which, form, label):
    records = mangle(EXPORTS[which], data.draw)
    text = (
        json.dumps(records) if data.draw(st.booleans()) or not isinstance(records, list) else lines(records)
    )
    path = write(tmp_path, text.encode("utf-8", "surrogatepass"), "export.jsonl")
    only_a_value_error([path], form, Columns(label=label))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=80) | st.text(alphabet="ab,;\t\"\n\r'=-1.0", max_size=60).map(str.encode),
    start=st.sampled_from([b"", HEADER.encode(), b"id,anna,ben\n", b"{", b"[{", STUDIO]),
    form=st.sampled_from([None, None, "long", "wide", "doccano", "label-studio", "lists"]),
)
@example(content=b"a,b,c\n\x00", start=HEADER.encode(), form=None)
def test_mangled_tables(tmp_path, content, start, form):
    only_a_value_error([write(tmp_path, start + content)], form)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.dictionaries(
        st.tuples(st.integers(0, 9), st.integers(0, 4)),
        st.sampled_from(["cat", "dog", "=x", 'a"b,c', "ü"]),
        min_size=1,
    )
)
def test_tables_are_read_as_they_were_written(tmp_path, rows):
    table = pd.DataFrame(
        [(str(n), f"w{m}", label) for (n, m), label in rows.items()], columns=["task", "worker", "label"]
    )
    table.to_csv(tmp_path / "labels.csv", index=False)
    found = read_labels([tmp_path / "labels.csv"], "long").annotations.to_long()
    assert set(found.itertuples(index=False, name=None)) == set(table.itertuples(index=False, name=None))
