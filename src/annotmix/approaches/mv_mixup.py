"""mv-mixup: vanilla mixup on the majority vote, ties broken at random."""

from __future__ import annotations

from annotmix.approaches.mv_base import MvBase
from annotmix.approaches.two_stage import TwoStage
from annotmix.networks import Classifier


class MvMixup(MvBase):
    """Trains on the majority vote of the annotators with vanilla mixup.

    Parameters
    ----------
    alpha : float, default=1.0
        λ ~ Beta(alpha, alpha) is the share of the first item in a mix; 0 switches mixing off.
    """

    name = "mv-mixup"

    def __init__(self, classifier: Classifier, n_annotators: int, *, alpha: float = 1.0):
        TwoStage.__init__(self, classifier, n_annotators, alpha=alpha)
