"""A table of annotators: kinds, costs and loads."""

from __future__ import annotations

import csv

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotmix.reading import read_annotators


def test_costs_and_loads_are_read(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("Annotator;Cost;Load\n007;1.5;10\nbob;2;\n ann ;0.25;0\n")
    found = read_annotators(path)
    assert found.names == ["007", "bob", "ann"]
    assert found.cost == {"007": 1.5, "bob": 2.0, "ann": 0.25}
    assert found.load == {"007": 10, "ann": 0}
    assert "people.csv: the cost of each annotator is in the column 'Cost'." in found.notes


def test_kinds_have_many_spellings(tmp_path):
    path = tmp_path / "who.csv"
    path.write_text(
        "annotator,type,price,model,prompt,family\nann,Human,2,,,\nbob,expert,,,,\n"
        "a,LLM,0.1,llama,zero-shot,meta\nb,Language model,,,,\nc,rules,0,,,\n"
        "d,labeling function,,,,\ne,,,,,\n"
    )
    found = read_annotators(path)
    expected = ["people", "people", "models", "models", "rules", "rules", "unknown"]
    assert found.table["kind"].tolist() == expected
    assert found.table.loc["a"].tolist()[:5] == ["models", "meta", "llama", "zero-shot", 0.1]
    assert found.cost == {"ann": 2.0, "a": 0.1, "c": 0.0}


def test_names_alone_are_enough(tmp_path):
    (tmp_path / "people.csv").write_text("worker,city\nann,Kassel\nbob,Kassel\n")
    found = read_annotators(tmp_path / "people.csv")
    assert found.names == ["ann", "bob"]
    assert found.cost is None
    assert found.load == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,cost\nann,1\n", "no column for the annotator, such as 'annot.* Call the column 'annotator'"),
        ("worker,cost\nann,1\nann,2\n", "row 1: annotator 'ann' has two rows; keep one"),
        ("worker,cost\n,1\n", "row 0: the column 'worker' names no annotator"),
        ("worker,kind\nann,robot arm\n", "row 0: the kind of 'ann' is 'robot arm', expected people, models"),
        ("worker,cost\nann,-1\n", "the cost of 'ann' is '-1'"),
        ("worker,cost\nann,inf\n", "the cost of 'ann' is 'inf'"),
        ("worker,load\nann,2.5\n", "the load of 'ann' is '2.5', expected a whole number or nothing"),
        ("worker,load\nann,many\n", "the load of 'ann' is 'many'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    (tmp_path / "people.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_annotators(tmp_path / "people.csv")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.lists(st.lists(st.text(max_size=6), min_size=3, max_size=3), max_size=4))
def test_any_cells_are_read_or_refused(tmp_path, rows):
    with open(tmp_path / "people.csv", "w", encoding="utf-8", errors="replace", newline="") as file:
        csv.writer(file).writerows([["worker", "cost", "load"], *rows])
    try:
        found = read_annotators(tmp_path / "people.csv")
    except ValueError as error:
        assert "people.csv" in str(error)  # noqa: PT017
        return
    assert len(set(found.names)) == len(found.names) > 0
    assert set(found.names) >= {*(found.cost or {}), *found.load}
    assert all(cost >= 0 for cost in (found.cost or {}).values())
