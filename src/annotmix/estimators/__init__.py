"""scikit-learn estimators: classifiers, the segmenter, suggestions, saving and loading.

`annotmix.estimators.classifiers` has one class per approach. Names are imported when they are first used, so
that `CrowdClassifier` needs no torch.
"""

from typing import TYPE_CHECKING

from annotmix._common.lazy import lazy

if TYPE_CHECKING:
    from annotmix.estimators.classifier_factory import class_name, classifier_class, make_classifier
    from annotmix.estimators.crowd import CrowdClassifier
    from annotmix.estimators.loading import load
    from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
    from annotmix.estimators.segmentation import AnnotMixSegmenter
    from annotmix.estimators.suggestion import suggest

__all__ = [
    "AnnotMixSegmenter",
    "CrowdClassifier",
    "MultiAnnotatorClassifier",
    "class_name",
    "classifier_class",
    "load",
    "make_classifier",
    "suggest",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "AnnotMixSegmenter": "segmentation",
        "CrowdClassifier": "crowd",
        "MultiAnnotatorClassifier": "multi_annotator",
        "class_name": "classifier_factory",
        "classifier_class": "classifier_factory",
        "load": "loading",
        "make_classifier": "classifier_factory",
        "suggest": "suggestion",
    },
)
