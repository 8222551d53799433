"""A small problem as files, and a run of it."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from run_problem import EPOCHS, write_problem

from annotmix.run.fitting import fit
from annotmix.run.request import Request


@pytest.fixture(autouse=True)
def report_stand_in(monkeypatch):
    """The page is tested in its own room; here it only has to be asked for."""
    module = types.ModuleType("annotmix.report.run")
    module.write_report = lambda found, path: Path(path).write_text(f"<title>{len(found.items)}</title>")
    monkeypatch.setitem(sys.modules, "annotmix.report.run", module)


@pytest.fixture(scope="session")
def problem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("problem")
    write_problem(folder)
    return folder


@pytest.fixture(scope="session")
def finished(problem, tmp_path_factory):
    """A finished run, not to be changed."""
    module = types.ModuleType("annotmix.report.run")
    module.write_report = lambda found, path: Path(path).write_text("<title>")
    out = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "annotmix.report.run", module)
        request = Request((problem / "labels.csv",), out, features=problem / "items.csv", epochs=EPOCHS)
        said: list[str] = []
        found = fit(request, said.append, progress=False)
    return out, found, said
