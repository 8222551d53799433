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
from annotmix.estimators.crowd_sets import finish
from annotmix.estimators.learnt_items import (
    MEMBERS,
    UNSEEN_NAME,
    LearntItems,
    require_members,
    restore_sets,
)
from annotmix.estimators.model_facts import CROWD, CrowdFacts, names_or_none, names_to_json
from annotmix.labels.set_evidence import evidence_by_class
from annotmix.labels.set_posterior import ClassPosterior, MultiLabelPosterior, two_sided
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
    several, posterior = model._learnt_sets, model.posterior_
    annotations = posterior.label_sets.answers if several else posterior.annotations
    gold = model._gold if several else posterior.answer.gold
    learnt = LearntItems(annotations, gold, np.zeros(len(X), np.int64))
    arrays = learnt.to_arrays() | {"X": X, UNSEEN_NAME: model.unseen_proba_}
    facts = {
        "approach": CROWD,
        "annotmix": annotmix.__version__,
        "estimator": model.estimator,
        "chosen": 0 if several else model._chosen,
        "cv": int(model.cv),
        "rounds": int(model.rounds),
        "n_rounds": model.n_rounds_,
        "seed": model._seed,
        "classes": names_to_json(model.classes_),
        "annotators": names_to_json(model.annotators_),
        "items": names_or_none(annotations.items),
    }
    if several:
        arrays[MEMBERS] = posterior.label_sets.members
        facts["by_class"] = list(zip(model._chosen_by_class, model._rounds_by_class, strict=True))
    save_model(folder, arrays, facts)


def restorer(facts: dict[str, Any], layout: Layout) -> Callable[[dict[str, NDArray[Any]]], CrowdClassifier]:
    """A function that makes the classifier of its arrays, whose layout is compared with the facts here."""
    saved = decode(facts, CrowdFacts)
    rest = dict(layout)
    n_items = LearntItems.require_layout(rest, None if saved.items is None else len(saved.items.values))
    shapes = {name: entry.shape for name, entry in rest.items()}
    width = shapes.get("X", [])[1:]
    expected = {"X": [n_items, *width], UNSEEN_NAME: [n_items, len(saved.classes.values)]}
    if saved.by_class is not None:
        require_members(rest, len(saved.classes.values))
        expected[MEMBERS] = shapes[MEMBERS]
        if len(saved.by_class) != len(saved.classes.values):
            raise ValueError(f"by_class is about {len(saved.by_class)} classes.")
    if shapes != expected or len(width) != 1:
        raise ValueError("the tensors of items and class probabilities do not fit the labels.")
    return partial(_restore, saved)


def _restore(saved: CrowdFacts, arrays: dict[str, NDArray[Any]]) -> CrowdClassifier:
    """The classifier that `save` wrote, its estimator fitted again."""
    seed = seed_of(saved.seed)
    model = CrowdClassifier(
        saved.estimator, cv=saved.cv, rounds=saved.rounds, random_state=seed, progress=False
    )
    model._seed = seed
    model.classes_, model.annotators_ = saved.classes.to_array(), saved.annotators.to_array()
    items = None if saved.items is None else saved.items.to_array()
    model._learnt_sets = saved.by_class is not None
    if saved.by_class is not None:
        return _restore_sets(model, saved.by_class, arrays, items)
    learnt = LearntItems.from_arrays(arrays, items, model.annotators_, model.classes_)
    if learnt is None:
        raise ValueError("the labels are absent.")
    model.unseen_proba_, model.n_rounds_ = arrays[UNSEEN_NAME], saved.n_rounds
    model._chosen = saved.chosen
    model.posterior_ = learnt.posterior(model.unseen_proba_)
    X = arrays["X"]
    model._finish(X, seeded(model._estimators(X)[model._chosen], seed))
    return model


def _restore_sets(
    model: CrowdClassifier, by_class: list[tuple[int, int]], arrays: dict[str, NDArray[Any]], items: Any
) -> CrowdClassifier:
    """A classifier of label sets, its estimators fitted again."""
    sets, gold, _ = restore_sets(arrays, items, model.annotators_, model.classes_)
    model.unseen_proba_ = arrays[UNSEEN_NAME]
    model._chosen_by_class, model._rounds_by_class = (list(part) for part in zip(*by_class, strict=True))
    made = [
        ClassPosterior(evidence.annotations, evidence.combine(two_sided(p)))
        for evidence, p in zip(
            evidence_by_class(sets, (gold[0], sets.members[gold[1]])), model.unseen_proba_.T, strict=True
        )
    ]
    finish(model, arrays["X"], MultiLabelPosterior(sets, tuple(made)), gold)
    return model
