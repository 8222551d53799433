"""Learning again with the decisions of a review, in a process beside the server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections import deque
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from annotmix.reading.decisions import NAME, Decision, Decisions, is_decisions
from annotmix.review.changes import changes
from annotmix.runs.findings import Findings, is_gold
from annotmix.runs.folder import RunFolder
from annotmix.runs.request import Request

#: The decisions together with true classes that were known before.
WITH_GOLD = "review-and-gold.db"
#: Lines of output that are kept.
LINES = 12
#: Reviewer in whose name true classes that were known before are entered.
KNOWN = "--gold"


class Training:
    """A run that is learnt again.

    Parameters
    ----------
    run : RunFolder
    findings : Findings
        Of that run.
    decisions : Decisions
    """

    def __init__(self, run: RunFolder, findings: Findings, decisions: Decisions):
        self.run, self.findings, self.decisions = run, findings, decisions
        self._lock = threading.Lock()
        self._child: subprocess.Popen[str] | None = None
        self._lines: deque[str] = deque(maxlen=LINES)
        self._answer: dict[str, Any] = {"state": "idle"}

    def start(self) -> None:
        """Begin, unless it is under way; a ValueError says why it cannot."""
        with self._lock:
            if self._answer["state"] == "running":
                return
            request = self.request()
            gone = [str(path) for path in _files(request) if not path.exists()]
            if gone:
                raise ValueError(
                    f"These files of the run are not there any more: {', '.join(gone[:5])}. Where they are "
                    f"elsewhere, run this with their places: {request.command()}"
                )
            decided = set(self.decisions.true_labels())
            if not decided:
                raise ValueError("No item has a class by its reviewers yet.")
            self._lines.clear()
            self._answer = {"state": "running", "out": str(request.out), "command": request.command()}
            self._child = subprocess.Popen(
                [sys.executable, "-u", "-m", "annotmix.review.child"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, encoding="utf-8", errors="replace",
                env={**os.environ, "PYTHONIOENCODING": "utf-8"},
            )  # fmt: skip
            threading.Thread(target=self._follow, args=(self._child, request, decided), daemon=True).start()

    def request(self) -> Request:
        """The request of the run, with the decisions as gold, into a new folder beside it."""
        request: Request = self.run.read("request")[0]
        return replace(request, gold=self._gold(), out=_beside(self.run.path), resume=False, overwrite=False)

    def _gold(self) -> Path:
        """The file of decisions, or a copy of it with the true classes that were known before."""
        table = self.findings.items
        known = table.loc[is_gold(table), "gold"] if "gold" in table else {}
        said = {decision.item for decision in self.decisions.current()}
        more = [
            Decision(str(item), KNOWN, "class", str(label))
            for item, label in known.items()
            if item not in said
        ]
        if not more:
            return self.decisions.path
        path = self.decisions.path.with_name(WITH_GOLD)
        path.unlink(missing_ok=True)
        self.decisions.copy_to(path)
        with Decisions(path, write=True) as both:
            both.add_all(more)
        return path

    def _follow(self, child: subprocess.Popen[str], request: Request, decided: set[str]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        with suppress(OSError):
            child.stdin.write(json.dumps(request.settings()) + "\n")
            child.stdin.flush()
        for line in child.stdout:
            self._lines.append(line.rstrip()[:300])
        code = child.wait()
        with suppress(OSError):
            child.stdin.close()
        answer: dict[str, Any] = {"state": "failed", "code": code}
        if code == 0:
            try:
                after = RunFolder(request.out).findings()
                answer = {"state": "done", "changes": changes(self.findings, after, decided)}
            except Exception as error:  # whatever it is: the page must not wait for ever
                self._lines.append(f"Error: {error!r}")
        with self._lock:
            self._answer = {**self._answer, **answer}

    def answer(self) -> dict[str, Any]:
        """How far it is, as JSON."""
        with self._lock:
            return {**self._answer, "lines": list(self._lines)}

    def stop(self) -> None:
        """End it with the server."""
        child = self._child
        if child is None or child.poll() is not None:
            return
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def open_decisions(run: RunFolder) -> Decisions:
    """The decisions of a run, to write; a run that learnt decisions begins with them."""
    path = run.path / NAME
    if not path.exists():
        gold = run.read("request")[0].gold
        if gold is not None and is_decisions(gold):
            with Decisions(gold) as earlier:
                own = [decision for decision in earlier.current() if decision.reviewer != KNOWN]
            with Decisions(path, write=True) as made:
                made.add_all(own)
    return Decisions(path, write=True)


def _files(request: Request) -> list[Path]:
    """The files and folders that a request names."""
    own = (
        getattr(request, option.name) for option in fields(request) if option.name not in ("labels", "out")
    )
    return [*request.labels, *(value for value in own if isinstance(value, Path))]


def _beside(run: Path) -> Path:
    """A new folder beside a run: my-run-reviewed, then my-run-reviewed-2."""
    whole = run.resolve()
    base = re.sub(r"-reviewed(-\d+)?$", "", whole.name)
    n = 1
    while (path := whole.with_name(f"{base}-reviewed" + (f"-{n}" if n > 1 else ""))).exists():
        n += 1
    return path
