"""trace-reg: one confusion matrix per annotator, with small traces preferred.

    A_m starts at 6·I − 5,   R = mean_m trace(Π_m),   λ = 0.01

Among all matrices that explain the labels, the annotators' own have the smallest trace.

Tanno, Saeedi, Sankaranarayanan, Alexander, Silberman: Learning From Noisy Labels by Regularized Estimation
of Annotator Confusion. CVPR 2019.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from annotmix.approaches.confusion_table import ConfusionTable, check_weight
from annotmix.networks import Classifier


class TraceReg(ConfusionTable):
    """One confusion matrix per annotator, regularised by its trace.

    Parameters
    ----------
    regularization : float, default=0.01
        Weight λ of the mean trace.
    """

    name = "trace-reg"
    perf = "diagonal"

    def __init__(self, classifier: Classifier, n_annotators: int, *, regularization: float = 0.01):
        super().__init__(classifier, n_annotators, 6 * torch.eye(classifier.n_classes) - 5)
        self.regularization = check_weight(regularization)

    def regulariser(self, log_p: Tensor) -> Tensor:
        """λ mean_m trace(Π_m)."""
        diagonal = torch.diagonal(F.softmax(self.A, dim=-1), dim1=-2, dim2=-1)
        return self.regularization * diagonal.sum() / self.n_annotators
