"""`annotmix fit` on many synthetic labels: seconds, memory, sizes of what it writes.

    python benchmarks/fit_large.py --labels 100000 --annotators 1000
    python benchmarks/fit_large.py --labels 100000 --annotators 5000 --classes 1000 --epochs 1

Annotators are right with a chance of their own, 0.3 to 0.95; items are blobs in 50 dimensions. The command
runs in a process of its own, whose CPU time and peak memory are what the system says.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

N_FEATURES, PER_ITEM = 50, 5


def write(folder: Path, n_labels: int, n_annotators: int, n_classes: int) -> None:
    """Labels, features and truth as CSV files."""
    rng = np.random.default_rng(0)
    n_items = n_labels // PER_ITEM
    y = rng.integers(n_classes, size=n_items)
    X = rng.normal(scale=0.7, size=(n_classes, N_FEATURES))[y] + rng.normal(size=(n_items, N_FEATURES))
    chance = rng.uniform(0.3, 0.95, size=n_annotators)
    item = np.repeat(np.arange(n_items), PER_ITEM)
    annotator = (rng.integers(n_annotators, size=n_items)[:, None] + np.arange(PER_ITEM)) % n_annotators
    annotator = annotator.reshape(-1)
    right = rng.random(len(item)) < chance[annotator]
    label = np.where(right, y[item], rng.integers(n_classes, size=len(item)))
    names = np.array([f"class-{n}" for n in range(n_classes)])
    table = {"item": item, "annotator": [f"annotator-{m}" for m in annotator], "label": names[label]}
    pd.DataFrame(table).to_csv(folder / "labels.csv", index=False)
    features = pd.DataFrame(X, columns=[f"x{n}" for n in range(N_FEATURES)])
    features.insert(0, "item", np.arange(n_items))
    features.to_csv(folder / "features.csv", index=False, float_format="%.4f")
    pd.DataFrame({"item": np.arange(n_items), "truth": names[y]}).to_csv(folder / "truth.csv", index=False)


def megabytes(path: Path) -> float:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--annotators", type=int, default=1000)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=50)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write(folder, args.labels, args.annotators, args.classes)
        run = folder / "run"
        cli = [sys.executable, "-c", "from annotmix.cli import main; main()"]
        fit = ["fit", folder / "labels.csv", "--features", folder / "features.csv", "--out", run]
        started = time.perf_counter()
        command = [*cli, *fit, "--epochs", str(args.epochs)]
        subprocess.run(command, check=True, env={"OMP_NUM_THREADS": "1", **os.environ})
        seconds = time.perf_counter() - started
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        subprocess.run([*cli, "evaluate", run, "--truth", folder / "truth.csv"], check=True)
        print("| labels | annotators | classes | epochs | seconds | CPU s | peak MB | report MB | run MB |")
        print("|---|---|---|---|---|---|---|---|---|")
        print(
            f"| {args.labels} | {args.annotators} | {args.classes} | {args.epochs} | {seconds:.0f} "
            f"| {cpu:.0f} | {peak:.0f} | {megabytes(run / 'report.html'):.1f} | {megabytes(run):.1f} |"
        )


if __name__ == "__main__":
    main()
