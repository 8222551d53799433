"""Simulated crowds that choose several classes per item."""

from __future__ import annotations

import numpy as np

from annotmix.labels import LabelSets

CLASSES = ("calm", "live", "loud", "rock", "sad")


def set_crowd(n_items: int = 300, n_annotators: int = 12, per_item: int = 4, seed: int = 0):
    """True sets, shape (N, C), and answers of annotators with their own rates of errors."""
    rng = np.random.default_rng(seed)
    C = len(CLASSES)
    true = rng.random((n_items, C)) < rng.uniform(0.1, 0.5, C)
    found = np.clip(
        rng.uniform(0.4, 0.95, (n_annotators, 1)) + rng.normal(0, 0.08, (n_annotators, C)), 0.05, 0.99
    )
    left = np.clip(
        rng.uniform(0.75, 0.99, (n_annotators, 1)) + rng.normal(0, 0.03, (n_annotators, C)), 0.05, 0.99
    )
    Z = np.full((n_items, n_annotators, C), np.nan)
    for n in range(n_items):
        who = rng.permutation(n_annotators)[:per_item]
        Z[n, who] = rng.random((per_item, C)) < np.where(true[n], found[who], 1 - left[who])
    names = [f"item{n:03}" for n in range(n_items)], [f"ann{m:02}" for m in range(n_annotators)]
    return true, LabelSets.from_array(Z, classes=CLASSES, items=names[0], annotators=names[1])
