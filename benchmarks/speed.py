"""Seconds per epoch of annot-mix on letter, as a multiple of its matrix multiplications alone.

    python benchmarks/speed.py [--data FOLDER]

letter: 15 500 items, 16 features, 26 classes, 20 annotators, two to four labels an item, batches of 64 items.
Features and classes are the UCI file's where FOLDER has it, otherwise random of the same size; the labels
are drawn, since what they say does not change the time. Epochs and matrix multiplications are timed in turn
in one process with one thread, and the ratio of the medians is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import torch

import annotmix
from annotmix.annotations import Annotations

torch.set_num_threads(1)
N, D, C, M, BATCH, HIDDEN, DIM = 15_500, 16, 26, 20, 64, (256, 128), 128


def letter(folder: str | None) -> tuple[np.ndarray, np.ndarray]:
    path = Path(folder or os.environ.get("ANNOTMIX_DATA", "")) / "letter" / "letter-recognition.data"
    if path.is_file():
        table = pd.read_csv(path, header=None)[:N]
        X = table.iloc[:, 1:].to_numpy(dtype=np.float32)
        return (X - X.mean(0)) / X.std(0), pd.factorize(table[0], sort=True)[0]
    print("letter-recognition.data not found: random features of the same size")
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, D), dtype=np.float32), rng.integers(0, C, N)


def crowd(y: np.ndarray) -> Annotations:
    """Two to four labels an item, 42 % of them false, unequal loads."""
    rng = np.random.default_rng(0)
    load = rng.beta(1, 3, M)
    keys = rng.exponential(size=(N, M)) / load
    chosen = np.argsort(keys, axis=1) < rng.integers(2, 5, N)[:, None]
    item, slot = np.nonzero(chosen)
    annotator = np.argsort(keys, axis=1)[item, slot]
    label = np.where(rng.random(len(item)) < 0.58, y[item], rng.integers(0, C, len(item)))
    return Annotations(item, annotator, label, np.arange(N), np.arange(M), np.arange(C))


class MatrixProducts:
    """The products of one epoch, forward and backward, into buffers that exist already."""

    def __init__(self, n_labels: int):
        self.steps = -(-N // BATCH)
        rows = round(n_labels / self.steps)
        # (in, out, whether a gradient goes back to the input)
        layers = [
            (D, HIDDEN[0], False),
            (HIDDEN[0], HIDDEN[1], True),
            (HIDDEN[1], C, True),
            (HIDDEN[1], DIM, False),
            (2 * DIM, DIM, True),
            (DIM, C * C, True),
        ]
        self.products = []
        for n_in, n_out, back in layers:
            x, w, g = torch.randn(rows, n_in), torch.randn(n_out, n_in), torch.randn(rows, n_out)
            self.products.append((x, w.T, torch.empty(rows, n_out)))
            self.products.append((g.T, x, torch.empty(n_out, n_in)))
            if back:
                self.products.append((g, w, torch.empty(rows, n_in)))

    def epoch(self) -> float:
        started = time.process_time()
        for _ in range(self.steps):
            for a, b, out in self.products:
                torch.mm(a, b, out=out)
        return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder with the datasets; default: ANNOTMIX_DATA")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    args = parser.parse_args()
    X, y = letter(args.data)
    labels = crowd(y)
    products = MatrixProducts(len(labels))

    def fit(epochs: int) -> annotmix.MultiAnnotatorClassifier:
        clf = annotmix.make_classifier("annot-mix", max_epochs=epochs, random_state=0, progress=False)
        return clf.fit(X, labels)

    if args.profile:
        from torch.profiler import profile

        fit(1)
        with profile() as prof:
            fit(1)
        print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=40))
        return
    ours, alone = [], []
    for _ in range(args.rounds):
        ours += fit(2).history_["seconds"].tolist()[1:]
        alone.append(products.epoch())
    a, b = statistics.median(ours), statistics.median(alone)
    print(f"labels {len(labels)}, steps {products.steps}, one thread, {args.rounds} rounds")
    print(f"annot-mix {a:.3f} s an epoch, its matrix multiplications {b:.3f} s: ratio {a / b:.2f}")


if __name__ == "__main__":
    main()
