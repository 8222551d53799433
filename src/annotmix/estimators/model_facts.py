"""The facts that a saved model has besides its tensors, as `model.json` declares them."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from annotmix._common.schema import (
    Count,
    Positive,
    Scalar,
    Strict,
    Value,
    require_equal_lengths,
    require_unique,
)
from annotmix.encoders.saved import SavedEncoder
from annotmix.estimators.preparation import SavedPreparation

#: The approach that a saved `CrowdClassifier` names.
CROWD = "crowd-classifier"
_TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str}
#: Layers of a network, and numbers of an item.
MOST_LAYERS, MOST_NUMBERS = 1000, 1 << 28


class SavedNames(Strict):
    """Names of items, annotators or classes, which keep their type."""

    type: Literal["int", "float", "bool", "str"]
    values: list[Scalar]
    object: bool

    def __post_init__(self) -> None:
        kind = _TYPES[self.type]
        if any(type(value) is not kind for value in self.values):
            raise ValueError(f"values must be a list of {self.type}")
        require_unique("values", self.values)

    def to_array(self) -> NDArray[Any]:
        """The inverse of `names_to_json`."""
        if self.object:
            names = np.empty(len(self.values), dtype=object)
            names[:] = self.values
            return names
        names = np.array(self.values, dtype=None if self.values else _TYPES[self.type])
        if names.dtype == object:
            raise ValueError("an integer among the names is too large.")
        return names


def names_to_json(names: NDArray[Any]) -> dict[str, Any]:
    """Names of items, annotators or classes as JSON; they keep their type."""
    values = names.tolist()
    kinds = {type(value).__name__ for value in values} or {"str"}
    if len(kinds) > 1 or not kinds <= _TYPES.keys():
        raise TypeError(
            f"Only names that are all integers, floats, booleans or text can be saved, "
            f"found {', '.join(sorted(kinds))}."
        )
    return {"type": kinds.pop(), "values": values, "object": names.dtype == object}


def names_or_none(names: NDArray[Any]) -> dict[str, Any] | None:
    """Names as JSON; None for names of a kind that cannot be saved, which are numbered after loading."""
    try:
        return names_to_json(names)
    except TypeError:
        return None


class SavedNetwork(Strict):
    """The parameters that "auto" chose; a segmenter has no `hidden`."""

    hidden: Annotated[list[Positive], msgspec.Meta(max_length=MOST_LAYERS)] | None
    dropout: float | None
    weight_decay: float | None


class ModelFacts(Strict):
    """The facts about a classifier or segmenter with a network."""

    approach: str
    annotmix: str
    params: dict[str, Value]
    encoder: SavedEncoder | None
    network: SavedNetwork
    shape: Annotated[list[Positive], msgspec.Meta(min_length=1, max_length=8)]
    backbone_class: str | None
    classes: SavedNames
    annotators: SavedNames
    labels_per_annotator: list[Count]
    annotator_features: SavedPreparation | None
    n_modelled: Positive
    feature_names: list[str]
    history: dict[str, list[int | float | None]]
    best_epoch: Count | None
    seed: Count
    items: SavedNames | None = None

    def __post_init__(self) -> None:
        if not self.classes.values or not self.annotators.values:
            raise ValueError("classes and annotators must not be empty")
        if math.prod(self.shape) > MOST_NUMBERS:
            raise ValueError(f"shape is that of an item of more than {MOST_NUMBERS} numbers")
        require_equal_lengths(
            annotators=self.annotators.values, labels_per_annotator=self.labels_per_annotator
        )
        # gold may be one more annotator, and approaches that aggregate the labels first have one alone
        if self.n_modelled > len(self.annotators.values) + 1:
            raise ValueError(f"n_modelled is {self.n_modelled} with {len(self.annotators.values)} annotators")
        if self.feature_names and len(self.feature_names) != self.shape[0]:
            raise ValueError(f"{len(self.feature_names)} feature_names of {self.shape[0]} features")
        if not self.history.get("epoch"):
            raise ValueError("history has no epoch")
        require_equal_lengths(**self.history)


class CrowdFacts(Strict):
    """The facts about a `CrowdClassifier`."""

    approach: str
    annotmix: str
    estimator: Literal["logistic", "boosting"]
    chosen: Count
    cv: Annotated[int, msgspec.Meta(ge=2, le=2**31)]
    rounds: Annotated[int, msgspec.Meta(ge=1, le=2**31)]
    n_rounds: Count
    seed: Count
    classes: SavedNames
    annotators: SavedNames
    items: SavedNames | None
    #: of label sets: the estimator chosen for each class, and its rounds
    by_class: list[tuple[Count, Count]] | None = None
