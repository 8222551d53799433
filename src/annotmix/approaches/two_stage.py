"""Two stages: the labels of each item are aggregated into one, then a classifier is trained on it.

    loss = −(1/B) Σ_n log p_ŷn(x_n), or with vanilla mixup, λ ~ Beta(α, α) per item,
    x̃ = λ x_n + (1−λ) x_n̂,  loss = −(1/B) Σ_n [λ log p_ŷn(x̃) + (1−λ) log p_ŷn̂(x̃)]

There is no annotator model.

Zhang, Cisse, Dauphin, Lopez-Paz: mixup: Beyond Empirical Risk Minimization. ICLR 2018.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from annotmix.approaches.base import Approach, Batch
from annotmix.networks import Classifier, mixup
from annotmix.networks.losses import label_mean, mixed_nll


class TwoStage(Approach):
    """Cross-entropy on one label per item; subclasses say in `prepare` which label.

    Parameters
    ----------
    alpha : float
        λ ~ Beta(alpha, alpha) of vanilla mixup; 0 switches mixing off.
    """

    def __init__(self, classifier: Classifier, n_annotators: int, *, alpha: float = 0.0):
        super().__init__(classifier, n_annotators)
        if not alpha >= 0:
            raise ValueError(f"alpha must be 0 (no mixing) or positive, found {alpha}.")
        self.alpha = alpha

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Mean cross-entropy, with mixup where alpha is positive."""
        x, label, weight = batch.x[batch.item], batch.label, batch.weight
        if self.alpha == 0:
            log_p = self.classifier.log_proba(self.classifier.features(x))
            return label_mean(F.nll_loss(log_p, label, reduction="none"), weight)
        partner = torch.from_numpy(mixup.pair_across(len(label), rng)).to(label.device)
        lam = mixup.coefficients(len(label), self.alpha, rng).to(label.device)
        log_p = self.classifier.log_proba(self.classifier.features(mixup.mix(x, partner, lam)))
        labels = torch.stack([label, label[partner]], dim=1)
        weights = None if weight is None else torch.stack([weight, weight[partner]], dim=1)
        return mixed_nll(log_p.gather(1, labels), lam, weights)
