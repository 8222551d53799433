"""One pass over parts of labels, as a worker of `annotmix.runs.aggregate_parts` does it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from annotmix._common.files import load_array, write_atomically
from annotmix.labels.aggregation import draw
from annotmix.labels.annotations import ROUNDING
from annotmix.labels.expectation import Cells, ItemLabels, floored_log
from annotmix.reading.label_parts import load_part, read_names

Floats = NDArray[np.float64]

#: Right labels that every annotator is assumed to have given beforehand, as in `annotmix.dawid_skene`.
SMOOTHING = 1e-10


class Sums(NamedTuple):
    """Sums over items: everything that the next round needs."""

    counts: NDArray[np.floating]  # Σ q of the labels of each cell, shape (K, C)
    shares: Floats  # Σ q, shape (C,)
    n_items: int
    log_likelihood: float

    def plus(self, other: Sums) -> Sums:
        """The sums of both."""
        return Sums(
            self.counts + other.counts,
            self.shares + other.shares,
            self.n_items + other.n_items,
            self.log_likelihood + other.log_likelihood,
        )


class Model(NamedTuple):
    """Dawid–Skene's model of a round."""

    counts: str  # file of the counts of cells
    prior: list[float]

    def logarithms(self, cells: Cells, dtype: str) -> tuple[Any, Any]:
        """log π, shape (C,), and log θ of the cells, shape (K, C)."""
        counts = load_array(Path(self.counts)).astype(dtype)
        return floored_log(np.array(self.prior)).astype(dtype), cells.log_confusion(counts, SMOOTHING)


class Parts(NamedTuple):
    """The working folder and what all parts have in common."""

    folder: str
    n_annotators: int
    n_classes: int
    dtype: str

    def cells(self) -> Cells:
        """The cells of all parts."""
        return Cells(load_array(Path(self.folder) / "cells.npy"), self.n_annotators, self.n_classes)

    def posterior(
        self, part: int, cells: Cells, logarithms: tuple[Any, Any] | None
    ) -> tuple[ItemLabels, NDArray[np.floating], float]:
        """Labels of a part, q of its items (without a model, shares of votes), and the log-likelihood."""
        start, cell = load_part(part, self.folder)
        labels = ItemLabels(start, cell, len(cells.cell), getattr(np, self.dtype))
        if logarithms is None:
            return labels, labels.vote_shares(cells), 0.0
        return labels, *labels.e_step(*logarithms)


def sum_parts(parts: Parts, numbers: list[int], model: Model | None) -> Sums:
    """One pass over some parts: the E-step with a model, or the shares of the votes without one."""
    cells = parts.cells()
    logarithms = None if model is None else model.logarithms(cells, parts.dtype)
    C = parts.n_classes
    total = Sums(np.zeros((len(cells.cell), C)), np.zeros(C), 0, 0.0)
    for number in numbers:
        labels, q, log_likelihood = parts.posterior(number, cells, logarithms)
        total = total.plus(
            Sums(labels.count(q), labels.class_sums(q), int(labels.known.sum()), log_likelihood)
        )
    return total


def write_part(parts: Parts, number: int, model: Model | None, out: str, seed: int) -> Floats:
    """Write the labels of a part's items; right labels and all labels of each annotator, shape (M, 2)."""
    cells = parts.cells()
    logarithms = None if model is None else model.logarithms(cells, parts.dtype)
    labels, q, _ = parts.posterior(number, cells, logarithms)
    items, classes = read_names(parts.folder, f"items-{number}"), read_names(parts.folder, "classes")
    best = q.argmax(axis=1) if model is not None else _winners(q, items, seed)
    table = pa.table(
        {
            "item": pa.array(items, pa.string()),
            "label": pa.array(classes[best], pa.string()),
            "probability": pa.array(q[np.arange(len(q)), best].astype(np.float32)),
            "n_labels": pa.array(np.diff(load_part(number, parts.folder)[0])),
        }
    )
    path = Path(out) / f"items-{number:05d}.parquet"
    write_atomically(path, lambda temporary: pq.write_table(table, temporary))
    if model is None:
        q = np.eye(parts.n_classes, dtype=q.dtype)[best]
    right = labels.count(q)[np.arange(len(cells.cell)), cells.label]
    n_labels = labels.count(np.ones((len(q), 1), q.dtype))[:, 0]
    sums = [np.bincount(cells.annotator, values, parts.n_annotators) for values in (right, n_labels)]
    return np.stack(sums, axis=1)


def _winners(shares: NDArray[np.floating], items: NDArray[Any], seed: int) -> NDArray[np.int64]:
    """The class with the most votes of every item; ties are broken as `annotmix.majority_vote` does."""
    rounding = max(ROUNDING, 4 * float(np.finfo(shares.dtype).eps))
    won = shares >= shares.max(axis=1, keepdims=True) * (1 - rounding)
    n_tied = won.sum(axis=1)
    nth = np.zeros(len(items), dtype=np.int64)
    tied = np.flatnonzero(n_tied > 1)
    nth[tied] = draw(items[tied], n_tied[tied], seed)
    return np.asarray((np.cumsum(won, axis=1) == nth[:, None] + 1).argmax(axis=1))
