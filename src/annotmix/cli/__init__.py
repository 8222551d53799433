"""The command line, one module per group of commands.

Modules that are slow to import (torch, pandas) are imported inside the commands, so that help comes at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

import annotmix
from annotmix.cli.bench_commands import bench
from annotmix.cli.datasets_command import datasets
from annotmix.cli.fit_commands import aggregate, agreement, demo, fit
from annotmix.cli.label_studio_commands import pull, push
from annotmix.cli.replace_command import replace
from annotmix.cli.review_command import review
from annotmix.cli.run_commands import evaluate, export, predict, report, suggest

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"annotmix {annotmix.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Learn a classifier from the noisy class labels of many annotators, and see whom and what to trust.

    Examples:

    annotmix fit labels.csv --features items.csv --out my-run

    annotmix fit label-studio.json --out my-run

    annotmix fit labels.csv --images photos --valid clean.csv --out my-run

    annotmix suggest my-run --budget 200

    annotmix review my-run

    annotmix push my-run --url https://labels.example.org

    annotmix predict my-run new-items.csv --out predictions.csv

    annotmix agreement labels.csv

    annotmix demo --out my-folder

    annotmix bench run quick

    Exit codes: 0 done; 1 a file or a value is wrong, said in one line; 2 wrong usage; 130 interrupted.
    """


for _command in (
    fit,
    review,
    predict,
    evaluate,
    suggest,
    push,
    pull,
    report,
    export,
    aggregate,
    agreement,
    replace,
    datasets,
    demo,
):
    app.command()(_command)
app.add_typer(bench, name="bench")


def main() -> None:
    """Run the command line."""
    app()
