"""Saving and loading of `CrowdClassifier`: what it learnt from, so that the estimator can be fitted again.

scikit-learn's estimators are saved as pickles, which run code when they are read. Items, labels and class
probabilities are enough to fit the same estimator once more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import annotmix
from annotmix._common.schema import decode
from annotmix._common.seeds import seed_of
from annotmix.estimators.crowd import CrowdClassifier, seeded
from annotmix.estimators.learnt_items import UNSEEN_NAME, LearntItems
from annotmix.estimators.model_facts import CROWD, CrowdFacts, names_or_none, names_to_json
from annotmix.training.tensor_files import save_model
from annotmix.training.tensor_layout import Layout


def save(model: CrowdClassifier, folder: str | os.PathLike[str]) -> None:
    """Write a fitted CrowdClassifier into a folder, as safetensors and JSON."""
    X = model._X
    if not isinstance(model.estimator, str) or not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
        raise TypeError(
            'Only CrowdClassifier("logistic") and ("boosting") on an array of numbers can be saved, found '
            f"estimator={model.estimator!r} on {type(X).__name__}. joblib or skops save any other."
        )
    annotations = model.posterior_.annotations
    learnt = LearntItems(annotations, model.posterior_.answer.gold, np.zeros(len(X), np.int64))
    arrays = learnt.to_arrays() | {"X": X, UNSEEN_NAME: model.unseen_proba_}
    facts = {
        "approach": CROWD,
        "annotmix": annotmix.__version__,
        "estimator": model.estimator,
        "chosen": model._chosen,
        "cv": int(model.cv),
        "rounds": int(model.rounds),
        "n_rounds": model.n_rounds_,
        "seed": model._seed,
        "classes": names_to_json(model.classes_),
        "annotators": names_to_json(model.annotators_),
        "items": names_or_none(annotations.items),
    }
    save_model(folder, arrays, facts)


def restorer(facts: dict[str, Any], layout: Layout) -> Callable[[dict[str, NDArray[Any]]], CrowdClassifier]:
    """A function that makes the classifier of its arrays, whose layout is compared with the facts here."""
    saved = decode(facts, CrowdFacts)
    rest = dict(layout)
    n_items = LearntItems.require_layout(rest, None if saved.items is None else len(saved.items.values))
    shapes = {name: entry.shape for name, entry in rest.items()}
    width = shapes.get("X", [])[1:]
    if (
        shapes != {"X": [n_items, *width], UNSEEN_NAME: [n_items, len(saved.classes.values)]}
        or len(width) != 1
    ):
        raise ValueError("the tensors of items and class probabilities do not fit the labels.")
    return partial(_restore, saved)


def _restore(saved: CrowdFacts, arrays: dict[str, NDArray[Any]]) -> CrowdClassifier:
    """The classifier that `save` wrote, its estimator fitted again."""
    seed = seed_of(saved.seed)
    model = CrowdClassifier(
        saved.estimator, cv=saved.cv, rounds=saved.rounds, random_state=seed, progress=False
    )
    model.classes_, model.annotators_ = saved.classes.to_array(), saved.annotators.to_array()
    items = None if saved.items is None else saved.items.to_array()
    learnt = LearntItems.from_arrays(arrays, items, model.annotators_, model.classes_)
    if learnt is None:
        raise ValueError("the labels are absent.")
    model.unseen_proba_, model.n_rounds_ = arrays[UNSEEN_NAME], saved.n_rounds
    model._seed, model._chosen = seed, saved.chosen
    model.posterior_ = learnt.posterior(model.unseen_proba_)
    X = arrays["X"]
    model._finish(X, seeded(model._estimators(X)[model._chosen], seed))
    return model
