"""`annotmix review`."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from annotmix.cli import options
from annotmix.cli.errors import MISTAKES, Output, interruptible, one_line


def review(
    run: options.Run,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; by default any free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address alone; open no browser.")
    ] = False,
    images: Annotated[
        Path | None,
        typer.Option(help="Folder with the images of the items, to see them whole; else thumbnails."),
    ] = None,
    reviewer: Annotated[
        str | None, typer.Option(help="Your name beside your decisions; by default the login name.")
    ] = None,
    decisions: Annotated[
        Path | None, typer.Option(help="Write the decisions so far to this CSV file, and open no page.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Write the corrected labels to this CSV file, and open no page.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Review items of a run on a local web page: look at their labels, decide by keyboard, learn again.

    Decisions are kept in RUN/review.db at the moment they are made; annotmix fit … --gold RUN/review.db
    learns from them.

    Example: annotmix review my-run
    """
    output = Output(quiet, as_json=False)
    with one_line(*MISTAKES), interruptible(lambda: "All decisions are kept."):
        if decisions is not None or labels is not None:
            from annotmix.review.export import export

            for path, n in export(run, decisions, labels):
                output.say(f"{n} rows: {path}")
            return
        from annotmix._common.optional import require

        for module in ("starlette", "uvicorn"):
            require(module, "review", "annotmix review")
        from annotmix.review.server import serve

        serve(run, typer.echo, port, not no_browser, images, reviewer or _login())


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # an account without a name
        return "reviewer"
