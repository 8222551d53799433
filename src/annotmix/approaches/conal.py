"""conal: each label passes a noise layer that is common to all annotators, or the annotator's own.

Common W_0 and individual W_m (C×C) start at 2·I. With v = normalise(V h), u_m an embedding of the annotator,
normalised, and ω = sigmoid(v·u_m), the chance of the common layer:

    ℓ = ω (p W_0) + (1−ω) (p W_m),   p_annot = softmax(ℓ)
    loss = mean cross-entropy − λ Σ_m ‖W_m − W_0‖_F,   λ = 1e-5

Chu, Ma, Wang: Learning from Crowds by Modeling Common Confusions. AAAI 2021.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.approaches.base import Approach, Batch
from annotmix.networks import AnnotatorEmbedding, Classifier
from annotmix.networks.losses import adapt, label_mean


class Conal(Approach):
    """A choice between common and individual noise layers for each item and annotator.

    Parameters
    ----------
    regularization : float, default=1e-5
        Weight λ of the distance between common and individual layers.
    n_dim : int, default=20
        Width of the embeddings of items and annotators.
    published : bool, default=False
        As in the published experiments of annot-mix, where all noise layers kept their start. The
        embeddings then have no effect, and the loss is the cross-entropy of softmax(2 p).
    """

    name = "conal"
    perf = "agreement"

    def __init__(
        self,
        classifier: Classifier,
        n_annotators: int,
        *,
        regularization: float = 1e-5,
        n_dim: int = 20,
        published: bool = False,
    ):
        super().__init__(classifier, n_annotators)
        self.regularization = regularization
        self.embed_instance = nn.Linear(classifier.n_hidden, n_dim)
        self.embed_annotator = AnnotatorEmbedding(n_annotators, n_dim)
        self.common = nn.Parameter(2 * torch.eye(classifier.n_classes))
        self.individual = nn.Parameter(2 * torch.eye(classifier.n_classes).repeat(n_annotators, 1, 1))
        if published:
            for part in (self.embed_instance, self.embed_annotator, self.common, self.individual):
                part.requires_grad_(False)

    def _share(self, h: Tensor, annotator: Tensor) -> Tensor:
        """ω, shape (n, 1)."""
        v = F.normalize(self.embed_instance(h), dim=-1)
        u = F.normalize(self.embed_annotator(annotator), dim=-1)
        return torch.sigmoid((v * u).sum(dim=-1, keepdim=True))

    def _logits(self, p: Tensor, h: Tensor, annotator: Tensor) -> Tensor:
        """ℓ, shape (n, C)."""
        share = self._share(h, annotator)
        common, individual = p @ self.common, adapt(p, self.individual[annotator])
        logits: Tensor = share * common + (1 - share) * individual
        return logits

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Mean cross-entropy of the labels minus the weighted distance of the layers."""
        h = self.classifier.features(batch.x)
        p = self.classifier.log_proba(h).exp()
        logits = self._logits(p[batch.item], h[batch.item], batch.annotator)
        distance = torch.linalg.vector_norm(self.individual - self.common, dim=(1, 2)).sum()
        nll = label_mean(F.cross_entropy(logits, batch.label, reduction="none"), batch.weight)
        result: Tensor = nll - self.regularization * distance
        return result

    def annotator_log_proba(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log softmax(ℓ), shape (n, C)."""
        return F.log_softmax(self._logits(self.classifier.log_proba(h).exp(), h, annotator), dim=-1)

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log softmax(ℓ) for p = e_c, shape (n, C, C): the labels of an item surely of class c."""
        share = self._share(h, annotator).unsqueeze(-1)
        return F.log_softmax(share * self.common + (1 - share) * self.individual[annotator], dim=-1)
