"""Mistakes of a user as one line, without a traceback; what a command says, and to whom."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

#: Kinds of errors that a user can do something about.
MISTAKES = (OSError, ValueError, ImportError, ArithmeticError)
INTERRUPTED = 130


@contextmanager
def one_line(*kinds: type[Exception]) -> Iterator[None]:
    """Show errors of these kinds as one line on stderr and leave with exit code 1."""
    try:
        yield
    except kinds as error:
        text = str(error)
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
            if error.errno == errno.ENOSPC:
                text += ". Make room and run it again; nothing half-written is left"
        typer.echo(f"Error: {' '.join(text.split())}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def interruptible(how_to_go_on: Callable[[], str]) -> Iterator[None]:
    """Leave with exit code 130 on Ctrl-C, and say how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nInterrupted. {how_to_go_on()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


class Output:
    """What a command says: lines for people, or one JSON document for machines.

    Parameters
    ----------
    quiet : bool
        Lines are not said.
    as_json : bool
        Lines go to stderr, so that stdout holds nothing but the document.
    """

    def __init__(self, quiet: bool, as_json: bool):
        self.quiet, self.as_json = quiet, as_json

    def say(self, line: str) -> None:
        """A line about what is being done."""
        if not self.quiet:
            typer.echo(line, err=self.as_json)

    def document(self, content: Any) -> None:
        """The one document; nothing where none is wanted."""
        if self.as_json:
            from annotmix.runs.storage import plain

            typer.echo(json.dumps(plain(content), ensure_ascii=False, allow_nan=False))
