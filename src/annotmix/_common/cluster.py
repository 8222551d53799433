"""Processes that share work, by Dask: local ones, or those of a scheduler elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def connect(scheduler: str | None, workers: int, tasks: int) -> Iterator[Any]:
    """TEMPORARY until merged with bench."""
    import dask
    import distributed

    if scheduler is not None:
        with distributed.Client(scheduler) as client:
            yield client
        return
    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),
        distributed.LocalCluster(
            n_workers=min(workers, tasks),
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
