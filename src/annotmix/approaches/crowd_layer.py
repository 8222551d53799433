"""crowd-layer: one linear layer per annotator behind the classifier.

The matrix W_m of annotator m is unconstrained and starts as the identity:

    p_annot = softmax(p W_m),   loss = mean cross-entropy of the labels

Rodrigues, Pereira: Deep Learning from Crowds. AAAI 2018.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.approaches.base import Approach, Batch
from annotmix.networks import Classifier
from annotmix.networks.losses import adapt, label_mean


class CrowdLayer(Approach):
    """One linear layer per annotator turns class probabilities into label probabilities."""

    name = "crowd-layer"
    perf = "agreement"

    def __init__(self, classifier: Classifier, n_annotators: int):
        super().__init__(classifier, n_annotators)
        self.W = nn.Parameter(torch.eye(classifier.n_classes).repeat(n_annotators, 1, 1))

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Mean cross-entropy of the labels."""
        p = self.classifier.log_proba(self.classifier.features(batch.x)).exp()
        logits = adapt(p[batch.item], self.W[batch.annotator])
        return label_mean(F.cross_entropy(logits, batch.label, reduction="none"), batch.weight)

    def annotator_log_proba(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log softmax(p W_m), shape (n, C)."""
        return F.log_softmax(adapt(self.classifier.log_proba(h).exp(), self.W[annotator]), dim=-1)

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log softmax(e_c W_m), shape (n, C, C): the labels of an item that is surely of class c."""
        return F.log_softmax(self.W[annotator], dim=-1)
