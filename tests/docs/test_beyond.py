"""Python in docs/beyond is run, a page at a time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BEYOND = Path(__file__).resolve().parents[2] / "docs" / "beyond"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the Python of a page in order; gives the names it defines."""
    monkeypatch.chdir(tmp_path)

    def page(name):
        names = {}
        blocks = re.findall(r"^```python\n(.*?)^```", (BEYOND / name).read_text("utf-8"), re.DOTALL | re.M)
        assert blocks
        for code in blocks:
            exec(compile(code, name, "exec"), names)
        return names

    return page


def test_soft_labels(run):
    names = run("soft-labels.md")
    assert names["accuracy"] > 0.8
    assert names["labels"].to_long().columns.tolist() == ["item", "annotator", "label", "weight"]


def test_choosing(run):
    names = run("choosing.md")
    assert names["search"].best_params_ == {"lr": 1e-2}
    assert names["best"].best_epoch_ == names["best"].history_["valid/label-ll"].idxmax()
    assert names["by_hand"].score(names["X"], names["y"]) > 0.7
