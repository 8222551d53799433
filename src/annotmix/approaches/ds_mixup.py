"""ds-mixup: vanilla mixup on the most probable classes of the Dawid–Skene model.

The model, EM with one confusion matrix per annotator, is described in
`annotmix.labels.dawid_skene.dawid_skene`.

Dawid, Skene: Maximum Likelihood Estimation of Observer Error-Rates Using the EM Algorithm. Applied
Statistics 28(1), 1979, pp. 20–28.
"""

from __future__ import annotations

import numpy as np

from annotmix.approaches.two_stage import TwoStage
from annotmix.labels.aggregation import aggregated
from annotmix.labels.annotations import Annotations
from annotmix.labels.dawid_skene import dawid_skene
from annotmix.networks import Classifier


class DsMixup(TwoStage):
    """Trains on the labels that Dawid–Skene infers, with vanilla mixup.

    Parameters
    ----------
    alpha : float, default=1.0
        λ ~ Beta(alpha, alpha) is the share of the first item in a mix; 0 switches mixing off.
    """

    name = "ds-mixup"

    def __init__(self, classifier: Classifier, n_annotators: int, *, alpha: float = 1.0):
        super().__init__(classifier, n_annotators, alpha=alpha)

    @classmethod
    def prepare(cls, annotations: Annotations, rng: np.random.Generator) -> Annotations:
        """One label per item: the most probable class given all labels."""
        return aggregated(annotations, dawid_skene(annotations).labels)
