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
