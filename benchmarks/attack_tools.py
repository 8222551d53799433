"""Parts that the campaigns of attack.py share: trials within a time, child processes, a tiny run."""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import os
import re
import resource
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

#: Children are forks of a server that has imported everything and done nothing.
CONTEXT = multiprocessing.get_context("forkserver")
PRELOADED = [
    *("torch", "annotmix.cli", "annotmix.runs.fit", "annotmix.runs.predict", "annotmix.runs.suggest"),
    *("annotmix.datasets.cifar", "pydantic.main", "pydantic.type_adapter", "typer._adapters"),
]
#: Bytes that a child may take on top of what it has at the start.
MEMORY = 3 << 29
#: Parts of JSON that tell two equal runs apart: times, and how the command was called.
_TIMES = re.compile(
    rb'"(finished|overwrite|resume|seconds)": ("[^"]*"|true|false|\[[^\]]*\])| --overwrite| --resume'
)
#: Trials that a campaign gets even where its time is over.
LEAST = 3
#: Seconds after which a child counts as hanging.
PATIENCE = 120.0


class Trials:
    """The trials of a campaign: at most so many, in at most so many seconds, and what came of them.

    Parameters
    ----------
    count : int
        Most trials.
    seconds : float
        No trial begins after this time.
    folder : Path
        An empty folder for the files of the trials.
    seed : int
    """

    def __init__(self, count: int, seconds: float, folder: Path, seed: int = 0):
        self.count, self.folder = count, folder
        self.rng = np.random.default_rng(seed)
        self.begun = time.monotonic()
        self.deadline = self.begun + seconds
        self.tried = self.survived = 0
        self.failures: list[str] = []
        self.note = ""

    @property
    def more(self) -> bool:
        """Whether there is time for another trial; for the first few there always is."""
        return self.tried < self.count and (self.tried < LEAST or time.monotonic() < self.deadline)

    def __iter__(self) -> Iterator[Path]:
        """A new folder for every trial, removed afterwards."""
        while self.more:
            folder = self.folder / f"trial-{self.tried}"
            folder.mkdir()
            yield folder
            shutil.rmtree(folder, ignore_errors=True)

    def record(self, failure: str) -> None:
        """Count a trial; it survived where there is no failure to tell."""
        self.tried += 1
        self.survived += not failure
        if failure:
            self.failures.append(" ".join(failure.split())[:300])


class Child:
    """A function that runs in a process of its own; its output goes to a file.

    Parameters
    ----------
    folder : Path
        The current folder of the process.
    function : callable
        At the top level of a module.
    *arguments
        For the function.
    memory : int, optional
        Bytes that the process may take beyond those that it has at the start.
    """

    def __init__(
        self, folder: Path, function: Callable[..., Any], *arguments: Any, memory: int | None = None
    ):
        self.log = folder / f"log-{time.monotonic_ns()}.txt"
        self.process: Any = CONTEXT.Process(
            target=_child, args=(folder, self.log, memory, function, arguments), daemon=False
        )
        self.process.start()

    def wait(self, seconds: float = PATIENCE) -> int | None:
        """The exit code; None where the process had to be ended."""
        self.process.join(seconds)
        code: int | None = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        return code

    def kill(self) -> None:
        self.process.kill()
        self.process.join()

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def unclear(self, *codes: int) -> str:
        """A failure to tell unless the process ended with one of the codes, with 1 in one clear line."""
        return unclear(self.wait(), self.output, *(codes or (0, 1)))


def unclear(code: int | None, output: str, *codes: int) -> str:
    """A failure to tell unless a command ended with one of the codes, with 1 in one clear line."""
    errors = [line for line in output.splitlines() if line.startswith("Error: ")]
    if code not in codes:
        return f"ended with {code}: {output[-200:]}"
    if "Traceback" in output or (code == 1 and len(errors) != 1):
        return f"no clear line: {output[-200:]}"
    return ""


def _child(folder: Path, log: Path, memory: int | None, function: Callable[..., Any], arguments: Any) -> None:
    os.chdir(folder)
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.FileIO(n, "w", closefd=False), "utf-8") for n in (1, 2))
    if memory is not None:
        bound(memory)
    try:
        function(*arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def bound(memory: int) -> None:
    """Let this process take so many bytes more than it has."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + memory
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def command(*arguments: Any) -> None:
    """A command of annotmix in this process."""
    from annotmix.cli import app

    app([str(argument) for argument in arguments])


def in_children(
    trials: Trials,
    attempt: Callable[..., str],
    *arguments: Any,
    memory: int = MEMORY,
    patience: float = 60.0,
    most: int = 10**9,
) -> None:
    """Do `attempt(number, folder, *arguments)`, which returns a failure to tell, in children that may crash.

    One child does `most` trials; where one ends or hangs it, the next child goes on with the next trial.
    """
    while trials.more:
        folder = trials.folder / f"from-{trials.tried}"
        folder.mkdir()
        results = folder / "results.jsonl"
        last = min(trials.count, trials.tried + most)
        plan = (trials.tried, last, trials.deadline, results)
        child = Child(folder, _attempts, attempt, arguments, *plan, memory=memory)
        size, seen = -1, time.monotonic()
        while child.process.is_alive():
            child.process.join(0.2)
            now = results.stat().st_size if results.exists() else 0
            if now != size:
                size, seen = now, time.monotonic()
            elif time.monotonic() - seen > patience:
                child.kill()
        lines = results.read_text("utf-8").splitlines() if results.exists() else []
        for line in lines:
            trials.record(json.loads(line))
        if child.process.exitcode != 0:
            trials.record(
                f"trial {trials.tried} ended its process with {child.process.exitcode}: {child.output[-200:]}"
            )
        shutil.rmtree(folder, ignore_errors=True)


def _attempts(
    attempt: Callable[..., str], arguments: Any, first: int, last: int, deadline: float, results: Path
) -> None:
    with open(results, "a", encoding="utf-8") as file:
        for number in range(first, last):
            if number >= max(LEAST, first + 1) and time.monotonic() > deadline:
                return
            try:
                failure = attempt(number, results.parent, *arguments)
            except BaseException as error:
                where = traceback.format_exception(error)[-2:]
                failure = f"trial {number}: {type(error).__name__}: {error} {' '.join(where)}"
            file.write(json.dumps(failure) + "\n")
            file.flush()


# ---------------------------------------------------------------- a tiny run


def write_problem(folder: Path, n: int = 24) -> None:
    """Labels and features of a few items."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    items = pd.DataFrame(
        {"item": [f"i{k}" for k in range(n)], "x": y + rng.normal(size=n), "z": rng.normal(size=n)}
    )
    items.assign(colour=rng.choice(["red", "blue"], n)).to_csv(folder / "items.csv", index=False)
    pd.DataFrame({"item": items["item"], "truth": np.array(["no", "yes"])[y]}).to_csv(
        folder / "truth.csv", index=False
    )
    rows = [
        (f"i{k}", f"w{m}", "yes" if (y[k] if rng.random() < 0.8 else 1 - y[k]) else "no")
        for k in range(n)
        for m in range(3)
        if (k + m) % 3
    ]
    pd.DataFrame(rows, columns=["item", "annotator", "label"]).to_csv(folder / "labels.csv", index=False)


def fit_words(*more: Any, out: str = "run", epochs: int = 2) -> list[Any]:
    """The words of `annotmix fit` on the problem in the folder above the current one."""
    files = ["../labels.csv", "--features", "../items.csv", "--out", out]
    return ["fit", *files, "--epochs", epochs, "--quiet", *more]


def fitted(folder: Path, *more: Any, epochs: int = 2) -> Path:
    """A run in `folder`, made by a child."""
    folder.mkdir(exist_ok=True)
    child = Child(folder, command, *fit_words(*more, epochs=epochs))
    if failure := child.unclear(0):
        raise RuntimeError(f"the run that everything is compared with failed: {failure}")
    return folder / "run"


def contents(run: Path) -> dict[str, str]:
    """A digest of every file of a run, without the time at which it was made."""
    digests = {}
    for path in sorted(run.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.name in ("run.json", "model.json", "findings.json"):
                data = _TIMES.sub(b"", data)
            digests[path.relative_to(run).as_posix()] = hashlib.sha256(data).hexdigest()
    return digests


def differences(found: dict[str, str], expected: dict[str, str]) -> str:
    """What is different, in words; empty where nothing is."""
    wrong = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
    said = [
        f"{name} {'absent' if name not in found else 'left over' if name not in expected else 'differs'}"
        for name in wrong
    ]
    return ", ".join(said[:5])
