"""The classifiers, one per approach, such as `AnnotMixClassifier`; each is made when it is first used.

Type checkers and editors read `classifiers.pyi`, which `tools/write_stubs.py` writes.
"""

from typing import Any

from annotmix.approaches import get_approach, list_approaches
from annotmix.estimators.classifier_factory import class_name, classifier_class


def __getattr__(name: str) -> Any:
    for approach in list_approaches():
        if class_name(approach) == name:
            return classifier_class(get_approach(approach))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [class_name(approach) for approach in list_approaches()]
