"""One file with labels, times, texts and features; options about its columns."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.runs.fit import fit
from annotmix.runs.inputs import read_inputs
from annotmix.runs.report.run import run_page
from annotmix.runs.request import Request, split_names


@pytest.fixture(scope="module")
def table():
    """Labels of 80 items by three annotators, the first of whom gets tired; features, texts and durations."""
    rng = np.random.default_rng(0)
    y, names, rows = rng.integers(2, size=80), np.array(["cat", "dog"]), []
    x = np.round(y + rng.normal(size=80), 2)
    for m in range(3):
        for place, n in enumerate(rng.permutation(80)):
            accuracy = 0.9 if m else 1 - 0.7 * place / 80
            z = y[n] if rng.random() < accuracy else 1 - y[n]
            text = f"the text of item {n}"
            rows.append(
                (f"i{n}", f"w{m}", names[z], 1.7e9 + 60 * place, text, x[n], "ab"[n % 2], names[y[n]])
            )
    columns = ["task", "user", "answer", "submitted_at", "text", "x", "kind", "y"]
    made = pd.DataFrame(rows, columns=columns)
    return made.assign(duration=rng.integers(5, 90, size=len(made)))


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("one")
    path = folder / "labels.csv"
    table.drop(columns="text").to_csv(path, index=False)
    said = []
    found = fit(Request((path,), folder / "run", features=path, model="logistic"), said.append, False)
    return folder, found, said


def test_features_come_from_the_file_of_the_labels(run):
    columns = run[1].settings["columns"]
    assert columns["standardised"] == ["x"]
    assert columns["one-hot"] == {"kind": ["a", "b"], "y": ["cat", "dog"]}
    assert set(columns["left out"]) == {"user", "answer", "submitted_at", "duration"}
    assert columns["left out"]["duration"] == "as they differ between labels of one item"
    saved = json.loads((run[0] / "run" / "run.json").read_text())
    assert saved["settings"]["columns"] == columns
    assert "1 column of numbers was standardised: 'x'." in "\n".join(run[2])


def test_a_column_that_tells_the_labels_is_warned_of(run):
    warning = next(note for note in run[1].notes if "nearly determines" in note)
    assert warning.startswith("The column 'y' nearly determines the labels")
    assert warning in "\n".join(run[2])
    assert "nearly determines the labels" in run_page(run[1]).split("<nav")[0]


def test_times_reach_the_table_of_labels_and_the_report(run, table):
    labels = pd.read_csv(run[0] / "run" / "labels.csv")
    known = table.merge(labels, left_on=["task", "user"], right_on=["item", "annotator"])
    seconds = pd.to_datetime(known["time"]).astype("datetime64[s, UTC]").astype(int)
    assert (seconds == known["submitted_at"]).all()
    page = run_page(run[1])
    assert "1 annotator of 3 got worse over time." in page
    without = replace(run[1], labels=run[1].labels.drop(columns="time"))
    assert "over time" not in run_page(without)
    few = replace(run[1], labels=run[1].labels.head(10))
    assert "too few to tell whether anybody changed" in run_page(few)


def test_texts_come_from_the_file_of_the_labels(table, tmp_path):
    path = tmp_path / "labels.csv"
    table.to_csv(path, index=False)
    inputs = read_inputs(Request((path,)), progress=False)
    assert inputs.items.kind == "text"
    assert dict(zip(inputs.items.ids, inputs.items.X, strict=True))["i7"] == "the text of item 7"
    table.assign(text=[f"a remark {n}" for n in range(len(table))]).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"'labels\.csv' has further columns, 'x', 'kind', 'y': --features"):
        read_inputs(Request((path,)), progress=False)
    named = read_inputs(Request((path,), text_column="text"), progress=False)
    assert named.items.X[0].startswith("a remark")


def test_a_wide_table_has_texts_features_and_gold_too(table, tmp_path):
    wide = table.pivot(index="task", columns="user", values="answer").reset_index()
    items = table.drop_duplicates("task").set_index("task").loc[wide["task"], ["text", "x", "y"]]
    wide = pd.concat([wide, items.reset_index(drop=True)], axis=1)
    path = tmp_path / "wide.csv"
    wide.to_csv(path, index=False)
    texts = read_inputs(Request((path,), gold=path), progress=False)
    assert texts.items.kind == "text"
    assert texts.annotations.annotators.tolist() == ["w0", "w1", "w2"]
    assert len(texts.gold) == 80
    features = read_inputs(Request((path,), features=path, exclude=("text",)), progress=False)
    assert list(features.items.X.columns) == ["x"]


def test_exclude_is_about_annotators_and_features_alike(tmp_path):
    (tmp_path / "wide.csv").write_text("item,ann,bob,eve\na,1,0,1\nb,0,0,1\nc,1,1,1\n")
    (tmp_path / "items.csv").write_text("item,x,z\na,1,2\nb,2,1\nc,3,1\n")
    request = Request((tmp_path / "wide.csv",), features=tmp_path / "items.csv", exclude=("eve", "z"))
    inputs = read_inputs(request, progress=False)
    assert inputs.annotations.annotators.tolist() == ["ann", "bob"]
    assert list(inputs.items.X.columns) == ["x"]
    with pytest.raises(ValueError, match="no column 'q'"):
        read_inputs(replace(request, exclude=("eve", "q")), progress=False)
    done = CliRunner().invoke(app, ["aggregate", str(tmp_path / "wide.csv"), "--exclude", "q"])
    assert "--exclude q: the labels have no such column" in done.stderr
    done = CliRunner().invoke(app, ["aggregate", str(tmp_path / "wide.csv"), "--annotators", "ann,eve"])
    assert "2 annotators" in done.stderr


def test_names_of_columns_survive_the_command_line(tmp_path):
    names = ("ann", "b, c", 'd"e')
    request = Request((tmp_path / "l.csv",), annotators=names, exclude=names, fold_case=True)
    words = shlex.split(request.command())
    assert "--fold-case" in words
    for option in ("--annotators", "--exclude"):
        given = [words[n + 1] for n, word in enumerate(words) if word == option]
        assert split_names(given) == names
    assert split_names(["a,b , c", "d"]) == ("a", "b", "c", "d")
