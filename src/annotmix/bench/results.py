"""The results of a study in the store: the newest finished run of every configuration."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from annotmix.bench.store import Store
from annotmix.bench.study import Study

EPOCHS = ("last", "best")


@dataclass(frozen=True)
class Results:
    """The runs of a study that are done, and their scores.

    Attributes
    ----------
    study : Study
    runs : DataFrame
        One row per finished run: `dataset` and `approach` as tables call them, `seed`, and the columns of the
        store, indexed by the run's number.
    scores : DataFrame
        `run`, `dataset`, `approach`, `seed`, `epoch`, `score`, `value`.
    facts : dict
        By a dataset's name in tables, see `annotmix.bench.study_data.facts`.
    """

    study: Study
    runs: pd.DataFrame
    scores: pd.DataFrame
    facts: dict[str, dict[str, Any]]

    @property
    def datasets(self) -> list[str]:
        """The datasets with at least one run, in the order of the study."""
        present = set(self.runs["dataset"])
        return [entry.label for entry in self.study.datasets if entry.label in present]

    def values(self, score: str, epoch: str) -> pd.DataFrame:
        """`dataset`, `approach`, `seed`, `value` of a score, such as "test/clf-acc"."""
        wanted = (self.scores["score"] == score) & (self.scores["epoch"] == epoch)
        return self.scores.loc[wanted, ["dataset", "approach", "seed", "value"]].dropna()

    def part(self, score: str, dataset: str) -> str:
        """The full name of a score on a dataset.

        The classifier is judged on the test set, a consensus on the training set, annotators on the test set
        where they labelled it, else on the training set.
        """
        if "/" in score:
            return score
        on = {"clf-acc": "test", "consensus-acc": "train"}.get(score)
        if on is None:
            there = (self.scores["dataset"] == dataset) & (self.scores["score"] == f"test/{score}")
            on = "test" if there.any() else "train"
        return f"{on}/{score}"

    def code(self) -> dict[str, int]:
        """How many runs each version of the code has made."""
        return {str(k): int(n) for k, n in code_names(self.runs).value_counts(sort=False).items()}


def collect(study: Study, store: Store, which: Callable[[pd.DataFrame], pd.Series] | None = None) -> Results:
    """The newest finished run of every configuration of a study; `which` picks among the store's runs."""
    table = store.runs()
    table = table[table["status"] == "done"]
    if which is not None:
        table = table[which(table)]
    newest = table.drop_duplicates("key", keep="last").set_index("key")
    rows = [
        {**newest.loc[run.key].to_dict(), "dataset": run.dataset.label, "approach": run.approach.label}
        for run in study.runs()
        if run.key in newest.index
    ]
    runs = pd.DataFrame(rows, columns=[c for c in table.columns if c != "key"]).set_index("id")
    names = runs[["dataset", "approach", "seed"]]
    scores = store.scores(runs.index).merge(names, left_on="run", right_index=True)
    known = store.datasets()
    sources = {entry.label: json.dumps(entry.source, sort_keys=True) for entry in study.datasets}
    facts = {label: known[source] for label, source in sources.items() if source in known}
    return Results(study, runs, scores, facts)


def code_names(runs: pd.DataFrame) -> pd.Series:
    """The version of the code of every run, such as "0.1.0 d323da0 changed"."""
    commit = runs["commit"].fillna("").str[:7]
    changed = runs["dirty"].fillna(0).astype(bool).map({True: " changed", False: ""})
    return (runs["version"].fillna("?") + " " + commit + changed).str.strip()
