"""Class probabilities of items by scikit-learn classifiers that have not seen them (cross-fitting).

The targets are class probabilities q, shape (N, C). A classifier with `sample_weight` learns every item once
for each of its probable classes, weighted by q; a classifier without it learns the most probable class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from annotmix.labels.evidence import Answer, Evidence
from annotmix.labels.names import Index, locate

Floats = NDArray[np.float64]

#: Classes with a smaller probability are no targets, except the most probable one.
FLOOR = 0.01


class CrossFitted(NamedTuple):
    """The answer of the best round, its out-of-fold probabilities, shape (N, C), and its number from 1."""

    answer: Answer
    p: Floats
    n_rounds: int


def cross_fit(
    evidence: Evidence, candidates: Sequence[Callable[[Floats], Floats]], rounds: int
) -> tuple[CrossFitted, int]:
    """Let labels teach classifiers, and classifiers correct labels, as long as that explains labels better.

    Parameters
    ----------
    evidence : Evidence
        The labels.
    candidates : sequence of callables
        Out-of-fold class probabilities, shape (N, C), for targets q, shape (N, C). The one that makes the
        labels most likely in the first round is kept.
    rounds : int
        At most so many rounds. A classifier that does not help ends the first; a later round counts only if
        it raises the likelihood of the labels: further rounds would echo the errors of the classifier.

    Returns
    -------
    CrossFitted, and the place of the candidate that was kept
    """
    q = evidence.combine(None).q
    first = [CrossFitted(evidence.combine(p), p, 1) for p in (predict(q) for predict in candidates)]
    chosen = max(range(len(first)), key=lambda k: first[k].answer.likelihood)
    best, predict_unseen = first[chosen], candidates[chosen]
    while best.answer.helps and best.n_rounds < rounds:
        p = predict_unseen(best.answer.q)
        answer = evidence.combine(p)
        if not (answer.helps and answer.likelihood > best.answer.likelihood):
            break
        best = CrossFitted(answer, p, best.n_rounds + 1)
    return best, chosen


class OutOfFold:
    """Predicts every item by a classifier that learnt from the items of the other folds.

    Parameters
    ----------
    estimator : classifier
        Each fold has a clone of its own.
    X : indexable, N rows
    learnable : array of bool, shape (N,)
        Items that classifiers may learn from; all items are predicted.
    fold : array of int, shape (N,)
    classes : array, shape (C,)
    advance : callable
        Called after every classifier.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        learnable: NDArray[np.bool_],
        fold: Index,
        classes: NDArray[Any],
        advance: Callable[[], None],
    ):
        self.estimator, self.X, self.classes = estimator, X, classes
        self.learnable, self.fold, self.advance = learnable, fold, advance

    def __call__(self, q: Floats) -> Floats:
        """Class probabilities, shape (N, C), of classifiers that learn the targets q."""
        p = np.empty_like(q)
        for k in range(self.fold.max() + 1):
            learnt, unseen = np.flatnonzero(self.learnable & (self.fold != k)), np.flatnonzero(self.fold == k)
            model = fit_soft(self.estimator, self.X, q, learnt, self.classes)
            p[unseen] = model.predict_proba(_safe_indexing(self.X, unseen))
            self.advance()
        return p


def draw_folds(q: Floats, learnable: NDArray[np.bool_], n_folds: int, rng: np.random.Generator) -> Index:
    """Folds of the items, shape (N,), alike in the most probable classes of learnable items."""
    order = np.lexsort((rng.random(len(q)), q.argmax(axis=1), ~learnable))
    fold = np.empty(len(q), dtype=np.int64)
    fold[order] = np.arange(len(q)) % n_folds
    return fold


class SoftModel(NamedTuple):
    """A fitted classifier, and the places of its classes among all classes.

    Classes that it has not seen get the probability `absent` each.
    """

    estimator: Any
    places: Index
    n_classes: int
    absent: float

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of all classes, shape (n, C)."""
        known = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        p = np.full((len(known), self.n_classes), self.absent)
        p[:, self.places] = known * (1 - self.absent * (self.n_classes - len(self.places)))
        return p


def fit_soft(estimator: Any, X: Any, q: Floats, rows: Index, classes: NDArray[Any]) -> SoftModel:
    """A clone of the estimator, fitted on some rows of X with the class probabilities q as targets.

    A class that none of n rows has gets the probability 1 / (n + C) of Laplace's rule of succession.
    """
    name = weight_parameter(estimator)
    row, target, weight = weighted_targets(q[rows]) if name else hard_targets(q[rows])
    several = (target != target[0]).any()
    model = clone(estimator) if several else DummyClassifier(strategy="prior")
    weights = {name: weight} if name and several else {}
    with sklearn.config_context(enable_metadata_routing=False):  # weights go by the name of the step
        model.fit(_safe_indexing(X, rows[row]), classes[target], **weights)
    places = locate(np.asarray(model.classes_), classes)
    return SoftModel(model, places, len(classes), 1 / (len(rows) + len(classes)))


def weighted_targets(q: Floats) -> tuple[Index, Index, Floats]:
    """Rows of q, classes and weights: the probable classes of every row, whose weights sum to 1."""
    keep = q >= FLOOR
    keep[np.arange(len(q)), q.argmax(axis=1)] = True
    row, target = np.nonzero(keep)
    return row, target, (q / np.where(keep, q, 0).sum(axis=1, keepdims=True))[row, target]


def hard_targets(q: Floats) -> tuple[Index, Index, Floats]:
    """Rows of q, their most probable classes, and equal weights."""
    return np.arange(len(q)), q.argmax(axis=1), np.ones(len(q))


def weight_parameter(estimator: Any) -> str | None:
    """The parameter of `fit` that takes weights: of the last step of a pipeline; None where there is none."""
    if isinstance(estimator, Pipeline):
        step, last = estimator.steps[-1]
        inner = weight_parameter(last)
        return None if inner is None else f"{step}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None
