"""Excel, gzip, ZIP, and several tables at once."""

from __future__ import annotations

import datetime
import functools
import gzip
import io
import zipfile

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotmix.reading import containers, read_features, read_labels
from annotmix.reading.input_files import InputFile

CSV = "task,worker,label\na,w1,cat\na,w2,dog\nb,w1,dog\n"
LONG = {("a", "w1", "cat"), ("a", "w2", "dog"), ("b", "w1", "dog")}
ANY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def triples(labelled):
    return {tuple(row) for row in labelled.annotations.to_long().itertuples(index=False)}


def zipped(path, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def test_a_zip_file_as_pandas_writes_it(tmp_path):
    table = pd.read_csv(io.StringIO(CSV))
    for name in ("labels.zip", "labels.csv.zip"):
        table.to_csv(tmp_path / name, index=False)
        assert triples(read_labels([tmp_path / name])) == LONG
    with pytest.raises(ValueError, match="holds no table"):
        read_labels([zipped(tmp_path / "two.zip", {"labels": CSV, "other": CSV})])


def test_gzip_of_any_text_form(tmp_path):
    for name, content in (("labels.csv.gz", CSV), ("labels.tsv.gz", CSV.replace(",", "\t"))):
        (tmp_path / name).write_bytes(gzip.compress(content.encode("utf-16")))
        assert triples(read_labels([tmp_path / name])) == LONG
    (tmp_path / "two.csv.gz").write_bytes(gzip.compress(CSV[:20].encode()) + gzip.compress(CSV[20:].encode()))
    assert triples(read_labels([tmp_path / "two.csv.gz"])) == LONG
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(CSV.encode())[:-12])
    with pytest.raises(ValueError, match=r"'cut\.csv\.gz' is not a whole gzip file: it ends too early"):
        read_labels([tmp_path / "cut.csv.gz"])


def test_zip_with_one_table_and_what_a_mac_adds(tmp_path):
    path = zipped(tmp_path / "l.zip", {"in/labels.csv": CSV, "__MACOSX/in/._labels.csv": "x", "read.me": "x"})
    assert triples(read_labels([path])) == LONG
    items = zipped(tmp_path / "i.zip", {"items.csv": "id,x\na,1\nb,2\n"})
    assert read_features(items).ids == ["a", "b"]
    two = zipped(tmp_path / "two.zip", {"a.csv": CSV, "b.csv": CSV})
    with pytest.raises(ValueError, match=r"holds 2 files, 'a.csv', 'b.csv'; expected one"):
        read_features(two)
    none = zipped(tmp_path / "none.zip", {"read.me": "x"})
    with pytest.raises(ValueError, match=r"holds no table .*it holds 'read.me'"):
        read_labels([none])


def test_a_zip_with_several_tables_is_a_folder(tmp_path):
    rows = {"ann.csv": "item,label\na,cat\nb,dog\n", "bob.csv": "item,label\na,dog\n"}
    path = zipped(tmp_path / "people.zip", rows)
    assert triples(read_labels([path])) == {("a", "ann", "cat"), ("b", "ann", "dog"), ("a", "bob", "dog")}


@pytest.mark.parametrize("kind", ["gz", "zip", "xlsx"])
def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(containers, "MUCH", 1 << 20)
    content = CSV.encode() + b"a,w1,cat\n" * 400_000
    path = tmp_path / f"bomb.{kind}"
    if kind == "gz":
        path.write_bytes(gzip.compress(content))
    else:
        name = "xl/workbook.xml" if kind == "xlsx" else "labels.csv"
        zipped(path, {name: content})
    with pytest.raises(ValueError, match=rf"'bomb\.{kind}' has [\d,]+ bytes and unpacks to .* or more"):
        read_labels([path])


def test_a_zip_that_states_a_wrong_size_is_an_error(tmp_path):
    path = zipped(tmp_path / "labels.zip", {"labels.csv": CSV * 50})
    data = bytearray(path.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (10).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(
        ValueError, match=r"labels\.csv' in 'labels\.zip' cannot be unpacked|whole table|fields"
    ):
        read_labels([path])


def test_excel_ids_dates_and_sheets(tmp_path):
    path = tmp_path / "labels.xlsx"
    when = [datetime.datetime(2024, 5, 1, 12, 30), datetime.datetime(2024, 5, 2), None]
    table = pd.DataFrame({"task": [17.0, 17.0, 18.0], "worker": ["007", "b", "007"], "label": [1, 0, 1]})
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame().to_excel(writer, sheet_name="empty")
        table.assign(timestamp=when).to_excel(writer, sheet_name="labels", index=False)
        table.to_excel(writer, sheet_name="old", index=False)
    labelled = read_labels([path])
    assert triples(labelled) == {("17", "007", "1"), ("17", "b", "0"), ("18", "007", "1")}
    assert "labels.xlsx: the sheet 'labels' was read, not 'empty', 'old'." in labelled.notes
    assert InputFile(path).table["timestamp"].tolist() == ["2024-05-01T12:30:00", "2024-05-02", None]
    assert labelled.time.tolist()[:2] == [1714566600.0, 1714608000.0]


def test_a_missing_reader_of_excel_names_the_extra(tmp_path, monkeypatch):
    pd.DataFrame({"a": [1]}).to_excel(tmp_path / "x.xlsx", index=False)
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"annotmix\[excel\]"):
        read_labels([tmp_path / "x.xlsx"])
    (tmp_path / "x.xls").write_bytes(b"\xd0\xcf\x11\xe0rest")
    with pytest.raises(ValueError, match=r"old file of Excel \(\.xls\)\. Save it as \.xlsx"):
        read_labels([tmp_path / "x.xls"])


CELLS = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("ab,é\"' ", max_size=6)


@ANY
@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=5))
def test_cells_of_excel_come_back(tmp_path, rows):
    import openpyxl

    book = openpyxl.Workbook()
    for row in [("item", "annotator", "label"), *rows]:
        book.active.append(row)
    book.save(tmp_path / "cells.xlsx")
    kept = [row for row in rows if any(cell not in (None, "") for cell in row)]
    if not kept:
        return
    table = InputFile(tmp_path / "cells.xlsx").table
    found = [[None if cell == "" else cell for cell in row] for row in table.to_numpy().tolist()]
    assert found == [[None if cell == "" else cell for cell in row] for row in kept]


@functools.cache
def packed(kind):
    buffer = io.BytesIO()
    if kind == "gz":
        buffer.write(gzip.compress(CSV.encode(), mtime=0))
    elif kind == "zip":
        zipped(buffer, {"labels.csv": CSV})
    else:
        pd.read_csv(io.StringIO(CSV)).to_excel(buffer, index=False)
    return buffer.getvalue()


@ANY
@given(data=st.data(), kind=st.sampled_from(["gz", "zip", "xlsx"]))
def test_damaged_containers_are_one_clear_error(tmp_path, data, kind):
    content = bytearray(packed(kind))
    for at in data.draw(st.lists(st.integers(4, len(content) - 1), min_size=1, max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    path = tmp_path / f"labels.{kind}"
    path.write_bytes(bytes(content[: data.draw(st.integers(4, len(content)))]))
    try:
        labelled = read_labels([path])
    except ValueError:
        return
    assert len(labelled.annotations)


def test_one_table_per_annotator_or_per_batch(tmp_path):
    for name, text in {"ann": "item,label\na,cat\nb,dog\n", "bob": "item,label\na,dog\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    expected = {("a", "ann", "cat"), ("b", "ann", "dog"), ("a", "bob", "dog")}
    for paths in ([tmp_path], sorted(tmp_path.glob("*.csv"))):
        labelled = read_labels(paths)
        assert triples(labelled) == expected
        assert any("named after the files: 'ann', 'bob'" in note for note in labelled.notes)
    (tmp_path / "ann.csv").write_text("item,worker,label\na,w1,cat\n")
    (tmp_path / "bob.csv").write_text("item,worker,label\na,w2,dog\n")
    labelled = read_labels([tmp_path])
    assert triples(labelled) == {("a", "w1", "cat"), ("a", "w2", "dog")}
    assert sum("one row per label" in note for note in labelled.notes) == 1
    (tmp_path / "ann.csv").write_text("item,person,label\na,w1,cat\na,w2,cat\n")
    (tmp_path / "bob.csv").write_text("item,person,label\na,w1,dog\na,w2,cat\n")
    with pytest.raises(ValueError, match="no column for the annotator"):  # the file's name is none
        read_labels([tmp_path])


def test_files_of_one_name_are_not_one_annotator(tmp_path):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "ann.csv").write_text("item,label\na,cat\n")
    with pytest.raises(ValueError, match=r"Several files are called 'ann'.*rename the files"):
        read_labels([tmp_path / "x" / "ann.csv", tmp_path / "y" / "ann.csv"])
