"""What a run knows about single classes, where items have several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.labels.label_sets import Bools
from annotmix.labels.set_texts import BETWEEN, read_set

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SetFindings:
    """What a run knows about single classes, where items have several.

    Attributes
    ----------
    classes : DataFrame, one row per class, indexed by its name
        Shares among items and answers, how well annotators find it; see `result_columns`.
    annotators : DataFrame, one row per annotator and class
    probabilities : array, shape (n_items, n_classes)
        Probability of every class, items in the order of `Findings.items`.
    """

    classes: pd.DataFrame
    annotators: pd.DataFrame
    probabilities: Floats

    @property
    def names(self) -> list[str]:
        """Names of the classes."""
        return list(self.classes.index)

    def members(self, label: Any) -> Bools:
        """Classes of sets by their names in `Findings`, shape (n, n_classes)."""
        return members_of(label, self.names)


def members_of(label: Any, names: list[str]) -> Bools:
    """Classes of sets by their names, such as "live|rock", shape (n, n_classes)."""
    place = {name: at for at, name in enumerate(names)}
    members = np.zeros((len(label), len(names)), dtype=bool)
    for row, text in enumerate(label):
        for name in read_set(text, BETWEEN) or []:
            members[row, place[name]] = True
    return members
