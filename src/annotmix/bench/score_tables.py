"""The paper's tables: approaches × datasets, mean ± std over the seeds, the best marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from annotmix._common.words import count
from annotmix.bench.paper import PaperScores, paper_figures
from annotmix.bench.results import EPOCHS, Results
from annotmix.bench.sheets import NONE, Sheet, Shown

#: Not compared with the others: it has the true classes.
UPPER, LOWER = "true-base", "mv-base"
DECIMALS = 1


@dataclass
class Cell:
    """Mean and standard deviation over n seeds, in percent; the std of one seed is None."""

    mean: float
    std: float | None
    n: int = 0
    best: bool = False
    second: bool = False
    worse: bool = False


Column = dict[str, Cell | None]


def make_tables(
    results: Results, score: str = "clf-acc", epochs: Sequence[str] = EPOCHS, paper: bool = False
) -> list[Sheet]:
    """One sheet per epoch; see `Results.part` for where a score is measured."""
    known = sorted({name for full in results.scores["score"] for name in (full, full.partition("/")[2])})
    if results.runs.empty:
        raise ValueError(f"The store has no finished run of the study {results.study.name!r}.")
    if score not in known:
        raise ValueError(f"There is no score {score!r} in these runs; there is {', '.join(known)}.")
    return [_table(results, score, epoch, paper) for epoch in epochs]


def _table(results: Results, score: str, epoch: str, paper: bool) -> Sheet:
    study = results.study
    names = {entry.label: entry.name for entry in study.approaches}
    compared = [label for label, name in names.items() if name != UPPER]
    baseline = next((label for label, name in names.items() if name == LOWER), None)
    ours: dict[str, Column] = {}
    on: dict[str, list[str]] = {}
    for dataset in results.datasets:
        full = results.part(score, dataset)
        values = results.values(full, epoch)
        values = values[values["dataset"] == dataset]
        if not values.empty:
            on.setdefault(full.partition("/")[0], []).append(dataset)
            ours[dataset] = {
                label: _cell(values.loc[values["approach"] == label, "value"]) for label in names
            }
            mark(ours[dataset], compared, baseline)
    rows = [label for label in names if any(column[label] for column in ours.values())]
    figures = paper_figures(score, epoch) if paper else {}
    columns: dict[str, Column] = {}
    for dataset, column in ours.items():
        if paper:
            pairs = {label: figures.get((label, dataset)) for label in rows}
            columns[f"{dataset} paper"] = {label: pair and Cell(*pair) for label, pair in pairs.items()}
        columns[dataset] = column
    notes = [
        _where(score, on),
        _what(any(names[label] == UPPER for label in rows)),
        *_gaps(results),
        _made_by(results),
    ]
    return Sheet(
        title=f"{study.name}: {score} [%] after the {epoch} epoch",
        heads=["approach", *columns],
        rows=[(label, [_shown(column[label]) for column in columns.values()]) for label in rows],
        records=_records(ours, score, epoch, figures if paper else None),
        notes=[note for note in notes if note],
    )


def _records(ours: dict[str, Column], score: str, epoch: str, paper: PaperScores | None) -> pd.DataFrame:
    """One row per cell, in the form that `annotmix bench stats FILE` reads."""
    name = score.replace("-", "_").replace("/", "_")
    rows: list[dict[str, object]] = []
    for dataset, column in ours.items():
        for label, cell in column.items():
            if cell is not None:
                row: dict[str, object] = {"epoch": epoch, "approach": label, "dataset": dataset}
                row |= {f"{name}_mean": cell.mean, f"{name}_std": cell.std, "seeds": cell.n}
                if paper is not None:
                    row["paper_mean"], row["paper_std"] = paper.get((label, dataset), (None, None))
                rows.append(row)
    return pd.DataFrame(rows).round(4)


def _shown(cell: Cell | None) -> Shown:
    if cell is None:
        return Shown(NONE)
    std = "" if cell.std is None else f" ± {cell.std:.{DECIMALS}f}"
    return Shown(f"{cell.mean:.{DECIMALS}f}{std}", cell.best, cell.second, cell.worse)


def _cell(values: pd.Series) -> Cell | None:
    if values.empty:
        return None
    std = float(100 * values.std(ddof=1)) if len(values) > 1 else None
    return Cell(float(100 * values.mean()), std, len(values))


def mark(cells: Column, compared: Sequence[str], baseline: str | None) -> None:
    """Mark the best and second best compared approaches, and approaches worse than the baseline.

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


def _where(score: str, on: dict[str, list[str]]) -> str:
    """Says where the score is measured, where that is not the same everywhere or not the test set."""
    if score == "clf-acc" or "/" in score:
        return ""
    places = {"test": "test", "train": "training"}
    return "; ".join(f"{', '.join(names)}: on the {places[part]} set" for part, names in on.items()) + "."


def _what(has_upper: bool) -> str:
    return "Mean ± standard deviation over the seeds" + (f"; {UPPER} is not compared." if has_upper else ".")


def _gaps(results: Results) -> list[str]:
    """Which datasets have no runs, and which seeds are missing of others."""
    study, notes = results.study, []
    present = results.datasets
    if absent := [entry.label for entry in study.datasets if entry.label not in present]:
        notes.append(f"Without runs in the store, so not shown: {', '.join(absent)}.")
    done = results.runs.groupby(["dataset", "approach"]).size().to_dict()
    gaps = []
    for dataset in present:
        expected = [entry.label for entry in study.approaches if entry.takes(dataset)]
        seeds = {label: done.get((dataset, label), 0) for label in expected}
        least, most = min(seeds.values()), max(seeds.values())
        if most < len(study.seeds):
            count_text = f"{least} to {most}" if least < most else f"{most}"
            gaps.append(f"{dataset} {count_text} of {len(study.seeds)}")
        else:
            missing = [f"{label} {n}" for label, n in seeds.items() if n < len(study.seeds)]
            if missing:
                gaps.append(f"{dataset} ({', '.join(missing)} of {len(study.seeds)})")
    if gaps:
        notes.append(f"Seeds that are done: {'; '.join(gaps)}; all of the others.")
    else:
        notes.append(f"{count(len(study.seeds), 'seed')}.")
    return notes


def _made_by(results: Results) -> str:
    made = [f"{name} ({count(n, 'run')})" for name, n in results.code().items()]
    return f"Made by annotmix {', '.join(made)}."
