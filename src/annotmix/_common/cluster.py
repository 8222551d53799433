"""Processes that share work, by Dask: local ones, or those of a scheduler elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from annotmix._common.optional import require

#: How often a task may lose its worker before it counts as failed.
LOST_WORKERS = 3
#: How often local workers are started, where one of them ends before all are there.
STARTS = 3


@contextmanager
def connect(scheduler: str | None, workers: int, tasks: int) -> Iterator[Any]:
    """A Dask client: of the scheduler at an address, or of local processes with one thread each."""
    distributed, dask = (
        require(module, "bench", "Work in several processes") for module in ("distributed", "dask")
    )
    if scheduler is not None:
        with distributed.Client(scheduler) as client:
            yield client
        return
    settings = {
        "distributed.scheduler.allowed-failures": LOST_WORKERS,
        "distributed.worker.profile.enabled": False,
        "distributed.logging": {"distributed": "critical", "distributed.nanny": "critical"},
    }
    with (
        dask.config.set(settings),
        _local_cluster(distributed, min(workers, tasks)) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _local_cluster(distributed: Any, workers: int) -> Any:
    """Workers on this machine, one thread each; started again where one ends before all are there."""
    for start in range(STARTS):
        try:
            return distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=0,
                silence_logs=50,
            )
        except (RuntimeError, OSError) as error:  # "Nanny failed to start"
            reason = " ".join(str(error.__cause__ or error).split()) or type(error).__name__
            if start + 1 < STARTS:
                print(
                    f"A worker ended while it was started ({reason}); the workers are started again.",
                    file=sys.stderr,
                    flush=True,
                )
    raise ConnectionError(
        f"The {workers} workers could not be started in {STARTS} attempts ({reason}): is memory short, or "
        "does something end them? Start again to resume, with fewer --workers if memory is short."
    )
