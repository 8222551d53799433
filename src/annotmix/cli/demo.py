"""`annotmix demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annotmix.cli import options
from annotmix.cli.errors import MISTAKES, Output, interruptible, one_line


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files and the run.")] = Path("annotmix-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The same seed gives the same run.")] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Run fit on digits that a simulated crowd has labelled, and check it against the truth.

    Writes labels, features and true classes of handwritten digits as CSV files, runs annotmix fit and
    annotmix evaluate on them, and says where the report is. Needs no data and no network.

    Example: annotmix demo --out my-folder
    """
    with one_line(*MISTAKES), interruptible(lambda: "Run annotmix demo again to start anew."):
        from annotmix.runs.demo import run_demo

        run_demo(out, Output(quiet, as_json=False).say, seed, progress=not quiet)
