"""union-net: all annotators as one source that emits pairs of annotator and label.

T ∈ R^((M·C)×C) starts as M stacked copies of (1−ε) I + ε/(C−1) (1 − I), ε = 1e-5. With S the softmax of T
over its M·C rows, for each true class:

    p_union = S p,   loss = −(1/B) Σ log p_union[(m, z_nm)]

p_annot of annotator m is p_union restricted to m's rows and renormalised.

Wei, Xie, Feng, Han, An: Deep Learning From Multiple Noisy Annotators as A Union. IEEE Transactions on Neural
Networks and Learning Systems 34(12), 2023.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.approaches.base import Approach, Batch
from annotmix.networks import Classifier
from annotmix.networks.losses import annotator_log_proba


class UnionNet(Approach):
    """One transition matrix from classes to all (annotator, label) pairs.

    Parameters
    ----------
    epsilon : float, default=1e-5
        Mass that the matrix starts with off the diagonal.
    """

    name = "union-net"
    perf = "agreement"

    def __init__(self, classifier: Classifier, n_annotators: int, *, epsilon: float = 1e-5):
        super().__init__(classifier, n_annotators)
        if not 0 <= epsilon < 1:
            raise ValueError(f"epsilon must lie in [0, 1), found {epsilon}.")
        C = classifier.n_classes
        eye = torch.eye(C)
        # T[m, c, k]: true class c, label k of annotator m
        self.T = nn.Parameter(
            ((1 - epsilon) * eye + epsilon / (C - 1) * (1 - eye)).repeat(n_annotators, 1, 1)
        )

    def _log_norm(self) -> Tensor:
        """log of the sum over all M·C rows, for each true class, shape (C,)."""
        return torch.logsumexp(self.T, dim=(0, 2))

    def _log_union(self, annotator: Tensor) -> Tensor:
        """log S for the rows of the annotators, shape (n, C, C), indexed [true class, label]."""
        return self.T[annotator] - self._log_norm().unsqueeze(-1)

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Negative log-likelihood of the (annotator, label) pairs, per item."""
        log_p = self.classifier.log_proba(self.classifier.features(batch.x))
        said = self.T[batch.annotator, :, batch.label] - self._log_norm()  # log S[(m, z), ·], (P, C)
        log_likelihood = torch.logsumexp(log_p[batch.item] + said, dim=-1)
        if batch.weight is not None:
            log_likelihood = log_likelihood * batch.weight
        return -log_likelihood.sum() / len(batch.x)

    def annotator_log_proba(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log p_union of the annotator's rows, renormalised, shape (n, C)."""
        joint = annotator_log_proba(self.classifier.log_proba(h), self._log_union(annotator))
        return F.log_softmax(joint, dim=-1)

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log P(label | annotator, true class), shape (n, C, C)."""
        return F.log_softmax(self.T[annotator], dim=-1)
