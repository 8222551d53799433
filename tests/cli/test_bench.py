"""`annotmix bench`: what reaches a user, and mistakes as one line."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner

from annotmix.bench.study_files import parse_study
from annotmix.cli import app

runner = CliRunner()
PAPER = str(resources.files("annotmix.bench.paper") / "table3_clf_acc.csv")
ROOT = Path(__file__).parents[2]


def _bench(*arguments: str):
    return runner.invoke(app, ["bench", *arguments])


def test_help_lists_the_commands():
    result = _bench("--help")
    assert result.exit_code == 0
    for command in ("run", "status", "compare", "tables", "stats", "figures"):
        assert command in result.output


def test_stats_of_the_paper():
    result = _bench("stats", PAPER)
    assert result.exit_code == 0
    assert "χ² = 43.275" in result.output
    assert "χ² = 33.475" in result.output
    assert re.search(r"ds-mixup .* 0\.1104 .* no", result.output)


def test_stats_options_and_formats(tmp_path):
    out = tmp_path / "ranks.csv"
    result = _bench(
        "stats", PAPER, "--against", "madl", "--exclude", "", "--format", "csv", "--out", str(out)
    )
    assert result.exit_code == 0
    assert out.read_text().startswith("approach,rank,z,p,p_holm,significant,epoch")
    assert "true-base" in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "benchmrk"], "There is no study 'benchmrk'. Did you mean 'benchmark'?"),
        (["run", "quick", "--datasets", "mgc"], "has no dataset 'mgc'. It has digits."),
        (["run", "quick", "--import", "no_such_module"], "No module named 'no_such_module'"),
        (["tables", "quick"], "There is no result store 'annotmix-bench.sqlite'"),
        (["status"], "There is no result store"),
        (["stats", "none.csv"], "No such file or directory: none.csv"),
        (["stats", PAPER, "--against", "x"], "There is no approach 'x'"),
        (["stats", PAPER, "--score", "x"], "no column 'x'"),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = _bench(*arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_missing_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)  # importing it fails
    result = _bench("run", "quick")
    assert result.exit_code == 1
    assert 'annotmix bench needs yaml. Install it with: pip install "annotmix[bench]"' in result.stderr


def test_nothing_heavy_before_it_is_needed():
    code = "from annotmix.cli import app; app(['bench', '--help'], standalone_mode=False)"
    heavy = "{'torch', 'pandas', 'dask', 'distributed', 'matplotlib', 'yaml', 'numpy'}"
    check = f"import sys; {code}; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


def test_the_documents_study_is_valid():
    text = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    (study,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert len(parse_study(study, "mine", "mine.yaml").runs()) == 45
