"""How far the annotators of a run agree, among its findings."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from annotmix.labels.agreement import agreement
from annotmix.labels.annotations import Annotations


@dataclass(frozen=True, eq=False)
class CrowdAgreement:
    """The figures of `annotmix.agreement` for classes without an order; nan where there are none.

    Attributes
    ----------
    n_items : int
        Items with labels of two annotators or more.
    alpha, low, high : float
        Krippendorff's α and its 95 % interval.
    fleiss_kappa, percent : float
    classes : DataFrame, one row per class, indexed by its name, the least reliable first
        `share`, `agreement`, `alpha`, `low`, `high`, as in `annotmix.Agreement.classes`.
    """

    n_items: int
    alpha: float
    low: float
    high: float
    fleiss_kappa: float
    percent: float
    classes: pd.DataFrame


def crowd_agreement(annotations: Annotations) -> CrowdAgreement:
    """How far the annotators of a run agree."""
    found = agreement(annotations)
    classes = found.classes.set_axis(pd.Index([str(name) for name in found.classes.index], name="class"))
    return CrowdAgreement(
        found.n_items, found.alpha, *found.alpha_interval, found.fleiss_kappa, found.percent, classes
    )
