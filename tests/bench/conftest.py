"""A store with made-up results, and a Dask cluster inside the test's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest

from annotmix.bench import driver
from annotmix.bench.store import Store, driving
from annotmix.bench.study import Run, Study

ENVIRONMENT = {"version": "0.1.0", "commit": "a" * 40, "dirty": False, "python": "3", "torch": "2", "cpus": 2}


@pytest.fixture
def one_worker(monkeypatch) -> None:
    """Runs go to a thread of this process, through Dask."""

    @contextmanager
    def connect(*_: Any) -> Iterator[Any]:
        with (
            distributed.LocalCluster(
                n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client

    monkeypatch.setattr(driver, "connect", connect)


@pytest.fixture
def fill() -> Callable[..., None]:
    """Write made-up results of a study into a store: `mean(run)` plus noise of the seed, in shares."""

    def fill(path: Path, study: Study, mean: Callable[[Run], float], **environment: Any) -> None:
        with driving(path), Store(path, write=True) as store:
            store.note_plan(study.name, study.runs())
            for dataset in study.datasets:
                store.note_dataset(dataset.source, {"percent_false": 10.0 * len(dataset.label)})
            for run in study.runs():
                value = mean(run) + 0.01 * np.random.default_rng(run.seed).normal()
                found = {
                    "test/clf-acc": value,
                    "train/annot-acc": value / 2,
                    "train/perf-auroc": float("nan"),
                }
                epochs = [
                    {"epoch": e, "loss": 1.0, **{k: v * e / 4 for k, v in found.items()}} for e in (1, 2, 3)
                ]
                result = {
                    "scores": {"last": found, "best": {k: v + 0.02 for k, v in found.items()}},
                    "history": epochs,
                    "best_epoch": 2,
                    "environment": ENVIRONMENT | environment,
                }
                store.finish(store.begin(run, study.history), result)

    return fill
