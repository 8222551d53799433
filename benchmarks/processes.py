"""CPU seconds per step and process of annot-mix in one process and in two, and the clock.

    python benchmarks/processes.py [--rounds 1]

Twice: a ResNet-18 on random images of 32 × 32 in batches of 64, and layers of 2048 and 2048 on 512 features
in batches of 512, some steps each. The difference between a fit of few and of more epochs leaves out the
start of the processes. CPU seconds are those of this process and its children. One thread per process. The
clock says something only where two cores are idle; the load average is printed with it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import annotmix

#: Shape of an item, number of items, parameters, and epochs of the shorter and the longer fit.
SIZES: dict[str, tuple[tuple[int, ...], int, dict[str, Any], tuple[int, int]]] = {
    "resnet18": ((3, 32, 32), 192, {"backbone": "resnet18", "batch_size": 64}, (1, 2)),
    "mlp": ((512,), 2048, {"hidden": (2048, 2048), "batch_size": 512}, (1, 3)),
}


def used() -> float:
    """CPU seconds of this process and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def fit(name: str, devices: int, epochs: int) -> tuple[float, float]:
    """CPU seconds and seconds of a fit."""
    shape, n, params, _ = SIZES[name]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, *shape), dtype=np.float32)
    Z = rng.integers(0, 10, size=(n, 2))
    clf = annotmix.make_classifier(
        "annot-mix", **params, devices=devices, max_epochs=epochs, random_state=0, progress=False
    )
    cpu, clock = used(), time.perf_counter()
    clf.fit(X, Z)
    return used() - cpu, time.perf_counter() - clock


def measure(rounds: int = 1) -> dict[str, dict[str, float]]:
    """By size: CPU seconds per step and process, and seconds per step, of one and of two processes."""
    torch.set_num_threads(1)
    found = {}
    for name, (_, n, params, (few, more)) in SIZES.items():
        steps = n // params["batch_size"] * (more - few)
        best: dict[str, float] = {}
        for _ in range(rounds):
            for devices in (1, 2):
                short, long = fit(name, devices, few), fit(name, devices, more)
                cpu, clock = ((b - a) / steps for a, b in zip(short, long, strict=True))
                for what, value in (("cpu", cpu / devices), ("clock", clock)):
                    best[f"{what} {devices}"] = min(best.get(f"{what} {devices}", float("inf")), value)
        found[name] = best
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1)
    print(json.dumps(measure(parser.parse_args().rounds) | {"load average": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
