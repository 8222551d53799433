"""Campaigns against processes: those that train one model together, and the workers of a study."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from attack_tools import Trials, contents, differences, fit_words, unclear, write_problem

#: Seconds that processes may take to appear, and to end after their parent.
APPEAR, END = 90.0, 10.0
STUDY = """
seeds: 2
datasets:
  - {name: digits, settings: {max_epochs: 2}}
approaches: [mv-base]
"""


def start(folder: Path, *words: Any) -> subprocess.Popen[bytes]:
    """A command of annotmix as users start it; its output goes to log.txt."""
    main = "from annotmix.cli import main; main()"
    with open(folder / "log.txt", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-c", main, *map(str, words)], cwd=folder, stdout=log, stderr=log
        )


def descendants(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The processes that a process has started, and theirs."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def listening(processes: list[psutil.Process]) -> set[str]:
    """Addresses on which processes wait for connections."""
    found = set()
    for process in processes:
        try:
            for connection in process.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    found.add(str(connection.laddr[0]))
        except psutil.Error:
            continue
    return found


def _strange(addresses: set[str]) -> str:
    """A failure to tell where one of the addresses is not that of the loopback interface."""
    others = {address for address in addresses if not address.startswith("127.") and address != "::1"}
    return f"listens on {', '.join(sorted(others))}" if others else ""


# ---------------------------------------------------------------- two processes that train


def sockets(trials: Trials) -> None:
    """Watch the sockets of a fit in two processes, kill it, and resume it."""
    write_problem(trials.folder)
    expected: dict[str, str] = {}
    for folder in trials:
        words = fit_words("--devices", 2, epochs=40)
        parent = start(folder, *words)
        addresses: set[str] = set()
        checkpoint = folder / "run" / "checkpoint" / "checkpoint.safetensors"
        deadline = time.monotonic() + APPEAR
        while not checkpoint.exists() and parent.poll() is None and time.monotonic() < deadline:
            addresses |= listening([psutil.Process(parent.pid), *descendants(parent)])
            time.sleep(0.1)
        time.sleep(float(trials.rng.uniform(0, 1)))
        family = descendants(parent)
        addresses |= listening(family)
        parent.kill()
        parent.wait()
        _, alive = psutil.wait_procs(family, timeout=END)
        for process in alive:
            process.kill()
        failure = f"{len(alive)} processes outlive their parent" if alive else ""
        trials.record(failure or _strange(addresses) or _resumed(folder, expected))


def _resumed(folder: Path, expected: dict[str, str]) -> str:
    """Resume a run; all such runs must be the same."""
    again = start(folder, *fit_words("--devices", 2, "--resume", epochs=40))
    code = again.wait(300)
    output = (folder / "log.txt").read_text("utf-8", "replace")
    if "already holds a run" not in output and (failure := unclear(code, output, 0)):
        return f"resumed: {failure}"
    found = contents(folder / "run")
    expected |= expected or found
    return differences(found, expected)


# ---------------------------------------------------------------- workers of a study


def workers(trials: Trials) -> None:
    """Kill a worker of Dask while the cluster comes up; the study is finished, now or by the next start."""
    for folder in trials:
        (folder / "study.yaml").write_text(STUDY)
        words = ["bench", "run", "study.yaml", "--store", "store.sqlite", "--workers", 2]
        driver = start(folder, *words)
        killed, addresses = _kill_one(driver, float(trials.rng.uniform(0, 4)))
        code = _wait(driver)
        output = (folder / "log.txt").read_text("utf-8", "replace")
        failure = unclear(code, output, 0, 1)
        if not failure and code == 1:
            failure = unclear(
                _wait(start(folder, *words)), (folder / "log.txt").read_text("utf-8", "replace"), 0
            )
        failure = failure or _strange(addresses)
        trials.record(f"killed after {killed:.1f} s: {failure}" if failure else "")


def _kill_one(driver: subprocess.Popen[bytes], delay: float) -> tuple[float, set[str]]:
    """Kill the first worker that appears, after a delay; the delay, and where the processes listened."""
    deadline = time.monotonic() + APPEAR
    while time.monotonic() < deadline and driver.poll() is None:
        own = [child for child in descendants(driver) if "spawn_main" in " ".join(_command_line(child))]
        if own:
            time.sleep(delay)
            addresses = listening(descendants(driver))
            with suppress(ProcessLookupError):
                os.kill(own[0].pid, signal.SIGKILL)
            return delay, addresses
        time.sleep(0.02)
    return float("nan"), set()


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code; None where the process had to be ended, with all that it has started."""
    try:
        return process.wait(240)
    except subprocess.TimeoutExpired:
        for own in [*descendants(process), process]:
            own.kill()
        process.wait()
        return None
