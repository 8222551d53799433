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

import letter_like
import numpy as np
import torch

import annotmix

SIZES = {
    "paper": {"hidden": (256, 128), "batch_size": 64},
    "large": {"hidden": (1024, 512), "batch_size": 512},
}


def ratios(folder: str | None = None, devices: int = 2, rounds: int = 2) -> dict[str, float]:
    """Seconds of an epoch in several processes, as a multiple of one, by the size of the networks."""
    torch.set_num_threads(1)
    data = letter_like.load(folder)
    names = np.arange(letter_like.N), np.arange(letter_like.M), np.arange(letter_like.C)
    labels = annotmix.Annotations(data.item, data.annotator, data.label, *names)
    found = {}
    for name, size in SIZES.items():
        seconds: dict[int, list[float]] = {1: [], devices: []}
        for _ in range(rounds):
            for n, times in seconds.items():
                clf = annotmix.make_classifier(
                    "annot-mix", **size, devices=n, max_epochs=2, random_state=0, progress=False
                )
                times += clf.fit(data.X, labels).history_["seconds"].tolist()[1:]
        found[name] = statistics.median(seconds[devices]) / statistics.median(seconds[1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data", help="folder with the datasets; default: ANNOTMIX_DATA")
    args = parser.parse_args()
    for name, ratio in ratios(args.data, args.devices, args.rounds).items():
        print(f"{name}: an epoch in {args.devices} processes takes {ratio:.2f} times as long as in one")


if __name__ == "__main__":
    main()
