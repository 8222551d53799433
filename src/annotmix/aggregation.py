"""One label an item from many: majority vote, Dawid–Skene, vectorised and linear in the labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.annotations import Annotations


def majority_vote(annotations: Annotations, random_state: Any = None) -> pd.Series:
    """The label that most annotators gave, for every item; ties are broken at random by the seed.

    Returns
    -------
    Series, indexed by item
        Class names; items without labels are missing from it.
    """
    n_classes = annotations.n_classes
    cells, count = np.unique(annotations.item * n_classes + annotations.label, return_counts=True)
    rng = np.random.default_rng(random_state)
    order = np.lexsort((rng.random(len(cells)), count, cells // n_classes))
    item, label = cells[order] // n_classes, cells[order] % n_classes
    last = np.flatnonzero(np.append(np.diff(item) != 0, True)) if len(item) else np.zeros(0, dtype=np.int64)
    index = pd.Index(annotations.items[item[last]], name="task")
    return pd.Series(annotations.classes[label[last]], index=index, name="label")


def aggregated(annotations: Annotations, labels: pd.Series) -> Annotations:
    """One label an item, as `Annotations` of a single annotator named "aggregated"."""
    item: NDArray[np.int64] = pd.Index(annotations.items).get_indexer(labels.index)
    label = pd.Index(annotations.classes).get_indexer(pd.Index(labels.to_numpy()))
    names = np.array(["aggregated"], dtype=object)
    return Annotations(
        item, np.zeros(len(item), dtype=np.int64), label, annotations.items, names, annotations.classes
    )
