"""The demonstration with few epochs: the files, the commands it names, and what it found."""

from __future__ import annotations

import io
import shlex

import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.runs.demo import CROWD, run_demo
from annotmix.runs.folder import RunFolder

EPOCHS = 5


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    said = []
    return folder, run_demo(folder, said.append, seed=1, epochs=EPOCHS, progress=False), said


def test_the_folder_holds_the_files_and_a_run(demo):
    folder, findings, _ = demo
    assert {path.name for path in folder.iterdir()} == {"labels.csv", "features.csv", "truth.csv", "run"}
    assert RunFolder(folder / "run").findings().scores == findings.scores
    assert set(findings.annotators.index) == set(CROWD)
    assert findings.settings["approach"] == "annot-mix-plus"


def test_it_is_checked_against_the_truth(demo):
    folder, findings, _ = demo
    truth = pd.read_csv(folder / "truth.csv", index_col=0)["truth"].astype(str)
    assert findings.scores["n"] == len(truth) == 1000
    assert findings.scores["consensus-acc"] == (findings.items["label"] == truth).mean()
    assert findings.scores["consensus-acc"] > findings.scores["majority-acc"]
    given = pd.read_csv(folder / "labels.csv", dtype=str)
    right = (given["label"] == given.iloc[:, 0].map(truth)).groupby(given.iloc[:, 1]).mean()
    pd.testing.assert_series_equal(
        findings.annotators["real_accuracy"].sort_index(), right.sort_index(), check_names=False
    )
    assert "estimated and real accuracy" in (folder / "run" / "report.html").read_text("utf-8")


def test_the_commands_it_names_do_the_same(demo):
    folder, _, said = demo
    commands = [shlex.split(line)[2:] for line in said if line.startswith("$ ")]
    assert [command[0] for command in commands] == ["fit", "evaluate"]
    before = {path.name: path.read_bytes() for path in (folder / "run").glob("*.csv")}
    for command in commands:
        result = CliRunner().invoke(app, [*command, "--quiet"])
        assert result.exit_code == 0, result.output
    assert {path.name: path.read_bytes() for path in (folder / "run").glob("*.csv")} == before
    report = folder / "run" / "report.html"
    assert said[-1] == f"Report: {report}  ({report.resolve().as_uri()})"


def test_the_report_shows_the_digits(demo):
    _, findings, _ = demo
    with Image.open(io.BytesIO(findings.previews[findings.items.index[0]].image)) as image:
        assert image.format == "JPEG"
        low, high = image.getextrema()
        assert low < 64 < 192 < high


def test_files_of_the_user_are_not_overwritten(tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"holds another labels\.csv"):
        run_demo(tmp_path, print)
    assert (tmp_path / "labels.csv").read_text() == "mine"
    with pytest.raises(ValueError, match="is a file, expected a folder"):
        run_demo(tmp_path / "labels.csv", print)
