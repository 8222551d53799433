"""A small problem as files, and a run of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.run_problem import EPOCHS, write_problem

from annotmix.runs.fit import fit
from annotmix.runs.request import Request

_EXPORT = Path(__file__).parents[1] / "reading" / "samples" / "label_studio" / "text_JSON.json"


@pytest.fixture(scope="session")
def problem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("problem")
    write_problem(folder)
    return folder


@pytest.fixture(scope="session")
def finished(problem, tmp_path_factory):
    """A finished run, not to be changed."""
    out = tmp_path_factory.mktemp("runs") / "run"
    request = Request((problem / "labels.csv",), out, features=problem / "items.csv", epochs=EPOCHS)
    said: list[str] = []
    found = fit(request, said.append, progress=False)
    return out, found, said


@pytest.fixture(scope="session")
def moods(tmp_path_factory):
    """A run of an export of Label Studio whose texts are longer than those of the report."""
    folder = tmp_path_factory.mktemp("moods")
    tasks = json.loads((_EXPORT).read_text("utf-8"))
    for task in tasks:
        task["data"]["text"] += " and so on" * 50
    (folder / "old.json").write_text(json.dumps(tasks), "utf-8")
    request = Request((folder / "old.json",), folder / "run", label="mood", model="logistic")
    fit(request, lambda line: None, progress=False)
    return folder
