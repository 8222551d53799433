"""Labels, and methods that need nothing but labels; torch is never imported here."""

from annotmix.labels.aggregation import aggregate, majority_vote
from annotmix.labels.agreement import Agreement, agreement
from annotmix.labels.annotations import Annotations
from annotmix.labels.dawid_skene import dawid_skene
from annotmix.labels.group_opinions import GroupOpinions, compare_groups
from annotmix.labels.heldout import hold_out
from annotmix.labels.kind_comparison import KindComparison, compare_kinds
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.posterior import Posterior, posterior
from annotmix.labels.replacement import AlternativeTest, alternative_test
from annotmix.labels.set_posterior import MultiLabelPosterior

__all__ = [
    "Agreement",
    "AlternativeTest",
    "Annotations",
    "GroupOpinions",
    "KindComparison",
    "LabelSets",
    "MultiLabelPosterior",
    "Posterior",
    "aggregate",
    "agreement",
    "alternative_test",
    "compare_groups",
    "compare_kinds",
    "dawid_skene",
    "hold_out",
    "majority_vote",
    "posterior",
]
