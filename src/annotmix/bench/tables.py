"""The paper's tables: approaches × datasets, mean ± std over the seeds, the best marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from annotmix.bench.paper import paper_figures
from annotmix.bench.results import EPOCHS, Results

#: Not among those that are compared: it has the true classes.
UPPER, LOWER = "true-base", "mv-base"
DECIMALS = 1


@dataclass
class Cell:
    """Mean and standard deviation over n seeds, in percent; the std of one seed is None."""

    mean: float
    std: float | None
    n: int = 1
    best: bool = False
    second: bool = False
    worse: bool = False

    def __str__(self) -> str:
        if self.std is None:
            return f"{self.mean:.{DECIMALS}f}"
        return f"{self.mean:.{DECIMALS}f} ± {self.std:.{DECIMALS}f}"


@dataclass
class Table:
    """Cells by approach and dataset, and what has to be said below.

    Attributes
    ----------
    columns : list of (dataset, source)
        `source` is "" for our figures and "paper" for the paper's.
    rows : dict of approach to list of Cell or None
    """

    title: str
    score: str
    epoch: str
    columns: list[tuple[str, str]]
    rows: dict[str, list[Cell | None]]
    notes: list[str] = field(default_factory=list)


def make_tables(
    results: Results, score: str = "clf-acc", epochs: Sequence[str] = EPOCHS, paper: bool = False
) -> list[Table]:
    """A table an epoch; see `Results.part` for where a score is measured."""
    known = sorted({name for full in results.scores["score"] for name in (full, full.partition("/")[2])})
    if results.runs.empty:
        raise ValueError(f"The store has no finished run of the study {results.study.name!r}.")
    if score not in known:
        raise ValueError(f"There is no score {score!r} in these runs; there is {', '.join(known)}.")
    return [_table(results, score, epoch, paper) for epoch in epochs]


def _table(results: Results, score: str, epoch: str, paper: bool) -> Table:
    study = results.study
    names = {entry.label: entry.name for entry in study.approaches}
    columns, cells = [], []
    on: dict[str, list[str]] = {}
    theirs = paper_figures(score, epoch) if paper else {}
    for dataset in results.datasets:
        full = results.part(score, dataset)
        values = results.values(full, epoch)
        values = values[values["dataset"] == dataset]
        if values.empty:
            continue
        on.setdefault(full.partition("/")[0], []).append(dataset)
        ours = {label: _cell(values.loc[values["approach"] == label, "value"]) for label in names}
        mark(ours, [label for label, name in names.items() if name != UPPER], _baseline(names))
        if paper:
            given = {label: theirs.get((label, dataset)) for label in names}
            columns.append((dataset, "paper"))
            cells.append({label: None if pair is None else Cell(*pair) for label, pair in given.items()})
        columns.append((dataset, ""))
        cells.append(ours)
    rows = {label: [column[label] for column in cells] for label in names}
    shown = {label: row for label, row in rows.items() if any(row)}
    title = f"{study.name}: {score} [%] after the {epoch} epoch"
    notes = [_where(score, on), _legend(names), *_gaps(results), _made_by(results)]
    return Table(title, score, epoch, columns, shown, [note for note in notes if note])


def _cell(values: pd.Series) -> Cell | None:
    if values.empty:
        return None
    std = float(100 * values.std(ddof=1)) if len(values) > 1 else None
    return Cell(float(100 * values.mean()), std, len(values))


def mark(cells: dict[str, Cell | None], compared: Sequence[str], baseline: str | None) -> None:
    """Mark the best and second best of those that are compared, and who is worse than the baseline.

    Means are compared as they are shown, so that two that look alike are marked alike.
    """
    shown = {label: round(c.mean, DECIMALS) for label, c in cells.items() if c is not None}
    ranked = sorted({shown[label] for label in compared if label in shown}, reverse=True)
    for label, cell in cells.items():
        if cell is None or label not in compared:
            continue
        cell.best = len(ranked) > 1 and shown[label] == ranked[0]
        cell.second = len(ranked) > 2 and shown[label] == ranked[1]
        cell.worse = baseline in shown and shown[label] < shown[baseline]


def _baseline(names: dict[str, str]) -> str | None:
    return next((label for label, name in names.items() if name == LOWER), None)


def _where(score: str, on: dict[str, list[str]]) -> str:
    """Says where the score is measured, where that is not the same everywhere or not the test set."""
    if score == "clf-acc" or "/" in score:
        return ""
    places = {"test": "test", "train": "training"}
    return "; ".join(f"{', '.join(names)}: on the {places[part]} set" for part, names in on.items()) + "."


def _legend(names: dict[str, str]) -> str:
    text = "Mean ± standard deviation over the seeds"
    return text + (f"; {UPPER} is not compared." if UPPER in names.values() else ".")


def _gaps(results: Results) -> list[str]:
    """Which datasets have no runs, and which seeds are missing of others."""
    study, notes = results.study, []
    present = results.datasets
    if absent := [entry.label for entry in study.datasets if entry.label not in present]:
        notes.append(f"Without runs in the store, so not shown: {', '.join(absent)}.")
    count = results.runs.groupby(["dataset", "approach"]).size().to_dict()
    gaps = []
    for dataset in present:
        found = {entry.label: count.get((dataset, entry.label), 0) for entry in study.approaches}
        if len(set(found.values())) == 1 and (n := next(iter(found.values()))) < len(study.seeds):
            gaps.append(f"{dataset} {n} of {len(study.seeds)}")
        else:
            missing = [f"{label} {n}" for label, n in found.items() if n < len(study.seeds)]
            if missing:
                gaps.append(f"{dataset} ({', '.join(missing)} of {len(study.seeds)})")
    if gaps:
        notes.append(f"Seeds that are done: {'; '.join(gaps)}; all of the others.")
    else:
        notes.append(f"{len(study.seeds)} seeds.")
    return notes


def _made_by(results: Results) -> str:
    made = [f"{name} ({n} runs)" for name, n in results.code().items()]
    return f"Made by annotmix {', '.join(made)}."
