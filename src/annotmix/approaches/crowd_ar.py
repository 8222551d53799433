"""crowd-ar: a label counts by its reliability.

Expertise E ∈ R^(M×C), a layer W_m per annotator that starts as I, and the difficulty of an item
d = σ(Linear(σ(Linear(h)))), which sends no gradient into h, give the reliability r of a label:

    r = σ(w·[(σ(E_m) − d) ⊙ p] + b),  w ≥ 0
    s = r·onehot(z) + (1−r)/C,   p_annot = softmax(p W_m)
    loss = (1/P) Σ [λ CE(s, p_annot) + (1−λ) BCE(r, 1[argmax p = z])],   λ = 0.9

p_perf is r itself.

Cao, Chen, Huang, Shen, Huang: Learning from Crowds with Annotation Reliability. SIGIR 2023.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.approaches.base import Approach, Batch
from annotmix.networks import Classifier
from annotmix.networks.losses import adapt, label_mean


class CrowdAr(Approach):
    """Labels softened by their estimated reliability.

    Parameters
    ----------
    balance : float, default=0.9
        Share λ of the cross-entropy in the loss; the rest is for the reliability.
    n_dim : int, default=128
        Width of the hidden layer that estimates difficulty.
    published : bool, default=False
        As in the published experiments of annot-mix, where the expertise and all layers W_m kept their
        start.
    """

    name = "crowd-ar"
    perf = "reliability"

    def __init__(
        self,
        classifier: Classifier,
        n_annotators: int,
        *,
        balance: float = 0.9,
        n_dim: int = 128,
        published: bool = False,
    ):
        super().__init__(classifier, n_annotators)
        if not 0 <= balance <= 1:
            raise ValueError(f"balance must lie in [0, 1], found {balance}.")
        C = classifier.n_classes
        self.balance = balance
        self.expertise = nn.Parameter(nn.init.xavier_normal_(torch.empty(n_annotators, C)))
        self.W = nn.Parameter(torch.eye(C).repeat(n_annotators, 1, 1))
        self.difficulty = nn.Sequential(
            nn.Linear(classifier.n_hidden, n_dim), nn.Sigmoid(), nn.Linear(n_dim, C), nn.Sigmoid()
        )
        self.reliability = nn.Linear(C, 1)
        if published:
            self.expertise.requires_grad_(False)
            self.W.requires_grad_(False)

    def _reliability_logit(self, p: Tensor, h: Tensor, annotator: Tensor) -> Tensor:
        """The logit of r, shape (n,)."""
        skill = torch.sigmoid(self.expertise[annotator]) - self.difficulty(h.detach())
        logit: Tensor = self.reliability(skill * p)
        return logit.squeeze(-1)

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Cross-entropy with softened labels, and of the reliability with the classifier's own prediction."""
        h = self.classifier.features(batch.x)
        p = self.classifier.log_proba(h).exp()
        h, p = h[batch.item], p[batch.item]
        logit = self._reliability_logit(p, h, batch.annotator)
        r = torch.sigmoid(logit)
        log_annot = F.log_softmax(adapt(p, self.W[batch.annotator]), dim=-1)
        of_label = log_annot.gather(1, batch.label.unsqueeze(1)).squeeze(1)
        cross_entropy = -label_mean(r * of_label + (1 - r) * log_annot.mean(dim=-1), batch.weight)
        agrees = (p.argmax(dim=-1) == batch.label).to(logit.dtype)
        reliability = F.binary_cross_entropy_with_logits(logit, agrees, reduction="none")
        return self.balance * cross_entropy + (1 - self.balance) * label_mean(reliability, batch.weight)

    def after_step(self) -> None:
        """Keep w ≥ 0: more skill never makes a label less reliable."""
        with torch.no_grad():
            self.reliability.weight.clamp_(min=0)

    def annotator_log_proba(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log softmax(p W_m), shape (n, C)."""
        return F.log_softmax(adapt(self.classifier.log_proba(h).exp(), self.W[annotator]), dim=-1)

    def annotator_perf(self, h: Tensor, annotator: Tensor) -> Tensor:
        """The reliability r, shape (n,)."""
        return torch.sigmoid(self._reliability_logit(self.classifier.log_proba(h).exp(), h, annotator))

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log softmax(e_c W_m), shape (n, C, C): the labels of an item that is surely of class c."""
        return F.log_softmax(self.W[annotator], dim=-1)
