"""madl: embeddings of items and annotators that interact, and weights for groups of annotators.

With e_a the embedding of the annotator, e_x = Linear(h), both of width 16, s = e_a + e_x and
o_p = Σ_ij W[p,i,j] s_i s_j:

    [e_a, e_x, o] → Linear 128 → BatchNorm → ReLU → Linear 16 → BatchNorm → ReLU(· + e_a) → Linear C² → Π
    s_m = Σ_j exp(−γ ‖e_m − e_j‖²),   w_m = M s_m⁻¹ / Σ_j s_j⁻¹
    loss = (1/P) Σ w_m (−log Σ_c p_c Π_c,z) − log Gamma(γ; 1.25, 0.25)

Annotators who are alike share their weight, so a crowd of copies counts as one.

Herde, Huseljic, Sick: Multi-annotator Deep Learning: A Probabilistic Framework for Classification.
Transactions on Machine Learning Research, 2023.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.approaches.base import Approach, Batch
from annotmix.networks import AnnotatorEmbedding, Classifier
from annotmix.networks.confusion import ConfusionHead
from annotmix.networks.layers import BatchNorm
from annotmix.networks.losses import label_mean

#: Pairs of annotators whose distance is computed at a time.
PAIRS = 1 << 22


class Madl(Approach):
    """Confusion matrices from interacting embeddings; similar annotators share their weight.

    Parameters
    ----------
    eta : float, default=0.8
        Chance of a right label that the annotators start with; between 1/C and 1.
    shape : float, default=1.25
        Shape of the Gamma prior of the bandwidth γ.
    rate : float, default=0.25
        Rate of that prior.
    n_dim : int, default=16
        Width of the embeddings.
    published : bool, default=False
        As in the published experiments of annot-mix, where γ stayed 1.
    """

    name = "madl"
    perf = "diagonal"

    def __init__(
        self,
        classifier: Classifier,
        n_annotators: int,
        *,
        eta: float = 0.8,
        shape: float = 1.25,
        rate: float = 0.25,
        n_dim: int = 16,
        published: bool = False,
    ):
        super().__init__(classifier, n_annotators)
        if not (shape > 0 and rate > 0):
            raise ValueError(f"shape and rate of the Gamma prior must be positive, found {shape}, {rate}.")
        self.prior = (shape, rate)
        self.embed_annotator = AnnotatorEmbedding(n_annotators, n_dim)
        self.embed_instance = nn.Linear(classifier.n_hidden, n_dim)
        self.outer = nn.Parameter(nn.init.xavier_uniform_(torch.empty(n_dim, n_dim, n_dim)))
        self.trunk = nn.Sequential(
            nn.Linear(3 * n_dim, 128), BatchNorm(128), nn.ReLU(), nn.Linear(128, n_dim), BatchNorm(n_dim)
        )
        self.head = ConfusionHead(n_dim, classifier.n_classes, eta)
        self.log_gamma = nn.Parameter(torch.zeros(()))  # the logarithm, so that γ stays positive
        if published:
            self.log_gamma.requires_grad_(False)

    def _state(self, h: Tensor, annotator: Tensor) -> Tensor:
        """The input of the head, shape (n, d)."""
        e_a, e_x = self.embed_annotator(annotator), self.embed_instance(h)
        s = e_a + e_x
        outer = torch.einsum("pij,ni,nj->np", self.outer, s, s)
        return F.relu(self.trunk(torch.cat([e_a, e_x, outer], dim=1)) + e_a)

    def annotator_weights(self) -> Tensor:
        """w, shape (M,): the inverse of how many annotators are alike, with mean one."""
        alike = _similarity(self.embed_annotator.weight.detach(), self.log_gamma.exp())
        return self.n_annotators / alike / (1 / alike).sum()

    def _log_prior(self) -> Tensor:
        """log Gamma(γ; shape, rate), shape ()."""
        shape, rate = self.prior
        constant = shape * math.log(rate) - math.lgamma(shape)
        return constant + (shape - 1) * self.log_gamma - rate * self.log_gamma.exp()

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Weighted mean negative log-likelihood, and the prior of γ."""
        h = self.classifier.features(batch.x)
        log_p = self.classifier.log_proba(h)
        u = self._state(h[batch.item], batch.annotator)
        log_likelihood = self.head.log_likelihood(u, log_p[batch.item], batch.label.unsqueeze(1))
        weighted = self.annotator_weights()[batch.annotator] * log_likelihood.squeeze(1)
        nll = -label_mean(weighted, batch.weight)
        return nll - self._log_prior()

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log Π, shape (n, C, C)."""
        return self.head.log_confusion(self._state(h, annotator))


def _similarity(e: Tensor, gamma: Tensor) -> Tensor:
    """Σ_j exp(−γ ‖e_m − e_j‖²), shape (M,), with its gradient for γ, in blocks of annotators.

    Only γ gets a gradient, so only the sum and its derivative are kept, not the M² pairs.
    """
    step = max(1, PAIRS // len(e))
    with torch.no_grad():
        value, slope = [], []
        for block in torch.split(e, step):
            distance = torch.cdist(block, e).square()
            kernel = torch.exp(-gamma * distance)
            value.append(kernel.sum(dim=1))
            slope.append(-(distance * kernel).sum(dim=1))
    return torch.cat(value) + torch.cat(slope) * (gamma - gamma.detach())
