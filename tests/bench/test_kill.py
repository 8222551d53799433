"""A driver and a worker are killed in the middle of a study; nothing is lost, damaged or done twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from annotmix._common import cluster

STUDY = """
seeds: 6
datasets:
  - {name: digits, settings: {max_epochs: 8}}
approaches: [mv-base, annot-mix]
"""
RUNS = 12
PATIENCE = 300.0


def _rows(store: Path, query: str) -> list[tuple]:
    if not store.exists():
        return []
    with sqlite3.connect(store, timeout=30) as db:
        try:
            return db.execute(query).fetchall()
        except sqlite3.OperationalError:  # the tables are not there yet
            return []


def _done(store: Path) -> dict[int, str]:
    return dict(_rows(store, "SELECT id, key FROM run WHERE status = 'done'"))


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {PATIENCE:.0f} s in vain for {what}")
        time.sleep(0.02)


def _start(folder: Path) -> subprocess.Popen:
    command = [sys.executable, "-c", "from annotmix.cli import main; main()", "bench", "run", "study.yaml"]
    with open(folder / "log.txt", "a") as log:
        return subprocess.Popen(
            [*command, "--store", "store.sqlite", "--workers", "2"], cwd=folder, stdout=log, stderr=log
        )


def _workers(driver: int) -> list[psutil.Process]:
    return [p for p in psutil.Process(driver).children() if "spawn_main" in " ".join(p.cmdline())]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_killed_worker_and_killed_driver(tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY)
    store = tmp_path / "store.sqlite"
    driver = _start(tmp_path)
    _until(lambda: len(_done(store)) >= 2, "the first runs")

    os.kill(_workers(driver.pid)[0].pid, signal.SIGKILL)
    before = len(_done(store))
    _until(lambda: len(_done(store)) >= before + 2, "runs after a worker was killed")

    workers = psutil.Process(driver.pid).children(recursive=True)
    driver.kill()
    driver.wait()
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert not alive, "workers outlive their driver"
    kept = _done(store)
    assert len(kept) < RUNS, "the driver was done before it was killed; make the study longer"
    assert _rows(store, "PRAGMA integrity_check") == [("ok",)]

    assert _start(tmp_path).wait(PATIENCE) == 0, (tmp_path / "log.txt").read_text()
    runs = _rows(store, "SELECT id, key, status FROM run")
    assert {status for *_, status in runs} == {"done"}
    assert len(runs) == len({key for _, key, _ in runs}) == RUNS
    assert kept.items() <= {number: key for number, key, _ in runs}.items()
    incomplete = """SELECT run.id FROM run LEFT JOIN score ON score.run = run.id
                    GROUP BY run.id HAVING count(CASE WHEN score = 'test/clf-acc' THEN 1 END) != 2"""
    assert _rows(store, incomplete) == []
    assert _rows(store, "SELECT count(*), count(DISTINCT run) FROM history") == [(RUNS * 8 * 4, RUNS)]
    assert _rows(store, "PRAGMA integrity_check") == [("ok",)]


KILLED_AT_START = """
import os, threading, time
import psutil
from annotmix._common.cluster import connect

def kill_the_first_worker():
    while True:
        for child in psutil.Process().children():
            command = " ".join(child.cmdline())
            if "spawn_main" in command:
                child.kill()
                return
        time.sleep(0.01)

if __name__ == "__main__":
    threading.Thread(target=kill_the_first_worker, daemon=True).start()
    with connect(None, 1, 1) as client:
        print(client.submit(abs, -7).result())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_worker_killed_while_the_cluster_comes_up_is_started_again(tmp_path):
    (tmp_path / "script.py").write_text(KILLED_AT_START)
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.split() == ["7"], done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("the workers are started again") == 1


class Failing:
    """Dask whose nannies fail so many times."""

    def __init__(self, times: int):
        self.times, self.starts = times, 0

    def LocalCluster(self, **_):
        self.starts += 1
        if self.starts <= self.times:
            raise RuntimeError("Cluster failed to start.") from RuntimeError("Nanny failed to start.")
        return "a cluster"


def test_lost_workers_are_started_again_and_at_last_one_line_says_so(capsys):
    dask = Failing(cluster.STARTS - 1)
    assert cluster._local_cluster(dask, 2) == "a cluster"
    assert dask.starts == cluster.STARTS == len(capsys.readouterr().err.splitlines()) + 1
    message = r"The 2 workers could not be started in 3 attempts \(Nanny failed to start.\)"
    with pytest.raises(ConnectionError, match=message):
        cluster._local_cluster(Failing(99), 2)
