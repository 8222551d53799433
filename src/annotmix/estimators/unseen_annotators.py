"""Predictions about annotators by name: annotators of the training data, and unseen ones.

An unseen annotator is described by features, if the model was trained with features; otherwise the
prediction is the mean over all known annotators, weighted by their labels. That is not the prediction for a
mean embedding: the network is not linear, so the confusion matrix of a mean embedding is not the mean of the
confusion matrices.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from annotmix._common.words import some
from annotmix.approaches import Approach, get_approach, list_approaches
from annotmix.approaches.base import DescribedAnnotators
from annotmix.estimators.preparation import Preparation, fit_preparation
from annotmix.labels.names import Index
from annotmix.training.loop import randomness

#: Known annotators in a mean; with more annotators, a sample, in proportion to their labels.
POPULATION_SIZE = 200
#: Stream of the randomness that draws the sample.
POPULATION = 20

#: Predicts something about the annotators `who` of a model, as an array.
Predict = Callable[[Approach, Index], NDArray[np.float64]]


@dataclass(frozen=True)
class AnnotatorQuery:
    """The annotators of a prediction, known to the model or not.

    Parameters
    ----------
    model : Approach
    known : array of int, shape (k,)
        Annotators of the model.
    described : Approach, optional
        The model for d unseen annotators with features.
    population : list of (annotator, share)
        Known annotators whose mean stands for an unseen annotator without features; empty without one.
    order : array of int, shape (m,)
        Position of each annotator of the query among the known, then the described, then the population.
    names : Index, shape (m,)
        The annotators of the query.
    """

    model: Approach
    known: Index
    described: Approach | None
    population: list[tuple[int, float]]
    order: Index
    names: pd.Index

    def evaluate(self, predict: Predict, axis: int) -> NDArray[np.float64]:
        """Predictions about all annotators of the query, which `predict` returns along `axis`."""
        parts = [predict(self.model, self.known)]
        if self.described is None and not self.population:
            return parts[0]
        if self.described is not None:
            parts.append(predict(self.described, np.arange(self.described.n_annotators)))
        if self.population:
            each = (share * predict(self.model, np.array([one])) for one, share in self.population)
            parts.append(np.asarray(sum(each)))
        return np.concatenate(parts, axis).take(self.order, axis)


def find_annotators(
    clf: Any, annotators: Iterable[Any] | None, features: pd.DataFrame | None, unseen: str
) -> AnnotatorQuery:
    """Find annotators by name: in a fitted classifier, in a table of features, or nowhere."""
    if unseen not in ("error", "population"):
        raise ValueError(f'unseen must be "error" or "population", found {unseen!r}.')
    if features is not None:
        features = _checked(features)
        if clf.annotator_preparation_ is None:
            raise ValueError(
                "annotator_features= was passed, but the model was trained without it: pass it to fit, too."
            )
    if annotators is None:
        annotators = clf.annotators_ if features is None else features.index
    wanted = _names(annotators)
    order = _names(clf.annotators_).get_indexer(wanted)
    known = order[order >= 0]
    order[order >= 0] = np.arange(len(known))
    described = None
    if features is not None and (order < 0).any():
        row = features.index.get_indexer(wanted)
        new = np.flatnonzero((order < 0) & (row >= 0))
        order[new] = len(known) + np.arange(len(new))
        described = _described(clf, features.iloc[row[new]]) if len(new) else None
    population = []
    if (order < 0).any():
        if unseen == "error":
            table = "" if features is None else ", and annotator_features has no row of them"
            raise ValueError(
                f"Unknown annotators {some(list(wanted[order < 0]))}; the model knows {some(clf.annotators_)}"
                f'{table}. unseen="population" gives them the mean of the known.'
            )
        population = _population(clf.labels_per_annotator_, clf.seed_)
        order[order < 0] = len(known) + (0 if described is None else described.n_annotators)
    return AnnotatorQuery(clf.module_, known, described, population, order, wanted)


def prepare_features(
    approach: type[Approach], features: pd.DataFrame, annotators: NDArray[Any]
) -> tuple[Preparation, NDArray[np.float32]]:
    """The preparation of annotators' features, and the features of the training annotators, shape (M, F)."""
    able = [name for name in list_approaches() if _takes_features(get_approach(name))]
    if not _takes_features(approach):
        raise ValueError(
            f"{approach.name} knows annotators by their labels alone; annotator_features= is for "
            f"{', '.join(able)}."
        )
    names = _names(annotators)
    table = _checked(features).reindex(names)
    absent = names[~names.isin(features.index)]
    if len(absent) == len(names):
        raise ValueError(
            f"annotator_features must be indexed by the names of annotators, such as {some(annotators)}; "
            f"found {some(list(features.index))}. Set them as index: annotator_features.set_index(…)."
        )
    if len(absent):
        warnings.warn(
            f"{len(absent)} of {len(names)} annotators have no row in annotator_features: "
            f"{some(list(absent))}. Their features count as missing.",
            stacklevel=3,
        )
    preparation, _ = fit_preparation(table, indicate=True)
    return preparation, preparation.transform(table)


def _takes_features(approach: type[Approach]) -> bool:
    return issubclass(approach, DescribedAnnotators)


def _checked(features: pd.DataFrame) -> pd.DataFrame:
    if not isinstance(features, pd.DataFrame):
        raise TypeError(
            "annotator_features must be a DataFrame with one row per annotator, indexed by name, found "
            f"{type(features).__name__}."
        )
    if not features.index.is_unique:
        repeated = features.index[features.index.duplicated()]
        raise ValueError(f"annotator_features has several rows of {some(list(repeated.unique()))}; keep one.")
    return features.rename(columns=str)


def _described(clf: Any, features: pd.DataFrame) -> Approach:
    """The model for annotators that it does not know, by their features."""
    device = next(clf.module_.parameters()).device
    matrix = clf.annotator_preparation_.transform(features, "annotator_features")
    weight = torch.tensor(clf.labels_per_annotator_, dtype=torch.float32, device=device)
    model: Approach = clf.module_.for_unseen(torch.from_numpy(matrix).to(device), weight)
    return model


def _population(labels: Index, seed: int) -> list[tuple[int, float]]:
    """Annotators with their shares of the labels; of many annotators, a sample drawn by these shares."""
    who, count = np.flatnonzero(labels), labels[labels > 0]
    if len(who) > POPULATION_SIZE:
        with randomness(seed, POPULATION) as rng:
            drawn = rng.choice(who, size=POPULATION_SIZE, p=count / count.sum())
        who, count = np.unique(drawn, return_counts=True)
    return list(zip(who.tolist(), (count / count.sum()).tolist(), strict=True))


def _names(values: Iterable[Any]) -> pd.Index:
    return pd.Index(list(values), tupleize_cols=False)
