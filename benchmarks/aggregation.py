"""Majority vote and Dawid–Skene beside crowd-kit's, on real crowds and on a million labels.

    python benchmarks/aggregation.py --data FOLDER

Prints one Markdown table. Both sides start from the same table of labels (`task`, `worker`, `label`), so that
our seconds hold the making of `Annotations`; they are the best of several repeats, taken in turns. Accuracy
counts the items with a truth; ours for the majority vote is the mean of 20 ways to break the ties, where
crowd-kit takes the first class. In zencrowd_us some workers labelled an item more than once: both sides get
the last label (`duplicates="last"`). The peak is what ours allocates besides the table, by tracemalloc.
"""

from __future__ import annotations

import argparse
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import crowdkit.aggregation as crowdkit
import numpy as np
import pandas as pd

from annotmix import Annotations
from annotmix.datasets.fetch import data_folders
from annotmix.labels.aggregation import aggregate

SETS = ("bluebird", "dog", "web", "zencrowd_us")
METHODS = {"mv": ("majority vote", crowdkit.MajorityVote), "ds": ("Dawid–Skene", crowdkit.DawidSkene)}
HEADER = (
    "set",
    "labels",
    "method",
    "accuracy",
    "crowd-kit's",
    "seconds",
    "crowd-kit's",
    "times faster",
    "peak MB",
)


def read(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    annotations = Annotations.from_long(pd.read_csv(folder / "label.csv"), duplicates="last")
    table = annotations.to_long().rename(columns={"item": "task", "annotator": "worker"})
    return table, pd.read_csv(folder / "truth.csv").set_index("item")["truth"]


def synthetic(
    n_labels: int, n_items: int, n_annotators: int, n_classes: int
) -> tuple[pd.DataFrame, pd.Series]:
    """Annotators who are right with a chance of their own, 0.2 to 0.9, and else say any class."""
    rng = np.random.default_rng(0)
    truth = rng.integers(n_classes, size=n_items)
    chance = rng.uniform(0.2, 0.9, size=n_annotators)
    pairs = rng.choice(n_items * n_annotators, size=n_labels, replace=False, shuffle=False)
    item, annotator = np.divmod(pairs, n_annotators)
    right = rng.random(n_labels) < chance[annotator]
    label = np.where(right, truth[item], rng.integers(n_classes, size=n_labels))
    table = pd.DataFrame({"task": item, "worker": annotator, "label": label})
    return table, pd.Series(truth).loc[np.unique(item)]


def ours(table: pd.DataFrame, method: str, seed: int = 0) -> pd.Series:
    return aggregate(Annotations.from_long(table), method, random_state=seed)


def seconds(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Best time of every call, the calls taking turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - started)
    return best


def peak_megabytes(call: Callable[[], Any]) -> float:
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def accuracy(labels: pd.Series, truth: pd.Series) -> float:
    return float((labels.reindex(truth.index) == truth).mean())


def rows(
    name: str, table: pd.DataFrame, truth: pd.Series, repeats: int, compare: bool
) -> Iterator[list[str]]:
    for method, (title, theirs) in METHODS.items():
        calls = {"ours": lambda method=method: ours(table, method)}
        if compare:
            calls["theirs"] = lambda theirs=theirs: theirs().fit_predict(table)
        best = seconds(calls, repeats)
        seeds = range(20 if method == "mv" else 1)
        right = np.mean([accuracy(ours(table, method, seed), truth) for seed in seeds])
        yield [
            name,
            str(len(table)),
            title,
            f"{right:.4f}",
            f"{accuracy(calls['theirs'](), truth):.4f}" if compare else "–",
            f"{best['ours']:.4f}",
            f"{best['theirs']:.4f}" if compare else "–",
            f"{best['theirs'] / best['ours']:.1f}" if compare else "–",
            f"{peak_megabytes(calls['ours']):.1f}",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder that holds aggregation/; by default ANNOTMIX_DATA")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    folder = data_folders(args.data)[0] / "aggregation"
    print("| " + " | ".join(HEADER) + " |")
    print("|" + "---|" * len(HEADER))
    for name in SETS:
        for row in rows(name, *read(folder / name), args.repeats, compare=True):
            print("| " + " | ".join(row) + " |", flush=True)
    million = synthetic(10**6, n_items=10**5, n_annotators=10**4, n_classes=10)
    for row in rows("synthetic", *million, args.repeats, compare=True):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
