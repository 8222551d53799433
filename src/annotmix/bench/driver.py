"""Runs a study on Dask: workers compute, this process alone writes the store.

Each worker gets one run at a time, so that a run is marked as running only while it runs. A worker
that dies is replaced by Dask, and its run starts again, a few times at most.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotmix._common.cluster import connect
from annotmix._common.progress import Progress
from annotmix.bench import require
from annotmix.bench.store import Store, driving
from annotmix.bench.study import DatasetEntry, Run, Study
from annotmix.bench.worker import code, execute, prepare

#: Seconds to wait for a result before the number of workers is checked again.
_PATIENCE = 2.0


@dataclass
class Outcome:
    """The outcome of a study: numbers of runs, and the skipped datasets with the reason."""

    total: int = 0
    before: int = 0
    done: int = 0
    failed: int = 0
    failed_before: int = 0
    without_data: int = 0
    skipped: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = {
            "in the store before": self.before,
            "done now": self.done,
            "failed now": self.failed,
            "failed before (--retry does them again)": self.failed_before,
            f"skipped ({', '.join(self.skipped)})": self.without_data,
        }
        return f"{self.total} runs: {', '.join(f'{n} {what}' for what, n in parts.items() if n)}."


def run_study(
    study: Study,
    store: Path,
    *,
    data_dir: Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    retry: bool = False,
    again: bool = False,
    modules: Sequence[str] = (),
) -> Outcome:
    """Do the missing runs of a study.

    Parameters
    ----------
    study : Study
    store : path
        The result store; made where there is none.
    data_dir : path, optional
        Folder with the datasets' files.
    workers : int, optional
        Local processes with one thread each; by default as many as cores.
    scheduler : str, optional
        Address of a Dask scheduler whose workers to use in place of local ones.
    retry : bool, default=False
        Also do runs again that failed.
    again : bool, default=False
        Also do runs again that another version of the code has done; both results stay.
    modules : sequence of str
        Modules that workers import first, with approaches of their own.
    """
    folder = None if data_dir is None else os.path.abspath(data_dir)
    with driving(store), Store(store, write=True) as results:
        results.forget_running()  # of drivers that were killed: no other one lives
        runs = study.runs()
        results.note_plan(study.name, runs)
        todo = missing(results, runs, study.history, retry, again)
        outcome = Outcome(len(runs), len(runs) - len(todo))
        failed = {} if retry or again else failures(results)
        outcome.failed_before = sum(run.key in failed for run in runs)
        outcome.before -= outcome.failed_before
        if todo:
            try:
                with connect(scheduler, workers or os.cpu_count() or 1, len(todo)) as client:
                    _Driver(client, results, study, folder, list(modules), outcome).work(todo)
            finally:
                results.forget_running()
    return outcome


def missing(store: Store, runs: Iterable[Run], history: bool, retry: bool, again: bool) -> list[Run]:
    """The runs that have to be done."""
    table = store.runs()
    done = table[table["status"] == "done"]
    if history:
        done = done[done["every_epoch"] == 1]
    if again:
        commit, dirty = code()["commit"], code()["dirty"]
        known = commit is not None and not dirty  # code without a commit is not known to be the same
        done = done[(done["commit"] == commit) & (done["dirty"] == 0)] if known else done[:0]
    keys = set(done["key"]) | (set() if retry or again else set(failures(store)))
    return [run for run in runs if run.key not in keys]


def failures(store: Store) -> dict[str, str]:
    """Tracebacks of the runs that failed and were never done, by key; the newest counts."""
    table = store.runs()
    done = set(table.loc[table["status"] == "done", "key"])
    failed = table[(table["status"] == "failed") & ~table["key"].isin(done)]
    return dict(zip(failed["key"], failed["error"], strict=True))


class _Driver:
    """Hands out datasets to prepare and runs to do, and writes the results."""

    def __init__(
        self,
        client: Any,
        store: Store,
        study: Study,
        data_dir: str | None,
        modules: list[str],
        outcome: Outcome,
    ):
        self.client, self.store, self.study, self.outcome = client, store, study, outcome
        self.data_dir, self.modules = data_dir, modules
        self.wait = require("distributed").wait
        self.progress: Progress

    def work(self, todo: Sequence[Run]) -> None:
        by_dataset: dict[str, list[Run]] = {}
        for run in todo:
            by_dataset.setdefault(run.dataset.label, []).append(run)
        unprepared = deque(by_dataset)
        ready: deque[Run] = deque()
        preparing: dict[Any, str] = {}
        running: dict[Any, tuple[Run, int]] = {}
        with Progress(self.study.name, len(todo)) as self.progress:
            while unprepared or ready or preparing or running:
                free = len(self.client.nthreads()) - len(preparing) - len(running)
                for _ in range(max(0, free)):
                    if ready:
                        run = ready.popleft()
                        number = self.store.begin(run, self.study.history)
                        running[self.submit(execute, run.configuration, run=number)] = run, number
                    elif unprepared:
                        label = unprepared.popleft()
                        source = by_dataset[label][0].dataset.source
                        preparing[self.submit(prepare, source)] = label
                for future in self.finished([*preparing, *running]):
                    if future in preparing:
                        label = preparing.pop(future)
                        ready.extend(self.prepared(by_dataset[label], future))
                    else:
                        self.record(*running.pop(future), _result(future))

    def submit(self, function: Any, subject: Any, run: int | None = None) -> Any:
        more = (self.study.history, self.modules) if function is execute else ()
        name = f"prepare-{subject['name']}" if run is None else f"run-{run}"
        return self.client.submit(
            function, subject, self.data_dir, *more, pure=False, key=f"{name}-{id(subject)}"
        )

    def finished(self, futures: list[Any]) -> list[Any]:
        """Futures that ended, after a while at the latest."""
        if not futures:
            time.sleep(_PATIENCE)  # no worker is there yet
            return []
        try:
            return list(self.wait(futures, timeout=_PATIENCE, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            return []

    def prepared(self, runs: list[Run], future: Any) -> list[Run]:
        """The runs of a dataset; none where it is not available."""
        dataset: DatasetEntry = runs[0].dataset
        result = _result(future)
        if "facts" in result:
            self.store.note_dataset(dataset.source, result["facts"])
            return runs
        if "error" in result:  # the files are there, but not as they should be
            for run in runs:
                self.record(run, self.store.begin(run, self.study.history), result)
            return []
        self.outcome.skipped[dataset.label] = result["absent"]
        self.outcome.without_data += len(runs)
        self.store.note_plan(self.study.name, self.study.runs(), self.outcome.skipped)
        _say(f"{dataset.label} is skipped: {result['absent']}")
        for _ in runs:
            self.progress.advance(f"{dataset.label} skipped")
        return []

    def record(self, run: Run, number: int, result: dict[str, Any]) -> None:
        self.store.finish(number, result)
        if result.get("error"):
            self.outcome.failed += 1
            reason = result["error"].strip().splitlines()[-1]
            _say(f"{run} failed: {reason}")
            self.progress.advance(f"{run} failed")
        else:
            self.outcome.done += 1
            score = result["scores"]["last"].get("test/clf-acc", float("nan"))
            self.progress.advance(f"{run}: {100 * score:.1f} in {result['fit_seconds']:.1f} s")


def _result(future: Any) -> dict[str, Any]:
    """The result of a task; an exception of Dask, such as a worker lost too often, as an error."""
    if future.status == "cancelled":
        raise ConnectionError("The Dask scheduler is gone. Start again to resume.")
    try:
        result: dict[str, Any] = future.result()
    except Exception as error:
        return {"error": "".join(traceback.format_exception(error))}
    finally:
        future.release()
    return result


def import_modules(modules: Iterable[str]) -> None:
    """Import modules with approaches of one's own, also from the current folder, for studies to use."""
    for module in modules:
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # local workers inherit it
        importlib.import_module(module)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
