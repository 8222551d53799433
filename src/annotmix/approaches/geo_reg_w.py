"""geo-reg-w: one confusion matrix per annotator, together of large volume.

    A_m starts at I,   R = −log det(VᵀV),  V = stacked Π_mᵀ ((M·C)×C),   λ = 0.001

R is left out of a step when it is not finite or above 100.

Ibrahim, Nguyen, Fu: Deep Learning From Crowdsourced Labels: Coupled Cross-Entropy Minimization,
Identifiability, and Regularization. ICLR 2023.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from annotmix.approaches.confusion_table import ConfusionTable, check_weight
from annotmix.networks import Classifier
from annotmix.networks.losses import volume_penalty


class GeoRegW(ConfusionTable):
    """One confusion matrix per annotator, regularised by the volume of all of them.

    Parameters
    ----------
    regularization : float, default=0.001
        Weight λ of the volume term.
    """

    name = "geo-reg-w"
    perf = "diagonal"

    def __init__(self, classifier: Classifier, n_annotators: int, *, regularization: float = 1e-3):
        super().__init__(classifier, n_annotators, torch.eye(classifier.n_classes))
        self.regularization = check_weight(regularization)

    def regulariser(self, log_p: Tensor) -> Tensor:
        """−λ log det(VᵀV)."""
        stacked = F.softmax(self.A, dim=-1).transpose(1, 2).flatten(0, 1)
        return self.regularization * volume_penalty(stacked)
