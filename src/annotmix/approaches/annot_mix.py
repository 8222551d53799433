"""annot-mix: marginal likelihood of mixed (instance, annotator, label) triples.

Classification model p = softmax(W h + b) on features h = f(x); annotator model Π(h, a), a confusion matrix
for every instance and annotator, which sees h without sending a gradient back. For triples i, î and
λ ~ Beta(α, α):

    x̃ = λ x_i + (1−λ) x_î,   ã = λ a_i + (1−λ) a_î,   z̃ = λ z_i + (1−λ) z_î
    loss = −(1/P) Σ Σ_k z̃_k log Σ_c p_c(x̃) Π_ck(h(x̃), ã)

Herde, Lührs, Huseljic, Sick: Annot-Mix: Learning with Noisy Class Labels from Multiple Annotators via a
Mixup Extension. ECAI 2024, pp. 2910–2918. doi:10.3233/FAIA240829
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from annotmix import mixup
from annotmix.approaches.base import Approach, Batch
from annotmix.losses import marginal_nll
from annotmix.networks import AnnotatorNetwork, Classifier


class AnnotMix(Approach):
    """Two networks, trained on mixes of (instance, annotator, label) triples.

    Parameters
    ----------
    alpha : float, default=1.0
        λ ~ Beta(alpha, alpha) is the share of the first triple in a mix; 0 switches mixing off.
    eta : float, default=0.9
        Chance of a right label that the annotators start with; between 1/C and 1.
    pairing : {"across", "within"}, default="across"
        Mix with any triple of the batch, or only with triples of the same instance (the paper's ablation).
    coefficient : {"triple", "batch"}, default="triple"
        Draw λ for every triple, or one for the whole batch (the paper's listing).
    """

    name = "annot-mix"
    perf = "diagonal"
    mixes = True

    def __init__(
        self,
        classifier: Classifier,
        n_annotators: int,
        *,
        alpha: float = 1.0,
        eta: float = 0.9,
        pairing: Literal["across", "within"] = "across",
        coefficient: Literal["triple", "batch"] = "triple",
    ):
        super().__init__(classifier, n_annotators)
        if not alpha >= 0:
            raise ValueError(f"alpha must be 0 (no mixing) or positive, found {alpha}.")
        if pairing not in ("across", "within"):
            raise ValueError(f'pairing must be "across" or "within", found {pairing!r}.')
        if coefficient not in ("triple", "batch"):
            raise ValueError(f'coefficient must be "triple" or "batch", found {coefficient!r}.')
        self.alpha, self.pairing, self.coefficient = alpha, pairing, coefficient
        self.annotator_model = AnnotatorNetwork(classifier.n_hidden, n_annotators, classifier.n_classes, eta)

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Mean negative log-likelihood of the mixed triples."""
        x, e_a = batch.x[batch.item], self.annotator_model.embed_annotator(batch.annotator)
        own = batch.own_labels
        partner_label = lam = None
        if self.alpha > 0:
            partner, lam = self._draw(batch.item, rng)
            x, e_a, partner_label, lam = (
                mixup.mix(x, partner, lam),
                mixup.mix(e_a, partner, lam),
                batch.label[partner][own],
                lam[own],
            )
        h = self.classifier.features(x[own])
        logits = self.annotator_model(h, e_a[own])
        return marginal_nll(self.classifier.log_proba(h), logits, batch.label[own], partner_label, lam)

    def _draw(self, item: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Partners and λ of the batch's triples, shapes (P,) and (P,)."""
        n = len(item)
        if self.pairing == "across":
            partner = mixup.pair_across(n, rng)
        else:
            partner = mixup.pair_within(item.cpu().numpy(), rng)
        lam = mixup.coefficients(n, self.alpha, rng, per_batch=self.coefficient == "batch")
        return torch.from_numpy(partner).to(item.device), lam.to(item.device)

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log Π(h, a), shape (n, C, C)."""
        logits = self.annotator_model(h, self.annotator_model.embed_annotator(annotator))
        return F.log_softmax(logits.float(), dim=-1)
