"""Makes the scikit-learn classifier of an approach.

Shared parameters come from `MultiAnnotatorClassifier`, the approach's own from the keyword-only arguments of
its `__init__`. So an approach that is added is an estimator at once, with explicit and documented parameters.
"""

from __future__ import annotations

import inspect
from typing import Any

from annotmix._common.words import some
from annotmix.approaches import Approach, get_approach
from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier

_MADE: dict[type[Approach], type[MultiAnnotatorClassifier]] = {}


def classifier_class(approach: type[Approach]) -> type[MultiAnnotatorClassifier]:
    """The estimator of an approach, for example `AnnotMixClassifier` of annot-mix."""
    if approach in _MADE:
        return _MADE[approach]
    name = class_name(approach.name)
    shared = inspect.signature(MultiAnnotatorClassifier.__init__).parameters
    own = approach.hyper_parameters()
    at = list(shared).index("max_epochs")  # architecture, then the approach's own, then training
    order = [*list(shared)[:at], *own, *list(shared)[at:]]
    signature = inspect.Signature([own.get(key) or shared[key] for key in order])

    def __init__(self: MultiAnnotatorClassifier, **params: Any) -> None:
        for key, parameter in signature.parameters.items():
            if key != "self":
                setattr(self, key, params.pop(key, parameter.default))
        if params:
            raise TypeError(f"{name} has no parameter {some(list(params))}. It has {', '.join(order[1:])}.")

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    _MADE[approach] = type(
        name,
        (MultiAnnotatorClassifier,),
        {
            "__init__": __init__,
            "__doc__": _doc(approach),
            "__module__": "annotmix.estimators.classifiers",  # where pickle finds it
            "_approach": approach,
        },
    )
    return _MADE[approach]


def class_name(name: str) -> str:
    """The name of an approach's estimator class: "annot-mix" is `AnnotMixClassifier`."""
    return "".join(part.capitalize() for part in name.split("-")) + "Classifier"


def make_classifier(approach: str, **params: Any) -> MultiAnnotatorClassifier:
    """The estimator of an approach by the paper's name, for example "annot-mix"."""
    return classifier_class(get_approach(approach))(**params)


def _doc(approach: type[Approach]) -> str:
    """The approach's documentation, with the shared parameters after its own."""
    text = inspect.getdoc(approach) or approach.name
    shared = inspect.cleandoc(MultiAnnotatorClassifier.__doc__ or "").split("----------\n", 1)[1]
    if "----------\n" not in text:
        text += "\n\nParameters\n----------\n"
    return f"{text.rstrip()}\n{shared}"
