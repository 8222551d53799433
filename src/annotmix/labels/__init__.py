"""Labels, and methods that need nothing but labels; torch is never imported here."""

from annotmix.labels.aggregation import aggregate, majority_vote
from annotmix.labels.annotations import Annotations
from annotmix.labels.dawid_skene import dawid_skene
from annotmix.labels.heldout import hold_out
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.posterior import Posterior, posterior
from annotmix.labels.set_posterior import MultiLabelPosterior

__all__ = [
    "Annotations",
    "LabelSets",
    "MultiLabelPosterior",
    "Posterior",
    "aggregate",
    "dawid_skene",
    "hold_out",
    "majority_vote",
    "posterior",
]
