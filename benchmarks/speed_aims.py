"""The table of aims of docs/performance.md: each case is a function that returns its rows.

    python benchmarks/speed_aims.py start_up FOLDER

A row is (what, before, aim, measured, seconds). "Before" is the figure that the aim was set against, measured
earlier on another machine; `speed.py --before` puts the figure of an earlier commit in its place. Seconds are
CPU seconds of one thread, the least of several repeats, unless a row says "clock"; None: a row has several.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

Row = tuple[str, str, str, str, float | None]
CLI = "from annotmix.cli import main; main()"


def cpu(work: Callable[[], Any]) -> float:
    """CPU seconds of this process during a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


def cpu_of(code: str, *arguments: object) -> float:
    """CPU seconds of Python code in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def plus(folder: str | None) -> list[Row]:
    """Epochs of annot-mix-plus, the default approach, beside their matrix products."""
    from speed_cases import plus as measure

    earlier = {"letter": "5.4", "mgc": "5.0", "labelme": "4.4"}
    return [
        (f"annot-mix-plus, an epoch on {name}, as a multiple of its matrix products", earlier[name], "3.0",
         f"{f['seconds']:.3f} s: {f['seconds'] / f['products']:.2f}", f["seconds"])
        for name, f in measure(folder).items()
    ]  # fmt: skip


def letter(folder: str | None) -> list[Row]:
    """Epochs of annot-mix beside their matrix products."""
    from speed_cases import letter as measure

    f = measure(folder)
    return [
        ("annot-mix, an epoch on letter, as a multiple of its matrix products", "2.3", "2.0",
         f"{f['seconds']:.3f} s: {f['seconds'] / f['products']:.2f}", f["seconds"])
    ]  # fmt: skip


def skactiveml(folder: str | None) -> list[Row]:
    """The same beside scikit-activeml."""
    from speed_cases import skactiveml as measure

    if not (f := measure(folder)):
        return []
    same, small = ((size, seconds / f["seconds"]) for size, seconds in f["theirs"].items())
    return [
        (f"the same networks in scikit-activeml 1.0.1, {size} labels per batch", before, aim,
         f"annot-mix is {times:.2f} times as fast", None)
        for (size, times), before, aim in ((same, "1.8 times", "2 times"), (small, "", ""))
    ]  # fmt: skip


def start_up(folder: str | None) -> list[Row]:
    """`annotmix` on mgc from CSV files: fit, the commands about a finished run, and aggregate."""
    labels = pd.read_csv(Path(folder or "") / "mgc" / "music_genre_mturk.csv")
    gold = pd.read_csv(Path(folder or "") / "mgc" / "music_genre_gold.csv")
    with tempfile.TemporaryDirectory() as temporary:
        at = Path(temporary)
        labels[["id", "annotator", "class"]].to_csv(at / "labels.csv", index=False)
        items = labels.drop_duplicates("id").drop(columns=["annotator", "class"])
        items.to_csv(at / "items.csv", index=False)
        gold[["id", "class"]].to_csv(at / "truth.csv", index=False)
        about = ("--features", at / "items.csv", "--overwrite", "--quiet", "--out")
        network = cpu_of(CLI, "fit", at / "labels.csv", *about, at / "run")
        logistic = cpu_of(CLI, "fit", at / "labels.csv", *about, at / "other", "--model", "logistic")
        imports = cpu_of("import annotmix.cli, annotmix.runs.fit, annotmix.estimators.classifier_factory")
        libraries = cpu_of("import torch, sklearn.base, pandas")
        commands = {
            "evaluate": ("evaluate", at / "run", "--truth", at / "truth.csv", "--quiet"),
            "suggest": ("suggest", at / "run", "--out", at / "suggestions.csv", "--quiet"),
            "report": ("report", at / "run", "--quiet"),
            "aggregate": ("aggregate", at / "labels.csv", "--out", at / "consensus.csv", "--quiet"),
            "predict": ("predict", at / "run", at / "items.csv", "--out", at / "p.csv", "--quiet"),
        }
        seconds = {name: cpu_of(CLI, *command) for name, command in commands.items()}
    predict = seconds.pop("predict")
    shown = ", ".join(f"{name} {s:.2f} s" for name, s in seconds.items())
    return [
        ("`annotmix fit` on mgc, from CSV to report", "7.2 s", "4.5 s", f"{network:.1f} s", network),
        ("the same with `--model logistic`", "", "", f"{logistic:.1f} s", logistic),
        ("importing for `fit` (torch, scikit-learn and pandas alone)", "3.5 s", "1.5 s",
         f"{imports:.1f} s ({libraries:.1f} s)", imports),
        ("commands where no network runs", "4 s each", "1.5 s", shown, None),
        ("`predict`, which reads the network", "4 s", "", f"{predict:.1f} s", predict),
    ]  # fmt: skip


def many_classes(folder: str | None) -> list[Row]:
    """20,000 labels of 4000 items by 200 annotators, 1000 classes: labels alone, the epochs, the answers."""
    import torch

    import annotmix
    from annotmix.labels.evidence import Evidence

    torch.set_num_threads(1)
    rng, C, M, n = np.random.default_rng(0), 1000, 200, 4000
    y = rng.integers(C, size=n)
    X = (rng.normal(scale=0.7, size=(C, 50))[y] + rng.normal(size=(n, 50))).astype(np.float32)
    item, chance = np.repeat(np.arange(n), 5), rng.uniform(0.3, 0.95, size=M)
    who = ((rng.integers(M, size=n)[:, None] + np.arange(5)) % M).ravel()
    label = np.where(rng.random(5 * n) < chance[who], y[item], rng.integers(C, size=5 * n))
    labels = annotmix.Annotations(item, who, label, np.arange(n), np.arange(M), np.arange(C))
    before = cpu(lambda: Evidence(labels))
    clock, time.perf_counter = time.perf_counter, time.process_time  # what `history_` counts by
    clf = annotmix.make_classifier("annot-mix-plus", max_epochs=3, random_state=0, progress=False)
    clf.fit(X, labels)
    time.perf_counter = clock
    epoch = float(clf.history_["seconds"].median())
    clf.consensus()
    part = labels[np.arange(800)]
    each = [1000 * cpu(lambda f=f: f(X[:800], part)) / len(part) for f in (clf.consensus, clf.label_quality)]
    return [
        ("`consensus` / `label_quality` at 1000 classes, per label", "28 ms", "0.1 ms",
         " / ".join(f"{ms:.3f} ms" for ms in each), None),
        ("annot-mix-plus, 20,000 labels, 1000 classes: before the first epoch", "16 s, five epochs",
         "one epoch", f"{before:.1f} s, {before / epoch:.1f} epochs of {epoch:.1f} s", before),
    ]  # fmt: skip


def dawid_skene(folder: str | None) -> list[Row]:
    """A round of EM on 10⁶ labels beside its sparse products, and all of it on 10⁷ labels."""
    from aggregation import synthetic

    from annotmix.labels.annotations import Annotations
    from annotmix.labels.dawid_skene import dawid_skene
    from annotmix.labels.expectation import Cells, ItemLabels

    table, _ = synthetic(10**6, n_items=10**5, n_annotators=10**4, n_classes=10)
    a, C, rounds, products = Annotations.from_long(table), 10, [], []
    cell, place = np.unique(a.annotator * C + a.label, return_inverse=True)
    cells, labels = Cells(cell, a.n_annotators, C), ItemLabels(a.start, place, len(cell), np.float32)
    q, log_prior = labels.vote_shares(cells), np.log(np.full(C, 0.1, dtype=np.float32))
    log_theta = cells.log_confusion(labels.count(q), 1e-10)
    for _ in range(7):
        rounds.append(cpu(lambda: labels.e_step(log_prior, cells.log_confusion(labels.count(q), 1e-10))))
        products.append(cpu(lambda: (labels.said.T @ q, labels.said @ log_theta)))
    table, _ = synthetic(10**7, n_items=10**6, n_annotators=10**5, n_classes=10)
    seconds = cpu(lambda: dawid_skene(Annotations.from_long(table)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [
        ("Dawid–Skene, 10⁶ labels: one round of EM (its sparse products)", "57 ms", "20 ms",
         f"{1000 * min(rounds):.0f} ms ({1000 * min(products):.0f} ms)", min(rounds)),
        ("Dawid–Skene, 10⁷ labels, from a table", "none in 60 s", "20 s, 2 GB",
         f"{seconds:.0f} s, {peak:.1f} GB", seconds),
    ]  # fmt: skip


def majority_vote(folder: str | None) -> list[Row]:
    """The vote on `web` and on 10⁶ labels, beside crowd-kit; the clock, in turns."""
    from aggregation import ours, read, seconds, synthetic
    from crowdkit.aggregation import MajorityVote

    sets = {"10⁶ labels": (synthetic(10**6, 10**5, 10**4, 10)[0], "0.57 s", "0.48 s")}
    if folder is not None:
        sets = {"`web`": (read(Path(folder) / "aggregation" / "web")[0], "0.106 s", "0.018 s")} | sets
    rows: list[Row] = []
    for name, (table, before, aim) in sets.items():
        calls = {
            "ours": lambda t=table: ours(t, "mv"),
            "theirs": lambda t=table: MajorityVote().fit_predict(t),
        }
        best = seconds(calls, 5)
        told = f"{best['ours']:.3f} s; crowd-kit {best['theirs']:.3f} s"
        rows.append((f"majority vote, {name}, clock", before, f"crowd-kit ({aim})", told, best["ours"]))
    return rows


def parts(folder: str | None) -> list[Row]:
    """`annotmix aggregate --workers 2` on 5·10⁷ labels in Parquet files."""
    from aggregate_large import measure

    f = measure(50_000_000, workers=2, rounds=100)
    told = (
        f"{f['worker']:.1f} GB per worker, {f['command']:.1f} GB the command; {f['cpu']:.0f} s of CPU, "
        f"{f['rounds']} rounds"
    )
    return [("5·10⁷ labels in Parquet files, two workers", "", "2 GB per worker", told, None)]


def two_processes(folder: str | None) -> list[Row]:
    """One process and two: CPU seconds per step and process, and the clock."""
    from processes import measure

    titles = {"resnet18": "ResNet-18, batches of 64", "mlp": "layers of 2048 and 2048, batches of 512"}
    rows: list[Row] = []
    for name, f in measure().items():
        told = (
            f"CPU per step and process {f['cpu 2']:.2f} s against {f['cpu 1']:.2f} s: "
            f"{f['cpu 2'] / f['cpu 1']:.2f} times; clock {f['clock 1'] / f['clock 2']:.2f} times as fast, "
            f"load average {os.getloadavg()[0]:.0f}"
        )
        before, aim = ("never faster", "1.6 on quiet cores") if name == "resnet18" else ("", "")
        rows.append((f"two processes, {titles[name]}", before, aim, told, None))
    return rows


if __name__ == "__main__":
    given = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("ANNOTMIX_DATA")
    print(json.dumps(globals()[sys.argv[1]](given)))
