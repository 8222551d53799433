"""Labels, and methods that need nothing but labels; torch is never imported here."""

from annotmix.labels.aggregation import aggregate, dawid_skene, majority_vote
from annotmix.labels.annotations import Annotations
from annotmix.labels.heldout import hold_out
from annotmix.labels.posterior import Posterior, posterior

__all__ = [
    "Annotations",
    "Posterior",
    "aggregate",
    "dawid_skene",
    "hold_out",
    "majority_vote",
    "posterior",
]
