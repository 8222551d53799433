"""geo-reg-f: one confusion matrix per annotator, and class probabilities of large volume.

    A_m starts at I,   R = −log det(QᵀQ),  Q = p of the batch's items (B×C),   λ = 0.001

R is left out of a step when it is not finite or above 100, and always when C > B (then QᵀQ is singular).

Ibrahim, Nguyen, Fu: Deep Learning From Crowdsourced Labels: Coupled Cross-Entropy Minimization,
Identifiability, and Regularization. ICLR 2023.
"""

from __future__ import annotations

import torch
from torch import Tensor

from annotmix.approaches.confusion_table import ConfusionTable, check_weight
from annotmix.networks import Classifier
from annotmix.networks.losses import volume_penalty


class GeoRegF(ConfusionTable):
    """One confusion matrix per annotator, regularised by the volume of the class probabilities.

    Parameters
    ----------
    regularization : float, default=0.001
        Weight λ of the volume term.
    """

    name = "geo-reg-f"
    perf = "diagonal"

    def __init__(self, classifier: Classifier, n_annotators: int, *, regularization: float = 1e-3):
        super().__init__(classifier, n_annotators, torch.eye(classifier.n_classes))
        self.regularization = check_weight(regularization)

    def regulariser(self, log_p: Tensor) -> Tensor:
        """−λ log det(QᵀQ)."""
        return self.regularization * volume_penalty(log_p.exp())
