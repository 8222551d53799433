"""letter as the measurements of speed use it: real features where there are some, labels that are drawn.

15 500 items, 16 features, 26 classes, 20 annotators, two to four labels an item, 42 % of them false. What
labels say does not change the time. Nothing here imports annotmix: other libraries are measured with it, too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

N, D, C, M, BATCH = 15_500, 16, 26, 20, 64


class Labelled(NamedTuple):
    """X, shape (N, D), and the labels as three vectors sorted by item."""

    X: np.ndarray
    item: np.ndarray
    annotator: np.ndarray
    label: np.ndarray


def load(folder: str | None = None) -> Labelled:
    """Features and classes of the UCI file in FOLDER/letter, else random ones of the same size."""
    rng = np.random.default_rng(0)
    path = Path(folder or os.environ.get("ANNOTMIX_DATA", "")) / "letter" / "letter-recognition.data"
    if path.is_file():
        table = np.loadtxt(path, delimiter=",", dtype=str, max_rows=N)
        X, y = table[:, 1:].astype(np.float32), np.unique(table[:, 0], return_inverse=True)[1]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    else:
        X, y = rng.standard_normal((N, D), dtype=np.float32), rng.integers(0, C, N)
    order = np.argsort(rng.exponential(size=(N, M)) / rng.beta(1, 3, M), axis=1)  # unequal loads
    n_labels = rng.integers(2, 5, N)
    item = np.repeat(np.arange(N), n_labels)
    annotator = order[item, np.arange(len(item)) - np.repeat(np.cumsum(n_labels) - n_labels, n_labels)]
    label = np.where(rng.random(len(item)) < 0.58, y[item], rng.integers(0, C, len(item)))
    return Labelled(X, item, annotator, label)
