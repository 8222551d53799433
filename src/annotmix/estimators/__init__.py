"""scikit-learn estimators: classifiers, the segmenter, suggestions, saving and loading.

`annotmix.estimators.classifiers` has one class per approach.
"""

from annotmix.estimators.classifier_factory import class_name, classifier_class, make_classifier
from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
from annotmix.estimators.persistence import load
from annotmix.estimators.segmentation import AnnotMixSegmenter
from annotmix.estimators.suggestion import suggest

__all__ = [
    "AnnotMixSegmenter",
    "MultiAnnotatorClassifier",
    "class_name",
    "classifier_class",
    "load",
    "make_classifier",
    "suggest",
]
