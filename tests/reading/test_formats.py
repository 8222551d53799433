"""Formats come from one registry; this file adds one, with no other change."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.reading import FORMATS, Format, LabelRows, read_labels

DOCS = Path(__file__).resolve().parents[2] / "docs"


def recognises(file, columns):
    return file.records is not None and "votes" in file.records[0]


def read(files, columns):
    """Records such as {"photo": "a", "votes": {"ann": "cat"}}."""
    rows = [
        (record["photo"], name, label)
        for file in files
        for record in file.records
        for name, label in record["votes"].items()
    ]
    item, annotator, label = np.array(rows, dtype=object).T
    texts = {record["photo"]: record["title"] for file in files for record in file.records}
    return [LabelRows(item, annotator, label, ["Votes by photo."], texts)]


@pytest.fixture
def votes(monkeypatch, tmp_path):
    monkeypatch.setitem(FORMATS, "votes", Format("votes", "a list of votes by photo", __name__))
    path = tmp_path / "votes.json"
    path.write_text('[{"photo": "a", "title": "A cat?", "votes": {"ann": "cat", "ben": "dog"}}]')
    return path


@pytest.mark.parametrize("name", [None, "votes"])
def test_a_format_is_one_object(votes, name):
    labels = read_labels([votes], name)
    assert labels.format == "votes"
    assert labels.annotations.to_long().to_numpy().tolist() == [["a", "ann", "cat"], ["a", "ben", "dog"]]
    assert labels.texts == {"a": "A cat?"}
    assert labels.notes == ["Votes by photo."]
    with pytest.raises(ValueError, match=r"Did you mean 'votes'.* Known: long, .*, votes"):
        read_labels([votes], "vote")


def test_the_example_of_the_documentation_reads_the_same(votes, monkeypatch, tmp_path):
    page = (DOCS / "adding-a-format.md").read_text("utf-8")
    code = re.search(r"<!-- example: votes.py -->\n```python\n(.*?)```", page, re.DOTALL).group(1)
    (tmp_path / "votes_of_the_page.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    expected = read_labels([votes])
    monkeypatch.setitem(FORMATS, "votes", Format("votes", "a list of votes by photo", "votes_of_the_page"))
    labels = read_labels([votes])
    pd.testing.assert_frame_equal(labels.annotations.to_long(), expected.annotations.to_long())
    assert (labels.texts, labels.notes) == (expected.texts, expected.notes)


def test_a_new_format_leaves_the_others_alone(votes, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\na,ann,cat\na,ben,dog\n")
    assert read_labels([path]).format == "long"


def test_help_and_documentation_list_every_format():
    shown = " ".join(CliRunner().invoke(app, ["aggregate", "--help"]).output.split())
    page = (DOCS / "adding-a-format.md").read_text("utf-8")
    for entry in FORMATS.values():
        assert entry.title in shown
        assert f"| `{entry.name}` | {entry.title} |" in page
    assert f"{', '.join(FORMATS)}; by default the content decides" in shown


def test_the_registry_is_light():
    check = "import sys, annotmix.reading; print({'numpy', 'pandas', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
