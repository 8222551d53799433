"""A command imports no library that it does not need: a short command spends most of its time importing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter

import pytest

HEAVY = ("torch", "sklearn", "scipy.stats", "scipy.optimize", "distributed", "matplotlib")
SCRIPT = """
import json, sys
from annotmix.cli import app
for command in json.loads(sys.argv[1]):
    app(command, standalone_mode=False)
print(json.dumps(list(sys.modules)))
"""


def n_modules(*commands) -> Counter[str]:
    """Modules by package, and by package and subpackage, that commands import in a process of their own."""
    given = json.dumps([[str(argument) for argument in command] for command in commands])
    done = subprocess.run([sys.executable, "-c", SCRIPT, given], capture_output=True, text=True, check=True)
    modules = [name.split(".") for name in json.loads(done.stdout.splitlines()[-1])]
    return Counter(".".join(parts[:depth]) for parts in modules for depth in (1, 2) if len(parts) >= depth)


@pytest.fixture
def copied(finished, tmp_path):
    """A finished run of a network, which commands may change."""
    return shutil.copytree(finished[0], tmp_path / "run")


def test_commands_about_a_finished_run_need_neither_torch_nor_scikit_learn(problem, copied, tmp_path):
    loaded = n_modules(
        ("evaluate", copied, "--truth", problem / "truth.csv", "--quiet"),
        ("report", copied, "--quiet"),
        ("suggest", copied, "--quiet", "--out", tmp_path / "suggestions.csv"),
    )
    assert {name: loaded[name] for name in HEAVY} == dict.fromkeys(HEAVY, 0)
    assert loaded["annotmix.runs"] > 10


def test_aggregation_and_agreement_need_neither_torch_nor_scikit_learn(problem):
    methods = ("posterior", "ds", "mv")
    aggregated = [("aggregate", problem / "labels.csv", "--method", m, "--quiet") for m in methods]
    loaded = n_modules(*aggregated, ("agreement", problem / "labels.csv", "--quiet"))
    assert {name: loaded[name] for name in HEAVY} == dict.fromkeys(HEAVY, 0)


def test_a_classifier_of_scikit_learn_needs_no_torch(problem, tmp_path):
    run = tmp_path / "run"
    about = ("--features", problem / "items.csv", "--model", "logistic", "--out", run, "--quiet")
    loaded = n_modules(
        ("fit", problem / "labels.csv", *about),
        ("predict", run, problem / "items.csv", "--quiet", "--out", tmp_path / "predictions.csv"),
        ("suggest", run, "--quiet", "--out", tmp_path / "suggestions.csv"),
    )
    assert loaded["torch"] == loaded["sklearn.ensemble"] == loaded["distributed"] == 0
    assert loaded["sklearn.linear_model"] > 0


def test_an_export_is_refused_before_anything_is_loaded(copied):
    loaded = n_modules(("export", copied, "--onnx", copied / "c.onnx", "--with-encoder", "--quiet"))
    assert {name: loaded[name] for name in HEAVY} == dict.fromkeys(HEAVY, 0)


def test_a_network_is_read_without_the_compiler_of_torch(problem, copied, tmp_path):
    loaded = n_modules(
        ("predict", copied, problem / "items.csv", "--quiet", "--out", tmp_path / "predictions.csv")
    )
    absent = ("torch._dynamo", "sympy", "sklearn.ensemble", "sklearn.linear_model")
    assert {name: loaded[name] for name in absent} == dict.fromkeys(absent, 0)
    assert loaded["torch"] > 0
