"""The command line: help, version, errors, and nothing slow before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import annotmix
from annotmix.cli import app

runner = CliRunner()
COMMANDS = [
    "fit", "predict", "evaluate", "suggest", "report", "export", "aggregate", "agreement", "datasets", "demo",
    "bench",
]  # fmt: skip


def test_help_shows_commands_and_examples():
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in result.output
    assert "annotmix fit labels.csv --features items.csv --out my-run" in result.output
    assert "Exit codes: 0 done; 1 " in result.output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example(command):
    result = runner.invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: annotmix {command} " in result.output


def test_demo_help_shows_its_options():
    result = runner.invoke(app, ["demo", "--help"])
    assert result.exit_code == 0
    assert "--out" in result.output
    assert "--seed" in result.output


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"annotmix {annotmix.__version__}"


def test_out_and_seed_reach_the_demo(monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(
        "annotmix.runs.demo.run_demo", lambda out, say, seed, progress: calls.append((out, seed))
    )
    assert runner.invoke(app, ["demo", "--out", str(tmp_path), "--seed", "3"]).exit_code == 0
    assert calls == [(tmp_path, 3)]


def test_file_in_the_way_is_one_line(tmp_path):
    path = tmp_path / "taken"
    path.write_text("")
    result = runner.invoke(app, ["demo", "--out", str(path)])
    assert result.exit_code == 1
    assert result.stderr == f"Error: --out {str(path)!r} is a file, expected a folder.\n"


def test_read_only_folder_is_one_line(monkeypatch, tmp_path):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr("annotmix._common.files.write_atomically", refuse)
    result = runner.invoke(app, ["demo", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert result.stderr == f"Error: Permission denied: {tmp_path}\n"


@pytest.mark.parametrize(
    "arguments", [["demo", "--seed", "-1"], ["demo", "--seed", "x"], ["dmeo"], ["demo", "x"]]
)
def test_wrong_arguments_are_usage_errors(arguments):
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "code", ["import annotmix", "from annotmix.cli import app; app(['--help'], standalone_mode=False)"]
)
def test_nothing_slow_is_imported(code):
    check = f"import sys; {code}; print(sorted({{'torch', 'pandas', 'sklearn', 'numpy'}} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
