"""What the documentation shows is run: the tutorial, the forms of labels, and a page for every approach."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from annotmix.approaches import get_approach, list_approaches
from annotmix.cli import app
from annotmix.estimators import class_name
from annotmix.labels.annotations import Annotations

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLE = re.compile(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)


def run(line):
    """A line of the command line, in the present folder."""
    program, *arguments = shlex.split(line, comments=True)
    assert program == "annotmix"
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, f"{line}\n{done.output}"


def test_the_tutorial_runs_from_csv_to_report(tmp_path, monkeypatch):
    """Code in the order of the page."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(
        r"^```(python|sh)\n(.*?)^```", (DOCS / "tutorial.md").read_text("utf-8"), re.DOTALL | re.M
    )
    assert [kind for kind, _ in blocks].count("sh") == 3
    names = {}
    for kind, code in blocks:
        if kind == "python":
            exec(compile(code, "tutorial.md", "exec"), names)
        else:
            for line in code.splitlines():
                run(line)
    truth = names["classes"][names["truth"]]
    assert (names["consensus"]["label"] == truth).mean() > 0.9
    written = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"report.html", "labels.csv", "annotators.csv", "items.csv", "run.json"} <= written
    assert (names["results"]["label"] == truth).mean() > 0.9
    assert 0 < len(pd.read_csv("ask.csv")) <= 200
    assert "Checked against known labels" in (tmp_path / "run" / "report.html").read_text("utf-8")


TABLES = ["long.csv", "wide.csv"]
EXPORTS = [
    "label-studio.json", "label-studio.csv", "argilla.json", "ann.jsonl", "answers.jsonl", "lists.jsonl",
]  # fmt: skip


@pytest.mark.parametrize("name", TABLES + EXPORTS)
def test_the_forms_of_labels_are_read(tmp_path, monkeypatch, name):
    text = dict(EXAMPLE.findall((DOCS / "your-data.md").read_text("utf-8")))[name]
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    run(f"annotmix aggregate {name} --method mv --out found.csv")
    found = pd.read_csv(tmp_path / "found.csv")
    assert len(found) == 2
    classes = {"cat", "dog"} if name in TABLES else {"good", "bad"}
    assert set(found["label"]) <= classes


def test_the_examples_with_pandas_run():
    names = {}
    for name, code in EXAMPLE.findall((DOCS / "your-data.md").read_text("utf-8")):
        if name == "pandas":
            exec(compile(code, "your-data.md", "exec"), names)
    assert names["clf"].classes_.tolist() == ["cat", "tree"]
    assert isinstance(names["annotations"], Annotations)


def test_lists_in_rows_become_a_long_table():
    class Dataset:
        def to_pandas(self):
            rows = {"text": ["a", "b"], "annotators": [["ann", "bob"], ["bob"]], "labels": [[1, 0], [1]]}
            return pd.DataFrame(rows)

    code = dict(EXAMPLE.findall((DOCS / "your-data.md").read_text("utf-8")))["hugging-face"]
    names = {"dataset": Dataset()}
    exec(compile(code, "your-data.md", "exec"), names)
    assert json.loads(names["labels"].to_json(orient="values")) == [
        [0, "ann", 1],
        [0, "bob", 0],
        [1, "bob", 1],
    ]


@pytest.fixture
def python_of(tmp_path, monkeypatch):
    """Runs the Python of a page in order, in an empty folder, and returns the names that it defines."""
    monkeypatch.chdir(tmp_path)

    def run_page(page):
        names = {}
        blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.DOTALL | re.M)
        assert blocks
        for code in blocks:
            exec(compile(code, page, "exec"), names)
        return names

    return run_page


def test_whom_to_trust(python_of):
    names = python_of("whom-to-trust.md")
    assert names["perf"].mean(axis=0).argmax() == 0
    assert names["perf"].mean(axis=0).argmin() == 3
    assert names["confusion"].loc[("swaps", 0), 1] > 0.5  # swaps the first two classes
    assert len(names["quality"]) == names["perf"].size


def test_annotator_features(python_of):
    names = python_of("annotator-features.md")
    assert names["perf"].shape == (2,)


def test_label_next(python_of):
    names = python_of("label-next.md")
    ask, pairs = names["ask"], names["pairs"]
    assert 38 < ask["cost"].sum() <= 40
    assert 0 < (ask["annotator"] == "expert").sum() <= 10
    assert 0 < (ask["annotator"] == "new one").sum() < 20
    assert pairs.shape == (8, 2)


def test_soft_labels(python_of):
    names = python_of("soft-labels.md")
    assert names["accuracy"] > 0.8
    assert names["labels"].to_long().columns.tolist() == ["item", "annotator", "label", "weight"]


def test_choosing(python_of):
    names = python_of("choosing.md")
    assert names["search"].best_params_ == {"lr": 1e-2}
    assert names["best"].best_epoch_ == names["best"].history_["valid/label-ll"].idxmax()
    assert names["explicit"].score(names["X"], names["y"]) > 0.7


def test_approaches(python_of):
    names = python_of("approaches.md")
    assert (names["clf"].consensus()["label"] == names["y"]).mean() > 0.95
    assert names["clf"].posterior_.helps


def test_mixes(python_of):
    names = python_of("mixes.md")
    assert names["clf"].mix == "cutmix"


def test_masks(python_of):
    names = python_of("masks.md")
    assert names["consensus"].shape == names["truth"].shape
    assert (names["consensus"] == names["truth"]).mean() > 0.9
    assert names["perf"].shape == (60, 3)


def test_every_approach_has_a_page():
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    spec = importlib.util.spec_from_file_location("approach_pages", DOCS / "approach_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    for name in list_approaches():
        page = pages.approach_page(get_approach(name))
        assert page.startswith(f"# {name}\n")
        assert class_name(name) in page
        *_, reference = sys.modules[get_approach(name).__module__].__doc__.strip().splitlines()
        assert reference.strip()[-30:] in page
        assert f"::: {get_approach(name).__module__}." in page
