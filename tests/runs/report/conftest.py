"""Reports to open in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import real_runs, some_findings

from annotmix.runs.findings import Findings
from annotmix.runs.report.run import write_report


@pytest.fixture(scope="session")
def reports(tmp_path_factory) -> Callable[[str], Path]:
    """Writes the report of invented findings once, by name."""
    folder, made = tmp_path_factory.mktemp("reports"), {}

    def report(name: str) -> Path:
        if name not in made:
            write_report(find(name), folder / f"{name}.html")
            made[name] = folder / f"{name}.html"
        return made[name]

    def find(name: str) -> Findings:
        if name in ("small", "bare"):
            return some_findings.small() if name == "small" else some_findings.bare()
        if name == "hostile":
            return some_findings.invented(60, 20, 8, 200, some_findings.HOSTILE)
        if name == "over time":
            return some_findings.over_time()
        if name == "large":
            return some_findings.invented(30_000, 1000, 10, 100_000)
        assert name == "many classes"
        return some_findings.invented(2000, 300, 100, 6000)

    return report


@pytest.fixture(scope="session", params=["mgc", "labelme", "trec6"])
def real_run(request, data_dir, tmp_path_factory) -> Path:
    """The folder of a run that `annotmix fit` made of real data; its parent has the name of the data."""
    folder = tmp_path_factory.mktemp("real") / request.param
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANNOTMIX_CACHE", str(tmp_path_factory.mktemp("cache")))
        return getattr(real_runs, request.param)(data_dir, folder)
