"""From all labels to the few that a real crowd gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from annotmix.labels.annotations import Annotations


def thin(
    annotations: Annotations,
    per_item: int | tuple[int, int] = (2, 4),
    *,
    loads: ArrayLike | None = None,
    random_state: Any = None,
) -> Annotations:
    """Keep a few labels per item, from annotators with different workloads.

    The annotators of an item are drawn one after another, without replacement, each in proportion to the
    loads of those that are left. The paper's settings are `per_item=(2, 4)` or `per_item=1`, and no `loads`.

    Parameters
    ----------
    annotations : Annotations
    per_item : int or (int, int), default=(2, 4)
        Labels of an item: a fixed number, or the least and the most, each number between as likely. An item
        with fewer labels keeps all of them.
    loads : array-like, shape (n_annotators,), optional
        How much each annotator works, relative to the others; by default drawn from Beta(1, 3).
    random_state : int, numpy Generator or None

    Returns
    -------
    Annotations
        Items, annotators and classes stay, also those that are left without a label.
    """
    if annotations.labels_per_item.sum() < len(annotations):
        raise ValueError("thin draws labels one by one and would split soft labels; pass hard labels.")
    rng = np.random.default_rng(random_state)
    least, most = (per_item, per_item) if isinstance(per_item, int | np.integer) else per_item
    if not 1 <= least <= most:
        raise ValueError(f"per_item must be a positive number or (least, most), found {per_item!r}.")
    load = rng.beta(1, 3, annotations.n_annotators) if loads is None else np.asarray(loads, dtype=float)
    if load.shape != (annotations.n_annotators,) or not np.all((load > 0) & np.isfinite(load)):
        raise ValueError(f"loads must be {annotations.n_annotators} positive numbers, found {loads!r}.")
    # The first of exponential clocks that run at the rates `load` are a weighted draw without replacement.
    clock = rng.exponential(size=len(annotations)) / load[annotations.annotator]
    order = np.lexsort((clock, annotations.item))
    rank = np.arange(len(annotations)) - annotations.start[annotations.item]
    wanted = rng.integers(least, most, endpoint=True, size=annotations.n_items)
    kept = order[rank < wanted[annotations.item]]
    return annotations.keep(kept)
