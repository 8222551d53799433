"""Errors as one line without a traceback, and the output of commands."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

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
                text += ". Free some space and run it again; no half-written file is left"
        typer.echo(f"Error: {' '.join(text.split())}", err=True)
        raise typer.Exit(1) from None


@contextmanager
def interruptible(how_to_continue: Callable[[], str]) -> Iterator[None]:
    """Leave with exit code 130 on Ctrl-C, and say how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nInterrupted. {how_to_continue()}", err=True)
        raise typer.Exit(INTERRUPTED) from None


class Output:
    """The output of a command: lines of text, or one JSON document.

    Parameters
    ----------
    quiet : bool
        Print no lines.
    as_json : bool
        Lines go to stderr, so that stdout holds nothing but the document.
    """

    def __init__(self, quiet: bool, as_json: bool):
        self.quiet, self.as_json = quiet, as_json

    def say(self, line: str) -> None:
        """Print a line about the progress."""
        if not self.quiet:
            typer.echo(line, err=self.as_json)

    def document(self, content: Any) -> None:
        """Print the JSON document, with --json."""
        if self.as_json:
            from annotmix._common.files import to_json

            typer.echo(json.dumps(to_json(content), ensure_ascii=False, allow_nan=False))

    def table(self, table: pd.DataFrame, out: Path | None, as_json: bool, **more: pd.DataFrame) -> None:
        """Write a table to a CSV file, or print it as CSV or JSON; `more` tables go into the JSON by name."""
        from annotmix._common.files import write_text
        from annotmix._common.spreadsheet import to_csv
        from annotmix._common.words import count

        if out is not None:
            write_text(out, to_csv(table))
            self.say(f"{count(len(table), 'row')}: {out}")
        if as_json:
            others = {name: _records(own) for name, own in more.items()}
            self.document({"rows": _records(table), **others, "out": out})
        elif out is None:
            typer.echo(to_csv(table), nl=False)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]
