"""The progress of a study: finished, running and failed runs, and the time left."""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd

from annotmix._common.words import count
from annotmix.bench.sheets import NONE, Sheet, Shown
from annotmix.bench.store import Store, has_driver

STATES = ("done", "running", "failed", "waiting", "skipped")


def status(path: Path, study: str | None = None) -> Sheet:
    """One row per dataset of the study that was started last, or of the named one; notes say the rest."""
    with Store(path) as store:
        plan, table = store.plan(study), store.runs()
    if plan is None:
        raise ValueError(f"{str(path)!r} knows of no study{f' {study!r}' if study else ''} that was started.")
    alive = has_driver(path)
    runs = pd.DataFrame(plan.runs, columns=["dataset", "approach", "seed", "key"])
    runs = runs.merge(_newest(table, alive), on="key", how="left")
    runs["status"] = runs["status"].fillna("waiting")
    absent = runs["dataset"].isin(plan.skipped) & (runs["status"] == "waiting")
    runs.loc[absent, "status"] = "skipped"
    counts = pd.crosstab(runs["dataset"], runs["status"]).reindex(columns=list(STATES), fill_value=0)
    counts = counts.reindex(dict.fromkeys(runs["dataset"]))
    counts.loc["all"] = counts.sum()
    seconds = runs[runs["status"] == "done"].groupby("dataset")["seconds"].mean()
    rows = []
    for dataset, row in counts.iterrows():
        mean = f"{seconds[dataset]:.1f}" if dataset in seconds.index else NONE
        rows.append((str(dataset), [*(Shown(str(row[state])) for state in STATES), Shown(mean)]))
    heads = ["dataset", *STATES, "seconds per run"]
    notes = [_driver(runs, alive), *_running(runs), *_failed(runs)]
    return Sheet(f"{plan.study}: {count(len(runs), 'run')}", heads, rows, counts.reset_index(), notes)


def tracebacks(path: Path, study: str | None = None) -> str:
    """The whole tracebacks of a study's failed runs."""
    with Store(path) as store:
        plan, table = store.plan(study), store.runs()
    names = {key: f"{d}, {a}, seed {s}" for d, a, s, key in plan.runs} if plan else {}
    failed = _newest(table, True)
    failed = failed[(failed["status"] == "failed") & failed["key"].isin(list(names))]
    parts = (f"{names[key]}\n{error}" for key, error in zip(failed["key"], failed["error"], strict=True))
    return "\n".join(parts)


def _newest(table: pd.DataFrame, alive: bool) -> pd.DataFrame:
    """One row per key: running now, else done, else failed; runs of a killed driver are left out."""
    table = table[alive | (table["status"] != "running")]
    order = table["status"].map({"failed": 0, "done": 1, "running": 2})
    newest = table.assign(order=order).sort_values(["order", "id"]).drop_duplicates("key", keep="last")
    newest = newest.assign(seconds=newest["finished"] - newest["started"])
    return newest[["key", "status", "started", "seconds", "error"]]


def _driver(runs: pd.DataFrame, alive: bool) -> str:
    left = runs["status"].isin(["waiting", "running"])
    if not left.any():
        return "Nothing is left to do."
    expected = time_left(runs, time.time())
    text = (
        "its time is not known before a run is done" if expected is None else f"about {_duration(expected)}"
    )
    busy = int((runs["status"] == "running").sum())
    if alive:
        return f"Time left: {text}, with {busy} at a time."
    return f"No driver is running; `annotmix bench run` resumes. Work left: {text} for one worker."


def time_left(runs: pd.DataFrame, now: float) -> float | None:
    """Seconds until all is done; None before anything is known.

    A run takes the mean time of runs of its dataset and approach, else of its dataset, else of all.
    """
    done = runs[runs["status"] == "done"]
    left = runs[runs["status"].isin(["waiting", "running"])]
    if done.empty:
        return None
    by_pair = done.groupby(["dataset", "approach"])["seconds"].mean().to_dict()
    by_dataset = done.groupby("dataset")["seconds"].mean().to_dict()
    total = 0.0
    for row in left.itertuples():
        known = by_pair.get((row.dataset, row.approach), by_dataset.get(row.dataset))
        expected = done["seconds"].mean() if known is None else known
        total += max(0.0, expected - (now - row.started)) if row.status == "running" else expected
    return float(total / max(1, (left["status"] == "running").sum()))


def _running(runs: pd.DataFrame) -> list[str]:
    now = time.time()
    running = runs[runs["status"] == "running"]
    return [f"running: {_name(row)} for {_duration(now - row.started)}" for row in running.itertuples()]


def _failed(runs: pd.DataFrame) -> list[str]:
    failed = runs[runs["status"] == "failed"]
    return [f"failed: {_name(row)}: {row.error.strip().splitlines()[-1]}" for row in failed.itertuples()]


def _name(row: object) -> str:
    return f"{row.dataset}, {row.approach}, seed {row.seed}"  # type: ignore[attr-defined]


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    )
