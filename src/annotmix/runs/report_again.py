"""The report of a run, written again."""

from __future__ import annotations

from pathlib import Path

from annotmix.runs.folder import RunFolder
from annotmix.runs.report.run import write_report


def write_report_again(run: Path, out: Path | None = None) -> Path:
    """Make the report of a run's findings, by default in place of the run's own one; returns its path."""
    folder = RunFolder(run).require()
    if out is not None:
        write_report(folder.findings(), out)
        return out
    with folder.replace() as stage:
        write_report(folder.findings(), stage / "report.html")
    return run / "report.html"
