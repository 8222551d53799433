"""Majority vote and Dawid–Skene over labels that do not fit into memory, in several processes.

Labels are first sorted into parts by item (`annotmix.reading.label_parts`). A round of EM is then one pass
over the parts: every process does the E-step of its parts and returns sums, and the sums of all processes are
the M-step. The state of every round is kept in the working folder, `OUT/.work`, so that an interrupted
command continues with the next round; the folder is removed at the end.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout

from annotmix._common.cluster import connect
from annotmix._common.files import save_array, write_json, write_text
from annotmix._common.progress import Progress
from annotmix._common.spreadsheet import to_csv
from annotmix._common.words import count
from annotmix.labels.expectation import precision
from annotmix.reading import Columns
from annotmix.reading.label_parts import gather, place, read_names, write_names
from annotmix.reading.values import in_order
from annotmix.runs.inputs import Say
from annotmix.runs.part_passes import Model, Parts, Sums, sum_parts, write_part
from annotmix.runs.part_sources import Source, source_of

if TYPE_CHECKING:
    from dask.dataframe import DataFrame

#: Labels of one part, about.
PART = 2**21
#: As in `annotmix.dawid_skene`.
MAX_ITER, TOL = 100, 1e-5


class Outcome(NamedTuple):
    """Figures of a finished aggregation."""

    n_items: int
    n_labels: int
    n_annotators: int
    classes: list[str]
    n_iter: int
    notes: list[str]


def aggregate_parts(
    labels: Sequence[Path | str] | Path | str | DataFrame,
    out: Path | str,
    method: str = "ds",
    *,
    columns: Columns | None = None,
    workers: int = 1,
    scheduler: str | None = None,
    seed: int = 0,
    part_size: int = PART,
    progress: bool = True,
) -> Outcome:
    """Aggregate labels that do not fit into memory, and write one label per item into a folder.

    An interrupted call continues with the next round when it is repeated.

    Parameters
    ----------
    labels : path, sequence of paths, or dask.dataframe.DataFrame
        Parquet files, a folder of them, or a table with the columns item, annotator and label; one row per
        label, in any order. Every partition of a table must fit into a worker's memory.
    out : path
        A folder for `items-*.parquet` (item, label, probability, n_labels) and `annotators.csv`.
    method : {"ds", "mv"}
        Dawid–Skene or majority vote, with the same result as in memory.
    columns : Columns, optional
        Names of columns that cannot be guessed.
    workers : int, default=1
        Local processes.
    scheduler : str, optional
        Address of a Dask scheduler whose workers see the same files, in place of local processes. A Dask
        DataFrame that is persisted on a cluster needs the scheduler of this cluster.
    seed : int, default=0
        Breaks ties of the vote.
    part_size : int
        Labels of one part, about; a process needs some 100 bytes per label of a part.
    progress : bool, default=True

    Returns
    -------
    Outcome
        Numbers of items, labels, annotators and rounds, the classes, and notes on rows that were left out.
    """
    if method not in ("mv", "ds"):
        raise ValueError(f"Labels in parts are aggregated by the method mv or ds, found {method!r}.")
    out, columns = Path(out), columns or Columns()
    source = source_of(labels, columns)
    out.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(out / ".lock", timeout=0), connect(scheduler, workers, workers) as client:
            return _Job(source, out, method, columns, seed, part_size, progress, client).run()
    except Timeout:
        raise ValueError(f"Another process is aggregating into {str(out)!r}.") from None


def aggregate_parts_command(
    paths: Sequence[Path],
    out: Path | None,
    method: str,
    columns: Columns,
    workers: int | None,
    scheduler: str | None,
    seed: int,
    say: Say,
) -> dict[str, Any]:
    """`annotmix aggregate --workers`: aggregate and say what was done; the figures, for --json."""
    plain = Columns(columns.item, columns.annotator, columns.label, columns.missing)
    if out is None or out.is_file():
        raise ValueError(
            "--workers and --scheduler write a folder of Parquet files: name it with --out FOLDER."
        )
    if columns != plain:
        raise ValueError(
            "--workers and --scheduler take one row per label, without --weight, --annotators, --exclude and "
            "--fold-case."
        )
    outcome = aggregate_parts(
        paths, out, method, columns=columns, workers=workers or 1, scheduler=scheduler, seed=seed
    )
    say(
        f"{count(outcome.n_labels, 'label')} by {count(outcome.n_annotators, 'annotator')} on "
        f"{count(outcome.n_items, 'item')}, {count(len(outcome.classes), 'class', 'classes')}; "
        f"{count(outcome.n_iter, 'round')} of EM."
    )
    for note in outcome.notes:
        say(f"  - {note}")
    say(f"Labels: {out}/items-*.parquet, annotators: {out}/annotators.csv")
    return {"out": str(out), **outcome._asdict()}


class _Job:
    """The stages of an aggregation; each one is skipped where it is done."""

    def __init__(
        self,
        source: Source,
        out: Path,
        method: str,
        columns: Columns,
        seed: int,
        part_size: int,
        progress: bool,
        client: Any,
    ):
        self.source, self.client, self.progress = source, client, progress
        self.out, self.method, self.columns, self.seed = out, method, columns, seed
        sizes = source.sizes(client)
        self.n_parts = max(1, math.ceil(sum(n for _, n in sizes) / part_size))
        self.folder = str((out / ".work").resolve())
        #: What must be the same for a state to be continued.
        self.settings = {
            "files": sizes,
            "columns": {**asdict(columns), "missing": list(columns.missing)},
            "n_parts": self.n_parts,
        }
        self.state = self._load()

    def run(self) -> Outcome:
        """All stages."""
        if "cells" not in self.state:
            self._encode()
        state = self.state
        dtype = precision(state["n_labels"], len(state["classes"]), state["most"])
        self.parts = Parts(self.folder, state["n_annotators"], len(state["classes"]), dtype.__name__)
        if self.method == "ds":
            self._rounds()
        self._write()
        shutil.rmtree(self.folder)
        notes = []
        if state["n_incomplete"]:
            notes.append(
                count(
                    state["n_incomplete"],
                    "row without an item, an annotator or a label was left out.",
                    "rows without an item, an annotator or a label were left out.",
                )
            )
        if state["n_repeated"]:
            notes.append(
                f"{state['n_repeated']} labels repeat an earlier one of the same annotator for the same "
                "item; the last counts."
            )
        return Outcome(
            state["n_items"],
            state["n_labels"],
            state["n_annotators"],
            state["classes"],
            len(state["history"]),
            notes,
        )

    # ---------------------------------------------------------------- stages

    def _encode(self) -> None:
        """Sort the labels into parts, and encode names."""
        work = self.source.scatter(self.folder, self.columns, self.n_parts)
        files = self._map("Reading labels", work)
        annotators = list(dict.fromkeys(name for file in files for name in file.annotators))
        classes = in_order(name for file in files for name in file.classes)
        if not classes or not annotators:
            raise ValueError("There are no labels: no row has an item, an annotator and a label.")
        write_names(self.folder, "annotators", annotators)
        write_names(self.folder, "classes", classes)
        parts = self._map(
            "Sorting labels", [partial(gather, part, len(files), self.folder) for part in range(self.n_parts)]
        )
        shutil.rmtree(self._path("scattered"))
        cells = np.unique(np.concatenate([part.cells for part in parts]))
        most = np.zeros(len(cells), dtype=np.int64)
        for part in parts:
            most[np.searchsorted(cells, part.cells)] += part.counts
        save_array(self._path("cells.npy"), cells)
        self._map("Numbering labels", [partial(place, part, self.folder) for part in range(self.n_parts)])
        self._save(
            cells=len(cells),
            most=int(most.max()),
            n_items=sum(part.n_items for part in parts),
            n_labels=sum(part.n_labels for part in parts),
            n_repeated=sum(part.n_repeated for part in parts),
            n_incomplete=sum(file.n_incomplete for file in files),
            n_annotators=len(annotators),
            classes=classes,
            history=[],
        )

    def _rounds(self) -> None:
        """Rounds of EM until the log-likelihood no longer rises; the counts of the last two are kept."""
        if "prior" not in self.state:
            self._keep(self._pass("Votes", None), first=True)
        tolerance = TOL * self.state["n_labels"]
        while not _converged(history := self.state["history"], tolerance) and len(history) < MAX_ITER:
            self._keep(self._pass(f"Round {len(history) + 1}", self._model(len(history))))

    def _keep(self, sums: Sums, first: bool = False) -> None:
        """Make the sums of a pass the state of the next round."""
        number = len(self.state["history"]) + (not first)
        save_array(self._path(f"counts-{number}.npy"), sums.counts)
        prior = (sums.shares / sums.n_items).tolist()
        priors = {**self.state.get("prior", {}), str(number): prior}
        history = self.state["history"] if first else [*self.state["history"], sums.log_likelihood]
        self._save(prior=priors, history=history)
        Path(self._path(f"counts-{number - 2}.npy")).unlink(missing_ok=True)

    def _model(self, number: int) -> Model:
        """The model of a round."""
        return Model(str(self._path(f"counts-{number}.npy")), self.state["prior"][str(number)])

    def _pass(self, title: str, model: Model | None) -> Sums:
        """Sums of all parts; every worker sums its share of them."""
        n = min(self.n_parts, max(1, len(self.client.nthreads())))
        shares = [list(range(first, self.n_parts, n)) for first in range(n)]
        sums: list[Sums] = self._map(
            title, [partial(sum_parts, self.parts, share, model) for share in shares]
        )
        return reduce(Sums.plus, sums)

    def _write(self) -> None:
        """Labels of the items of every part, and the table of annotators."""
        model = None if self.method == "mv" else self._model(len(self.state["history"]) - 1)
        out = str(self.out.resolve())
        work = [partial(write_part, self.parts, part, model, out, self.seed) for part in range(self.n_parts)]
        right, n_labels = np.sum(self._map("Writing labels", work), axis=0).T
        columns = {
            "annotator": read_names(self.folder, "annotators"),
            "n_labels": n_labels.astype(np.int64),
            "accuracy": right / n_labels,
        }
        write_text(self.out / "annotators.csv", to_csv(pd.DataFrame(columns)))

    # ---------------------------------------------------------------- state and processes

    def _map(self, title: str, work: Sequence[Any]) -> list[Any]:
        """Results of calls, or of delayed calls, done by the workers."""
        from dask.base import is_dask_collection
        from distributed import as_completed

        submit, compute = partial(self.client.submit, pure=False), self.client.compute
        futures = [compute(call) if is_dask_collection(call) else submit(call) for call in work]
        with Progress(title, len(work), show=self.progress) as bar:
            for _ in as_completed(futures):  # type: ignore[no-untyped-call]
                bar.advance()
        return [future.result() for future in futures]

    def _path(self, name: str) -> Path:
        return Path(self.folder) / name

    def _load(self) -> dict[str, Any]:
        path = self._path("state.json")
        try:
            saved = json.loads(path.read_text("utf-8"))
            if saved["settings"] == json.loads(json.dumps(self.settings)):
                return dict(saved["state"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
        shutil.rmtree(self.folder, ignore_errors=True)
        return {}

    def _save(self, **changes: Any) -> None:
        self.state |= changes
        write_json(self._path("state.json"), {"settings": self.settings, "state": self.state})


def _converged(history: list[float], tolerance: float) -> bool:
    return len(history) > 1 and history[-1] - history[-2] <= tolerance
