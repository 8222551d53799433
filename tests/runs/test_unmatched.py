"""Labels whose items are not found are counted, and items that they may belong to are not suggested."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from helpers.run_problem import write_problem
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.runs.fit import fit
from annotmix.runs.folder import RunFolder
from annotmix.runs.request import Request
from annotmix.runs.unmatched import NOTHING_UNMATCHED, find_unmatched


def test_nothing_is_said_where_nothing_was_lost():
    assert find_unmatched([], ["a"], {"a"}, "images") == NOTHING_UNMATCHED


def test_similar_and_unclear_names_are_held_back():
    lost = ["/data/upload/1/ab12cd34-digit_0.png", "/data/upload/1/99999999-cat.png"]
    found = find_unmatched(lost, ["digit 0.png", "x/cat.png", "dog.png", "7"], {"x/cat.png"}, "images")
    assert found.items == ["digit 0.png", "x/cat.png"]
    assert found.note.startswith(
        "2 labelled items have no matching image, and their labels were left out: '/data"
    )
    assert "2 items without labels have similar names and are not suggested" in found.note
    assert "one of the 2 further items without labels" in found.note


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose labels call three of the items a little differently."""
    folder = tmp_path_factory.mktemp("unmatched")
    write_problem(folder, n=60)
    labels = pd.read_csv(folder / "labels.csv", dtype=str)
    labels["item"] = labels["item"].replace({"007": "7", "013": "13", "020": "Item-20"})
    labels.to_csv(folder / "labels.csv", index=False)
    request = Request(
        (folder / "labels.csv",), folder / "run", features=folder / "items.csv", model="logistic"
    )
    return folder / "run", fit(request, lambda line: None, progress=False)


def test_a_run_says_so_and_does_not_suggest_them(run):
    out, findings = run
    assert findings.unmatched.items == ["007", "013"]
    assert not {"007", "013"} & set(findings.suggestions["item"])
    assert findings.notes[0] == findings.unmatched.note
    assert RunFolder(out).findings().unmatched == findings.unmatched
    page = (out / "report.html").read_text("utf-8")
    at = page.index('id="suggestions-section"')
    assert "labels were left out" in page[:at]
    assert "labels were left out" in page[at : page.index("Questions worth asking", at)]


def test_annotmix_suggest_does_not_suggest_them_either(run):
    result = CliRunner().invoke(app, ["suggest", str(run[0]), "--budget", "500", "--json"])
    assert "labels were left out" in result.stderr
    assert not {"007", "013"} & {row["item"] for row in json.loads(result.stdout)["rows"]}
