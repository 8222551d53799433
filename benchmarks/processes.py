"""Seconds per epoch of annot-mix in several processes, as a multiple of one process.

    python benchmarks/processes.py [--devices 2] [--rounds 3] [--data FOLDER]

Twice: letter (15 500 items, 16 features, 26 classes, 20 annotators) with the networks and batches of the
paper, and with layers of 1024 and 512 and batches of 512, where there is more to compute between two
exchanges. One thread a process, on a machine with as many idle cores. One process and several take turns; the
ratio of the medians is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from speed import crowd, letter

import annotmix

SIZES = {
    "paper": {"hidden": (256, 128), "batch_size": 64},
    "large": {"hidden": (1024, 512), "batch_size": 512},
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", help="folder with the datasets; default: ANNOTMIX_DATA")
    args = parser.parse_args()
    torch.set_num_threads(1)
    X, y = letter(args.data)
    labels = crowd(y)
    for name, size in SIZES.items():
        seconds: dict[int, list[float]] = {1: [], args.devices: []}
        for _ in range(args.rounds):
            for devices, found in seconds.items():
                clf = annotmix.make_classifier(
                    "annot-mix", **size, devices=devices, max_epochs=2, random_state=0, progress=False
                )
                found += clf.fit(X, labels).history_["seconds"].tolist()[1:]
        one, several = (statistics.median(found) for found in seconds.values())
        print(f"{name}: 1 process {one:.2f} s, {args.devices} processes {several:.2f} s: {several / one:.2f}")


if __name__ == "__main__":
    main()
