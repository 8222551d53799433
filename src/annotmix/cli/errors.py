"""Mistakes of a user as one line, without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def one_line(*kinds: type[Exception]) -> Iterator[None]:
    """Show errors of these kinds as one line on stderr and leave with exit code 1."""
    try:
        yield
    except kinds as error:
        text = str(error)
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        typer.echo(f"Error: {' '.join(text.split())}", err=True)
        raise typer.Exit(1) from None
