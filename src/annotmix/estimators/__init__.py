"""scikit-learn estimators: one classifier per approach, the segmenter, suggestions, saving and loading."""

from __future__ import annotations

from typing import Any

from annotmix.estimators import classes
from annotmix.estimators.classes import classifier_class, make_classifier
from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
from annotmix.estimators.persistence import load
from annotmix.estimators.segmentation import AnnotMixSegmenter
from annotmix.estimators.suggestion import suggest


def __getattr__(name: str) -> Any:
    return getattr(classes, name)


__all__ = [
    "AnnotMixSegmenter",
    "MultiAnnotatorClassifier",
    "classifier_class",
    "load",
    "make_classifier",
    "suggest",
]
