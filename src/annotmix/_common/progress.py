"""Progress: a bar on a terminal or in a notebook, plain lines in a log, nothing in the first two seconds."""

from __future__ import annotations

import sys
import time
from contextvars import ContextVar
from html import escape
from importlib import import_module
from types import TracebackType
from typing import Any

PATIENCE = 2.0
LINE_EVERY = 10.0
#: Seconds between two changes of the bar in a notebook.
BAR_EVERY = 0.5


#: The job that is under way, whose display shows what happens inside it.
_outer: ContextVar[Progress | None] = ContextVar("outer", default=None)


class Progress:
    """Shows how far a job of `total` steps is; use as a context manager.

    A job inside another one is shown as a note of the outer one, and is silent where that one is.

    Parameters
    ----------
    title : str
    total : int
    done : int, default=0
        Steps that were done before (a resumed job).
    show : bool, default=True
    """

    def __init__(self, title: str, total: int, done: int = 0, show: bool = True):
        self.title, self.total, self.done, self.show = title, total, done, show
        self._bar: Any = None
        self._task: Any = None
        self._last_line: float | None = None
        self._outside: Progress | None = None
        self._cell: Any = None

    def __enter__(self) -> Progress:
        self._started = time.monotonic()
        self._outside = _outer.get()
        self._token = _outer.set(self)
        return self

    def advance(self, note: str = "", steps: int = 1) -> None:
        """One step is done, or several; `note` says how it went."""
        self.done += steps
        self._display(note, last=self.done == self.total)

    def within(self, note: str) -> None:
        """A part of a step is done, as `note` says."""
        self._display(note, last=False)

    def _display(self, note: str, last: bool) -> None:
        now = time.monotonic()
        if not self.show or now - self._started < PATIENCE:
            return
        if self._outside is not None:
            self._outside.within(f"{self.title}: {self.done}/{self.total}")
        elif _in_notebook():
            if self._last_line is None or now - self._last_line >= BAR_EVERY or last:
                self._last_line = now
                self._update_cell(note)
        elif sys.stderr.isatty():
            self._update_bar(note)
        elif self._last_line is None or now - self._last_line >= LINE_EVERY or last:
            self._last_line = now
            print(f"{self.title}: {self.done}/{self.total}  {note}", file=sys.stderr, flush=True)

    def _update_cell(self, note: str) -> None:
        """Show or change the one bar below a notebook's cell; it needs no widgets."""
        view = _CellView(self.title, self.done, self.total, note)
        if self._cell is None:
            display: Any = import_module("IPython.display").display
            self._cell = display(view, display_id=True)
        else:
            self._cell.update(view)

    def _update_bar(self, note: str) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}", markup=False),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.total, note=note)
        self._bar.update(self._task, completed=self.done, note=note)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _outer.reset(self._token)
        if self._bar is not None:
            self._bar.stop()


class _CellView:
    """What a notebook shows of a job."""

    def __init__(self, title: str, done: int, total: int, note: str):
        self.words, self.done, self.total = f"{title}: {done}/{total}  {note}", done, total

    def __repr__(self) -> str:
        return self.words

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self.done}" max="{self.total}" style="vertical-align: middle"></progress>'
        return f"<div>{bar} {escape(self.words)}</div>"


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this; IPython is not imported for the question."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
