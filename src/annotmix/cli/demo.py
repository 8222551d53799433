"""`annotmix demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annotmix.cli.errors import one_line


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("annotmix-demo"),
    seed: Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The same seed gives the same page.")] = 0,
) -> None:
    """Learn digits from a simulated crowd; write a report.

    Trains three classifiers on handwritten digits that annotators of very different skill have labelled,
    and shows whom and what to trust. Takes half a minute; needs no data and no network.

    Example: annotmix demo --out my-folder
    """
    from annotmix.runs.demo import run_demo

    with one_line(OSError):
        run_demo(out, seed)
