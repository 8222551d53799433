"""scikit-learn estimators: classifiers, the segmenter, suggestions, saving and loading.

`annotmix.estimators.classifiers` has one class per approach. Names are imported when they are first used, so
that `CrowdClassifier` needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from annotmix.estimators.classifier_factory import class_name, classifier_class, make_classifier
    from annotmix.estimators.crowd import CrowdClassifier
    from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
    from annotmix.estimators.persistence import load
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

_HOMES = {
    "AnnotMixSegmenter": "segmentation",
    "CrowdClassifier": "crowd",
    "MultiAnnotatorClassifier": "multi_annotator",
    "class_name": "classifier_factory",
    "classifier_class": "classifier_factory",
    "load": "persistence",
    "make_classifier": "classifier_factory",
    "suggest": "suggestion",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
