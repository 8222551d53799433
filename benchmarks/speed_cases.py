"""What `benchmarks/speed.py` measures, a function each; every one runs in a process of its own.

    python benchmarks/speed_cases.py classes 8

Seconds are CPU seconds of the process, one thread: on a shared machine they tell more than the clock does.
Memory is the highest resident set of the process, with Python and PyTorch (about 0.4 GB) in it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import letter_like
import numpy as np
import torch

import annotmix
from annotmix import Annotations

torch.set_num_threads(1)
Figures = dict[str, Any]
HERE = Path(__file__).resolve().parent


class MatrixProducts:
    """The products of one epoch on letter, forward and backward, into buffers that exist already."""

    def __init__(self, n_labels: int):
        self.steps = -(-letter_like.N // letter_like.BATCH)
        rows, C = round(n_labels / self.steps), letter_like.C
        # (in, out, whether a gradient goes back to the input)
        layers = [
            (letter_like.D, 256, False), (256, 128, True), (128, C, True),
            (128, 128, False), (256, 128, True), (128, C * C, True),
        ]  # fmt: skip
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


def epochs(X: np.ndarray, labels: Annotations, n: int, **params: Any) -> list[float]:
    """CPU seconds of n epochs; neither the first, which sets up, nor the last, when tables catch up."""
    clf = annotmix.make_classifier("annot-mix", max_epochs=n + 2, random_state=0, progress=False, **params)
    return cpu_seconds(clf, X, labels)[1:-1]


def cpu_seconds(clf: Any, X: np.ndarray, labels: Annotations) -> list[float]:
    """CPU seconds of every epoch of a training."""
    clock = time.perf_counter
    time.perf_counter = time.process_time  # what `history_` counts by
    try:
        seconds: list[float] = clf.fit(X, labels).history_["seconds"].tolist()
    finally:
        time.perf_counter = clock
    return seconds


def plus(folder: str | None) -> Figures:
    """Epochs of annot-mix-plus, and their matrix products alone; the fastest of each.

    The products are those of six networks that learn every item, and of one that predicts it. Only epochs
    that refine the labels count: the last half, without the very last.
    """
    found = {}
    for name, rounds in (("letter", 6), ("mgc", 20), ("labelme", 20)):
        if name == "letter":
            data = letter_like.load(folder)
            X, labels = data.X, annotations(data, data.annotator, letter_like.M)
        elif (Path(folder or "") / name).is_dir():
            full = {"labelme": "labelme-vgg16"}.get(name, name)
            dataset = annotmix.load_dataset(full, folder, download=False, progress=False)
            X, labels = dataset.X, dataset.labels
        else:
            continue
        clf = annotmix.make_classifier("annot-mix-plus", max_epochs=rounds, random_state=0, progress=False)
        ours = cpu_seconds(clf, X, labels)[rounds // 2 : -1]
        n = int((labels.labels_per_item > 0).sum())
        alone = [plus_products(n, [X.shape[1], *clf.hidden_, labels.n_classes]) for _ in range(3)]
        found[name] = {"seconds": min(ours), "products": min(alone)}
    return found


def plus_products(n_items: int, widths: list[int]) -> float:
    """CPU seconds of the products of one epoch: six networks forward and backward, and one forward."""
    layers = [
        [
            (torch.randn(rows, n_in), torch.randn(n_out, n_in), torch.randn(rows, n_out))
            for n_in, n_out in pairwise(widths)
        ]
        for rows in (letter_like.BATCH, n_items)
    ]
    started = time.process_time()
    for _ in range(6 * -(-n_items // letter_like.BATCH)):
        for number, (x, w, g) in enumerate(layers[0]):
            torch.mm(x, w.T)
            torch.mm(g.T, x)
            if number:
                torch.mm(g, w)
    for x, w, _ in layers[1]:
        torch.mm(x, w.T)
    return time.process_time() - started


def annotations(data: letter_like.Labelled, annotator: np.ndarray, M: int) -> Annotations:
    names = np.arange(letter_like.N), np.arange(M), np.arange(letter_like.C)
    return Annotations(data.item, annotator, data.label, *names)


def peak() -> float:
    """Highest resident set of this process so far, in GB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6


def letter(folder: str | None) -> Figures:
    """An epoch on letter, and its matrix products alone; each the fastest."""
    data = letter_like.load(folder)
    labels, products = annotations(data, data.annotator, letter_like.M), MatrixProducts(len(data.item))
    ours = epochs(data.X, labels, 3)
    alone = [products.epoch() for _ in range(3)]
    return {"seconds": min(ours), "products": min(alone)}


def skactiveml(folder: str | None) -> Figures:
    """An epoch on letter, and scikit-activeml's, in turn; each the fastest. Empty where it is not to be had.

    scikit-activeml's batches have as many labels as ours have on average, then 64 of them.
    """
    python, data = _skactiveml(), letter_like.load(folder)
    if python is None:
        return {}
    labels = annotations(data, data.annotator, letter_like.M)
    ours = []
    theirs: dict[int, list[float]] = {round(len(labels) * letter_like.BATCH / letter_like.N): [], 64: []}
    for _ in range(2):
        ours += epochs(data.X, labels, 3)
        for batch_size, found in theirs.items():
            command = [python, str(HERE / "skactiveml_letter.py"), str(batch_size)]
            environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            done = subprocess.run(
                [*command, *([folder] if folder else [])],
                check=True, capture_output=True, text=True, env=environment,
            )  # fmt: skip
            found.append(float(done.stdout.split()[-1]))
    return {"seconds": min(ours), "theirs": {size: min(s) for size, s in theirs.items()}}


def _skactiveml() -> str | None:
    """A Python with scikit-activeml, in an environment of its own that is thrown away with build/."""
    folder = HERE.parent / "build" / "bench-speed"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        wanted = ["scikit-activeml==1.0.1", "skorch", f"torch=={torch.__version__.split('+')[0]}"]
        pip = [str(python), "-m", "pip", "install", "--quiet", "-c", str(HERE.parent / "constraints.txt")]
        if subprocess.run([*pip, *wanted], check=False).returncode:
            shutil.rmtree(folder)  # else the next run would take it for complete
            print("scikit-activeml could not be installed: measured without it", file=sys.stderr)
            return None
    return str(python)


def annotators(folder: str | None) -> Figures:
    """Epochs with the same labels by more and more annotators, in turn; the fastest of each."""
    data = letter_like.load(folder)
    counts = (20, 1000, 10_000, 100_000)
    seconds: dict[int, list[float]] = {M: [] for M in counts}
    for _ in range(2):
        for M in counts:
            # neighbouring labels of an item go to neighbouring annotators, so that nobody has two
            who = data.annotator if M == letter_like.M else (data.item * 7919 + np.arange(len(data.item))) % M
            seconds[M] += epochs(data.X, annotations(data, who, M), 2)
    fastest = {M: min(found) for M, found in seconds.items()}
    return {"seconds": fastest, "ratio": {M: s / fastest[20] for M, s in fastest.items()}}


def annotator_memory(n_annotators: int) -> Figures:
    """The highest memory of two epochs with so many annotators."""
    data = letter_like.load()
    who = (data.item * 7919 + np.arange(len(data.item))) % n_annotators
    epochs(data.X, annotations(data, who, n_annotators), 0)
    return {"memory": peak(), "table": 3 * 4 * 128 * n_annotators / 1e9}


def classes(rank: int) -> Figures:
    """Steps of 64 items with one label each at 1000 classes, 128 features; then p_perf of 20 annotators."""
    rng, C, n = np.random.default_rng(0), 1000, 64 * 4
    X = rng.normal(size=(1000, 128)).astype(np.float32)
    labels = Annotations(
        np.arange(n), rng.integers(0, 20, n), rng.integers(0, C, n), np.arange(n), np.arange(20), np.arange(C)
    )
    clf = annotmix.make_classifier(
        "annot-mix", dropout=0.0, confusion_rank=rank, max_epochs=3, random_state=0, progress=False
    )
    clock, time.perf_counter = time.perf_counter, time.process_time
    clf.fit(X[:n], labels)
    time.perf_counter = clock
    found = {"seconds a step": clf.history_["seconds"].iloc[1:].min() / 4, "memory": peak()}
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak
    started = time.process_time()
    clf.predict_annotator_perf(X)
    return found | {"perf seconds": time.process_time() - started, "perf memory": peak()}


def labels(n_labels: int) -> Figures:
    """Epochs on a memory-mapped array, two labels an item, 64 features; mean seconds a label, and memory."""
    rng, n, C, M = np.random.default_rng(0), n_labels // 2, 10, 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, 64))
        for first in range(0, n, 50_000):
            X[first : first + 50_000] = rng.standard_normal((min(50_000, n - first), 64), dtype=np.float32)
        X.flush()
        X = np.load(path, mmap_mode="r")
        item = np.repeat(np.arange(n), 2)
        names = np.arange(n), np.arange(M), np.arange(C)
        given = Annotations(item, (item * 31 + np.arange(2 * n)) % M, rng.integers(0, C, 2 * n), *names)
        seconds = epochs(X, given, 1 if n_labels > 500_000 else 10)
    own = int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1e6
    return {
        "microseconds a label": 1e6 * sum(seconds) / len(seconds) / n_labels,
        "memory": peak(),
        "of its own": own,
        "features": n * 64 * 4 / 1e9,
    }


def study(folder: str | None) -> Figures:
    """Ten seeds of annot-mix on mgc (or digits, without the file) with one worker and with two."""
    from workers import measure

    from annotmix.bench.study_files import read_study

    real = (Path(folder or "") / "mgc").is_dir()
    one = read_study("benchmark").narrowed(["mgc"], ["annot-mix"], 10)
    one = one if real else read_study("quick").narrowed(["digits"], ["annot-mix"], 3)
    (alone, shares), (together, _) = (measure(one, workers, folder) for workers in (1, 2))
    return {
        "what": "ten seeds on mgc" if real else "three seeds on digits",
        "two workers": alone / together,
        "overhead": sum(shares.values()),
    }


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](json.loads(sys.argv[2]))))
