"""Whom a question about annotators is about: those of the training data, and others.

Of another annotator either the features are known, if the model was trained with such; or nothing is, and
the answer is that of the crowd: the mean of what the model says about everybody it knows, weighted by labels.
That is not what it says about a mean annotator. A mean of embeddings is a person who does not exist, and the
network is not linear: its confusion matrix is not the mean of theirs.
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

#: Known annotators that stand for the crowd; of more, as many are drawn, those with many labels more often.
CROWD_SIZE = 200
#: Stream of the randomness that draws them.
CROWD = 20

#: What a model says about its annotators `who`, as an array.
Ask = Callable[[Approach, Index], NDArray[np.float64]]


@dataclass(frozen=True)
class Asked:
    """Those whom a question is about.

    Parameters
    ----------
    model : Approach
    known : array of int, shape (k,)
        Annotators of the model.
    described : Approach, optional
        The model for d others, of whom there are features.
    crowd : list of (annotator, share)
        Who stands for one of whom nothing is known; empty where there is none.
    order : array of int, shape (m,)
        For all who are asked about: their place among first the known, then the described, then the crowd.
    """

    model: Approach
    known: Index
    described: Approach | None
    crowd: list[tuple[int, float]]
    order: Index

    def answers(self, ask: Ask, axis: int) -> NDArray[np.float64]:
        """What `ask` says about all of them; its answers have annotators along `axis`."""
        parts = [ask(self.model, self.known)]
        if self.described is None and not self.crowd:
            return parts[0]
        if self.described is not None:
            parts.append(ask(self.described, np.arange(self.described.n_annotators)))
        if self.crowd:
            each = (share * ask(self.model, np.array([annotator])) for annotator, share in self.crowd)
            parts.append(np.asarray(sum(each)))
        return np.concatenate(parts, axis).take(self.order, axis)


def asked_about(
    clf: Any, annotators: Iterable[Any] | None, features: pd.DataFrame | None, unseen: str
) -> Asked:
    """Find annotators by name: among those of a fitted classifier, in a table of features, or nowhere."""
    if unseen not in ("error", "population"):
        raise ValueError(f'unseen must be "error" or "population", found {unseen!r}.')
    if features is not None:
        features = _checked(features)
        if clf.annotator_preparation_ is None:
            raise ValueError(
                "annotator_features are given, but the model was trained without them: pass them to fit, too."
            )
    if annotators is None:
        annotators = clf.annotators_ if features is None else features.index
    asked = _names(annotators)
    order = _names(clf.annotators_).get_indexer(asked)
    known = order[order >= 0]
    order[order >= 0] = np.arange(len(known))
    described = None
    if features is not None and (order < 0).any():
        row = features.index.get_indexer(asked)
        new = np.flatnonzero((order < 0) & (row >= 0))
        order[new] = len(known) + np.arange(len(new))
        described = _described(clf, features.iloc[row[new]]) if len(new) else None
    crowd = []
    if (order < 0).any():
        if unseen == "error":
            table = "" if features is None else ", and annotator_features has no row of them"
            raise ValueError(
                f"Unknown annotators {some(list(asked[order < 0]))}; the model knows {some(clf.annotators_)}"
                f'{table}. unseen="population" gives them the answer of the crowd.'
            )
        crowd = _crowd(clf.labels_per_annotator_, clf.seed_)
        order[order < 0] = len(known) + (0 if described is None else described.n_annotators)
    return Asked(clf.module_, known, described, crowd, order)


def prepare(
    approach: type[Approach], features: pd.DataFrame, annotators: NDArray[Any]
) -> tuple[Preparation, NDArray[np.float32]]:
    """How to prepare what is known about annotators, and that of the training set's, shape (M, F)."""
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
            f"{some(list(absent))}. All of theirs count as missing.",
            stacklevel=3,
        )
    preparation, _ = fit_preparation(table, indicate=True)
    return preparation, preparation.transform(table)


def _takes_features(approach: type[Approach]) -> bool:
    return issubclass(approach, DescribedAnnotators)


def _checked(features: pd.DataFrame) -> pd.DataFrame:
    if not isinstance(features, pd.DataFrame):
        raise TypeError(
            "annotator_features must be a DataFrame with a row an annotator, indexed by name, found "
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


def _crowd(labels: Index, seed: int) -> list[tuple[int, float]]:
    """Annotators with their shares of the labels; of many, a sample in which each stands as often."""
    who, count = np.flatnonzero(labels), labels[labels > 0]
    if len(who) > CROWD_SIZE:
        with randomness(seed, CROWD) as rng:
            drawn = rng.choice(who, size=CROWD_SIZE, p=count / count.sum())
        who, count = np.unique(drawn, return_counts=True)
    return list(zip(who.tolist(), (count / count.sum()).tolist(), strict=True))


def _names(values: Iterable[Any]) -> pd.Index:
    return pd.Index(list(values), tupleize_cols=False)
