"""A small problem as files, and a run of it."""

from __future__ import annotations

import pytest
from helpers.run_problem import EPOCHS, write_problem

from annotmix.runs.fit import fit
from annotmix.runs.request import Request


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
