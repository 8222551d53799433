"""One confusion matrix per annotator, the same for every item: Π_m = row-softmax(A_m).

    p_annot = Σ_c p_c Π_m[c, ·],   loss = mean negative log-likelihood of the labels + λ R

Subclasses differ in where A_m starts and in the regulariser R.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.approaches.base import Approach, Batch
from annotmix.networks import Classifier
from annotmix.networks.losses import label_log_likelihood, label_mean


class ConfusionTable(Approach):
    """A table of confusion matrices, one per annotator.

    Parameters
    ----------
    start : tensor, shape (C, C)
        Where the logits A_m start.
    """

    def __init__(self, classifier: Classifier, n_annotators: int, start: Tensor):
        super().__init__(classifier, n_annotators)
        self.A = nn.Parameter(start.repeat(n_annotators, 1, 1))

    def regulariser(self, log_p: Tensor) -> Tensor:
        """λ R, shape (), for class log-probabilities of the batch's items, shape (B, C)."""
        raise NotImplementedError

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Mean negative log-likelihood plus the regulariser."""
        log_p = self.classifier.log_proba(self.classifier.features(batch.x))
        said = label_log_likelihood(log_p[batch.item], self.A[batch.annotator], batch.label.unsqueeze(1))
        return self.regulariser(log_p) - label_mean(said.squeeze(1), batch.weight)

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log Π_m, shape (n, C, C)."""
        return F.log_softmax(self.A[annotator], dim=-1)


def check_weight(value: float) -> float:
    """The weight λ of a regulariser."""
    if not value >= 0:
        raise ValueError(f"regularization must be 0 or positive, found {value}.")
    return value
