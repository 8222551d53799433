"""Saving and loading of `CrowdClassifier`: what it learnt from, so that the estimator can be fitted again.

scikit-learn's estimators are saved as pickles, which run code when they are read. Items, labels and class
probabilities are enough to fit the same estimator once more.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

import annotmix
from annotmix._common.seeds import seed_of
from annotmix.estimators.crowd import CrowdClassifier, seeded
from annotmix.estimators.learnt_items import LearntItems
from annotmix.estimators.persistence import CROWD, names_from_json, names_or_none, names_to_json
from annotmix.labels.evidence import Evidence
from annotmix.labels.posterior import Posterior
from annotmix.training.tensor_files import save_model


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
    tensors = learnt.to_tensors() | {
        "X": torch.tensor(X),
        "unseen": torch.tensor(model.unseen_proba_),
    }
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
    save_model(folder, tensors, facts)


def restore(tensors: dict[str, Tensor], facts: dict[str, Any]) -> CrowdClassifier:
    """The classifier that `save` wrote, its estimator fitted again."""
    if facts["estimator"] not in ("logistic", "boosting"):
        raise ValueError(f"estimator must be logistic or boosting, found {facts['estimator']!r:.60}.")
    seed = seed_of(facts["seed"])
    model = CrowdClassifier(
        facts["estimator"], cv=facts["cv"], rounds=facts["rounds"], random_state=seed, progress=False
    )
    model.classes_, model.annotators_ = (names_from_json(facts[key]) for key in ("classes", "annotators"))
    items = None if facts["items"] is None else names_from_json(facts["items"])
    learnt = LearntItems.from_tensors(tensors, items, model.annotators_, model.classes_)
    if learnt is None:
        raise ValueError("the labels are absent.")
    model.unseen_proba_, model.n_rounds_ = tensors["unseen"].numpy(), facts["n_rounds"]
    model._seed, model._chosen = seed, facts["chosen"]
    answer = Evidence(learnt.annotations, learnt.gold).combine(model.unseen_proba_)
    model.posterior_ = Posterior(learnt.annotations, answer)
    X = tensors["X"].numpy()
    model._finish(X, seeded(model._estimators(X)[model._chosen], seed))
    return model
