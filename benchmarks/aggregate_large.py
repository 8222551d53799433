"""`annotmix aggregate --workers` on labels that are written as Parquet parts first: time and memory.

    python benchmarks/aggregate_large.py --labels 50000000 --workers 2 --rounds 10

Ten labels per item by 100,000 annotators of differing skill, ten classes. The folder is temporary. Printed
are the clock, CPU seconds of all processes, and the highest resident sets of any worker and of the command;
Python, NumPy and Dask take 0.2 GB of each. `--rounds` bounds the rounds of EM.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from annotmix.runs import aggregate_parts

PER_ITEM, N_ANNOTATORS, N_CLASSES, FILE = 10, 100_000, 10, 2_000_000


def write(folder: Path, n_labels: int) -> list[Path]:
    """Parquet files of labels, in order of items."""
    rng, paths = np.random.default_rng(0), []
    chance = rng.uniform(0.3, 0.95, N_ANNOTATORS)
    names = pa.array([f"annotator-{m}" for m in range(N_ANNOTATORS)])
    classes = pa.array([f"class-{c}" for c in range(N_CLASSES)])
    for first in range(0, n_labels, FILE):
        item = np.arange(first, min(first + FILE, n_labels)) // PER_ITEM
        truth = (item * 2654435761 >> 7) % N_CLASSES
        who = rng.integers(N_ANNOTATORS, size=len(item)).astype(np.int32)
        label = np.where(rng.random(len(item)) < chance[who], truth, rng.integers(N_CLASSES, size=len(item)))
        columns = {
            "item": pa.array(item),
            "annotator": pa.DictionaryArray.from_arrays(pa.array(who), names),
            "label": pa.DictionaryArray.from_arrays(pa.array(label.astype(np.int32)), classes),
        }
        paths.append(folder / f"labels-{first // FILE:04d}.parquet")
        pq.write_table(pa.table(columns), paths[-1])
    return paths


def highest_of_children(stop: threading.Event, found: dict[int, int]) -> None:
    """Keep the highest resident set of every descendant, in kB."""
    while not stop.wait(0.5):
        own, family = {os.getpid()}, []
        for entry in Path("/proc").iterdir():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                family.append((int(entry.name), int(fields[1])))
            except (OSError, ValueError, IndexError):
                continue
        while more := {child for child, parent in family if parent in own} - own:
            own |= more
        for process in own - {os.getpid()}:
            try:
                status = Path(f"/proc/{process}/status").read_text()
                found[process] = int(status.split("VmHWM:")[1].split()[0])
            except (OSError, IndexError):
                continue


def measure(n_labels: int, workers: int, rounds: int, folder: str | None = None) -> dict[str, float]:
    """Seconds, CPU seconds, and the highest memory in GB of a worker and of the command itself."""
    aggregate_parts.MAX_ITER = rounds
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        paths = write(Path(temporary), n_labels)
        stop, highest = threading.Event(), dict[int, int]()
        watch = threading.Thread(target=highest_of_children, args=(stop, highest))
        watch.start()
        before, started = time.process_time(), time.perf_counter()
        try:
            outcome = aggregate_parts.aggregate_parts(paths, Path(temporary) / "out", "ds", workers=workers)
        finally:
            stop.set()
            watch.join()
        seconds = time.perf_counter() - started
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "labels": outcome.n_labels,
            "rounds": outcome.n_iter,
            "seconds": seconds,
            "cpu": time.process_time() - before + children.ru_utime + children.ru_stime,
            "worker": max(highest.values()) / 1e6,
            "command": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=50_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", help="where the temporary folder is made")
    args = parser.parse_args()
    print(json.dumps(measure(args.labels, args.workers, args.rounds, args.folder)))


if __name__ == "__main__":
    main()
