"""How much faster two workers finish a study than one, and what Dask, store and scoring cost.

    python benchmarks/workers.py mgc --data FOLDER [--seeds 4]

annot-mix and mv-base on one dataset of the benchmark study, with one and with two workers in turn, each into
a store of its own. Times are from the start of the first run to the end of the last, start-up excluded.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from annotmix.bench.driver import run_study
from annotmix.bench.store import Store
from annotmix.bench.study_files import read_study


def measure(study: object, workers: int, data: str | None) -> tuple[float, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        run_study(study, path, data_dir=None if data is None else Path(data), workers=workers)
        with Store(path) as store:
            runs = store.runs()
    in_hand = (runs["finished"] - runs["started"]).sum()
    fit, score = runs["fit_seconds"].sum(), runs["evaluate_seconds"].sum()
    shares = {"scoring": score / fit, "Dask, store and reading data": (in_hand - fit - score) / fit}
    return float(runs["finished"].max() - runs["started"].min()), shares


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", nargs="?", default="mgc")
    parser.add_argument("--data", help="folder with the datasets; default: ANNOTMIX_DATA")
    parser.add_argument("--seeds", type=int, default=4)
    args = parser.parse_args()
    study = read_study("benchmark").narrowed([args.dataset], ["annot-mix", "mv-base"], args.seeds)
    seconds = {}
    for workers in (1, 2):
        seconds[workers], shares = measure(study, workers, args.data)
        costs = ", ".join(f"{what} {100 * share:.1f} %" for what, share in shares.items())
        print(f"{workers} worker(s): {seconds[workers]:.1f} s; of the training time: {costs}")
    print(f"two workers are {seconds[1] / seconds[2]:.2f} times as fast as one")


if __name__ == "__main__":
    main()
