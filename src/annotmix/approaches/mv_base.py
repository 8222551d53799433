"""mv-base: the lower baseline, cross-entropy on the majority vote, ties broken at random."""

from __future__ import annotations

import numpy as np

from annotmix.approaches.two_stage import TwoStage
from annotmix.labels.aggregation import aggregated, majority_vote
from annotmix.labels.annotations import Annotations
from annotmix.networks import Classifier


class MvBase(TwoStage):
    """Trains on the majority vote of the annotators."""

    name = "mv-base"

    def __init__(self, classifier: Classifier, n_annotators: int):
        super().__init__(classifier, n_annotators)

    @classmethod
    def prepare(cls, annotations: Annotations, rng: np.random.Generator) -> Annotations:
        """One label per item: the one that most annotators gave."""
        return aggregated(annotations, majority_vote(annotations, random_state=rng))
