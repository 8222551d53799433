"""The tests of `stats` on a study's results or on anybody's CSV, and their result as a sheet."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence

import pandas as pd

from annotmix._common.spreadsheet import unguard_table
from annotmix.bench.results import Results
from annotmix.bench.sheets import NONE, Sheet, Shown
from annotmix.bench.stats import LEVEL, Comparison, compare, pivot

#: Epoch, name of the score, rows `approach`, `dataset`, `value`.
Scores = tuple[str, str, pd.DataFrame]
#: Up to this many datasets or approaches the χ² approximation is rough (Demšar 2006).
_ROUGH_DATASETS, _ROUGH_APPROACHES = 10, 5


def from_results(results: Results, score: str, epochs: Sequence[str]) -> Iterator[Scores]:
    """Mean scores over the seeds, epoch by epoch."""
    for epoch in epochs:
        parts = []
        for dataset in results.datasets:
            values = results.values(results.part(score, dataset), epoch)
            parts.append(values[values["dataset"] == dataset])
        if not parts or not sum(map(len, parts)):
            raise ValueError(f"The store has no {score} of the study {results.study.name!r}.")
        rows = pd.concat(parts)
        yield epoch, score, rows.groupby(["approach", "dataset"], sort=False)["value"].mean().reset_index()


def from_csv(path: str | os.PathLike[str], score: str | None) -> Iterator[Scores]:
    """The rows of a CSV by the values of its column `epoch`, or all of them under "".

    Parameters
    ----------
    path : path
        With the columns `approach`, `dataset`, a score, and perhaps `epoch`.
    score : str, optional
        The column of the score; by default the first one with numbers, as a rule the only one.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{os.fspath(path)}: not a CSV: {' '.join(str(error).split())}") from None
    table, _ = unguard_table(table)
    table.columns = table.columns.str.strip()
    for name in ("approach", "dataset"):
        if name not in table.columns:
            raise ValueError(f"{os.fspath(path)}: no column {name!r}; found {', '.join(table.columns)}.")
    column = _score_column(table, score, os.fspath(path))
    numbers = pd.to_numeric(table[column].str.strip(), errors="coerce")
    wrong = numbers.isna() & (table[column].str.strip() != "")
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        raise ValueError(
            f"{os.fspath(path)}, line {row + 2}: {column} is {table[column].iloc[row]!r}, no number."
        )
    rows = table.assign(value=numbers)[["approach", "dataset", "value"]]
    if "epoch" not in table.columns:
        yield "", column, rows
        return
    for epoch in dict.fromkeys(table["epoch"]):
        yield epoch, column, rows[table["epoch"] == epoch]


def _score_column(table: pd.DataFrame, score: str | None, path: str) -> str:
    others = [str(name) for name in table.columns if name not in ("approach", "dataset", "epoch")]
    wanted = [] if score is None else [score, score.replace("-", "_"), f"{score.replace('-', '_')}_mean"]
    for name in wanted:
        if name in others:
            return name
    if score is not None or not others:
        raise ValueError(f"{path}: no column {score or 'with a score'!r}; found {', '.join(table.columns)}.")
    numeric = [n for n in others if pd.to_numeric(table[n].str.strip(), errors="coerce").notna().any()]
    return (numeric or others)[0]


def rank_sheet(scores: Scores, against: str, exclude: Sequence[str]) -> tuple[Sheet, Comparison]:
    """Ranks, Friedman test and comparisons of one epoch, with notes."""
    epoch, score, rows = scores
    comparison = compare(pivot(rows, exclude), against)
    table = comparison.table
    cells = [
        (
            str(name),
            [
                Shown(f"{row['rank']:.2f}"),
                Shown(NONE if name == against else f"{row['z']:.3f}"),
                Shown(_p_value(row["p"])),
                Shown(_p_value(row["p_holm"])),
                Shown(NONE if name == against else _verdict(row)),
            ],
        )
        for name, row in table.iterrows()
    ]
    k, n = len(table), len(comparison.datasets)
    after = f" after the {epoch} epoch" if epoch in ("last", "best") else f", {epoch}" if epoch else ""
    records = table.reset_index().assign(epoch=epoch, friedman_chi2=comparison.chi2, friedman_p=comparison.p)
    notes = [
        f"Friedman: χ² = {comparison.chi2:.3f} with {k - 1} degrees of freedom, p = {comparison.p:.2e}.",
        f"z = (R − R of {against}) / √(k(k+1)/(6n)), k = {k} approaches, n = {n} datasets "
        f"({', '.join(comparison.datasets)}); p two-sided, then Holm's step-down. "
        f"★: {against} is better, significant at {LEVEL}; better: the other one is.",
    ]
    if comparison.p >= LEVEL:
        notes.append("The Friedman test does not say that approaches differ: do not read the comparisons.")
    if n <= _ROUGH_DATASETS or k <= _ROUGH_APPROACHES:
        notes.append(
            f"With at most {_ROUGH_DATASETS} datasets or {_ROUGH_APPROACHES} approaches the test's "
            "approximation is rough."
        )
    if comparison.left_out:
        notes.append(f"Left out, as a score is missing: {', '.join(comparison.left_out)}.")
    title = f"Ranks by {score}{after} (1 is best), compared with {against}"
    heads = ["approach", "mean rank", "z", "p", "p Holm", "significant"]
    return Sheet(title, heads, cells, records, notes), comparison


def _verdict(row: pd.Series) -> str:
    if not row["significant"]:
        return "no"
    return "★" if row["z"] > 0 else "better"


def _p_value(value: float) -> str:
    if math.isnan(value):
        return NONE
    return f"{value:.4f}" if value >= 1e-3 else f"{value:.1e}"
