"""Names that a spreadsheet would run, or that look guarded already, survive every way through the files."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest
from helpers.nasty_names import ANNOTATORS, CLASSES, NASTY, write_nasty_problem
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.reading import read_features, read_labels
from annotmix.runs.folder import RunFolder

runner = CliRunner()


def run(*arguments):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """Files with such names, and a run of them."""
    folder = tmp_path_factory.mktemp("nasty")
    write_nasty_problem(folder)
    run("fit", folder / "labels.jsonl", "--features", folder / "items.jsonl", "--out", folder / "run",
        "--epochs", 2, "--quiet")  # fmt: skip
    return folder


def names(found):
    return [set(found.items.index), set(found.annotators.index), list(found.classes)]


def test_fit_on_the_labels_that_fit_wrote_finds_the_same_names(nasty, tmp_path):
    first = RunFolder(nasty / "run").findings()
    assert names(first) == [set(NASTY), set(ANNOTATORS), sorted(CLASSES)]
    features = pd.read_json(nasty / "items.jsonl", lines=True)
    written = pd.read_csv(nasty / "run" / "items.csv", dtype=str, keep_default_na=False)["item"]
    table = pd.DataFrame({"item": written, "x": features["x"]})
    table.to_csv(tmp_path / "items.csv", index=False, quoting=csv.QUOTE_ALL)
    run("fit", nasty / "run" / "labels.csv", "--features", tmp_path / "items.csv", "--out", tmp_path / "run",
        "--epochs", 2, "--quiet")  # fmt: skip
    again = RunFolder(tmp_path / "run").findings()
    assert names(again) == names(first)
    triples = [
        found.labels[["item", "annotator", "label"]].sort_values(["item", "annotator"]).to_numpy().tolist()
        for found in (first, again)
    ]
    assert triples[0] == triples[1]
    assert any("apostrophe before =" in note for note in again.notes)


def test_true_labels_and_gold_from_a_run_are_about_its_items(nasty, tmp_path):
    out = tmp_path / "run"
    run("aggregate", nasty / "labels.jsonl", "--method", "mv", "--out", tmp_path / "vote.csv", "--quiet")
    run("fit", nasty / "labels.jsonl", "--features", nasty / "items.jsonl", "--out", out, "--epochs", 1,
        "--gold", tmp_path / "vote.csv", "--quiet")  # fmt: skip
    found = RunFolder(out).findings()
    assert set(found.items.loc[found.items["gold"] != ""].index) == set(NASTY)
    scored = run("evaluate", nasty / "run", "--truth", tmp_path / "vote.csv", "--json")
    assert json.loads(scored.stdout)["scores"]["n"] == len(NASTY)


def test_predictions_and_suggestions_are_read_again(nasty, tmp_path):
    run("predict", nasty / "run", nasty / "items.jsonl", "--out", tmp_path / "predicted.csv", "--quiet")
    run("suggest", nasty / "run", "--budget", 30, "--per-item", 3, "--out", tmp_path / "ask.csv", "--quiet")
    assert read_features(tmp_path / "predicted.csv").ids == NASTY
    ask = pd.read_csv(tmp_path / "ask.csv", dtype=str, keep_default_na=False)
    ask = ask.assign(label=np.resize(["a", "b"], len(ask)))
    ask.to_csv(tmp_path / "filled.csv", index=False, quoting=csv.QUOTE_ALL)
    filled = read_labels([tmp_path / "filled.csv"]).annotations
    assert set(filled.items) <= set(NASTY)
    assert set(filled.annotators) <= set(ANNOTATORS)
    # the table of annotators is the list of those who are available
    result = run("suggest", nasty / "run", "--annotators", nasty / "run" / "annotators.csv")
    assert "does not know" not in result.output


def test_the_run_says_what_the_apostrophe_means(nasty):
    assert "apostrophe" in json.loads((nasty / "run" / "run.json").read_text("utf-8"))["csv"]
    text = (nasty / "run" / "labels.csv").read_text("utf-8")
    assert not any(line.startswith(("=", "@")) for line in text.splitlines())


def test_guarded_names_of_another_tool_are_the_same_in_every_file(tmp_path):
    (tmp_path / "wide.csv").write_text("item,'=ann,bob\n'-->,a,b\n-17,b,b\n", "utf-8")
    (tmp_path / "x.csv").write_text("item,x\n '-->,1\n-17,2\n", "utf-8")
    (tmp_path / "ids.txt").write_text("'-->\n-17\n", "utf-8")
    np.save(tmp_path / "x.npy", np.zeros((2, 1)))
    labels = read_labels([tmp_path / "wide.csv"])
    assert list(labels.annotations.items) == ["-->", "-17"]
    assert list(labels.annotations.annotators) == ["=ann", "bob"]
    assert any("was removed from 2 cells" in note for note in labels.notes)
    assert read_features(tmp_path / "x.csv").ids == ["-->", "-17"]
    assert read_features(tmp_path / "x.npy", ids=tmp_path / "ids.txt").ids == ["-->", "-17"]


def test_a_name_with_a_zero_byte_can_be_written_and_read(tmp_path):
    rows = [{"item": f"i{n}", "annotator": "a\0b", "label": "xy"[n % 2]} for n in range(4)]
    (tmp_path / "labels.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    assert list(read_labels([tmp_path / "labels.jsonl"]).annotations.annotators) == ["a?b"]
