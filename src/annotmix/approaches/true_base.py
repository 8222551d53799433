"""true-base: the upper baseline, cross-entropy on the true classes, given as a vector."""

from __future__ import annotations

import numpy as np

from annotmix.approaches.two_stage import TwoStage
from annotmix.labels.annotations import Annotations
from annotmix.networks import Classifier


class TrueBase(TwoStage):
    """Trains on the true classes: `fit(X, y_true)` with one class per row."""

    name = "true-base"

    def __init__(self, classifier: Classifier, n_annotators: int):
        super().__init__(classifier, n_annotators)

    @classmethod
    def prepare(cls, annotations: Annotations, rng: np.random.Generator) -> Annotations:
        """The labels as they are; one per item, from one source."""
        if annotations.n_annotators != 1:
            raise ValueError(
                "true-base trains on the true classes, a vector with one class per row; found the labels of "
                f"{annotations.n_annotators} annotators. mv-base trains on their majority vote."
            )
        return annotations
