"""annotmix: learn a classifier from the noisy class labels of many annotators.

Everything here is imported when it is first used, so that `import annotmix` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

#: Public name → module that holds it.
_HOMES = {
    "AnnotMixSegmenter": "annotmix.estimators",
    "Annotations": "annotmix.labels",
    "aggregate": "annotmix.labels",
    "dawid_skene": "annotmix.labels",
    "Approach": "annotmix.approaches",
    "Batch": "annotmix.approaches",
    "get_approach": "annotmix.approaches",
    "hold_out": "annotmix.labels",
    "ImageEncoder": "annotmix.encoders",
    "TextEncoder": "annotmix.encoders",
    "label_scorer": "annotmix.labels",
    "list_approaches": "annotmix.approaches",
    "list_datasets": "annotmix.datasets",
    "load": "annotmix.estimators",
    "load_dataset": "annotmix.datasets",
    "majority_vote": "annotmix.labels",
    "make_classifier": "annotmix.estimators",
    "register": "annotmix.approaches",
    "suggest": "annotmix.estimators",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name) or ("annotmix.estimators" if name.endswith("Classifier") else None)
    if home is None:
        raise AttributeError(f"module 'annotmix' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*_HOMES, "AnnotMixClassifier", "__version__"])
