"""`CrowdClassifier` for label sets: one estimator per class, taught by the posterior of that class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from annotmix._common.progress import Progress
from annotmix.estimators.cross_fitting import CrossFitted, OutOfFold, cross_fit, draw_folds, fit_soft
from annotmix.labels.label_sets import ABSENT_OR_PRESENT, LabelSets
from annotmix.labels.set_evidence import evidence_by_class
from annotmix.labels.set_posterior import ClassPosterior, MultiLabelPosterior
from annotmix.labels.shrunken import Gold

if TYPE_CHECKING:
    from annotmix.estimators.crowd import CrowdClassifier

_CLASSES = np.array(ABSENT_OR_PRESENT)


def fit_classes(clf: CrowdClassifier, X: Any, sets: LabelSets, gold: Gold) -> None:
    """Cross-fit an estimator for every class; `gold` are rows of items and the numbers of their true sets."""
    from annotmix.estimators.crowd import seeded

    learnable = _learnable(sets, gold)
    if learnable.sum() < 2:
        raise ValueError("Folds need at least two labelled items, found n_samples=1.")
    n_folds = min(int(clf.cv), int(learnable.sum()))
    estimators = [seeded(estimator, clf._seed) for estimator in clf._estimators(X)]
    rng, chosen, fitted = np.random.default_rng(clf._seed), list[int](), list[CrossFitted]()
    n_fits = (clf.rounds - 1 + len(estimators)) * n_folds * sets.n_classes
    with Progress("Cross-fitting", n_fits, show=clf.progress) as progress:
        for evidence in evidence_by_class(sets, (gold[0], sets.members[gold[1]])):
            fold = draw_folds(evidence.alone.q, learnable, n_folds, rng)
            candidates = [
                OutOfFold(estimator, X, learnable, fold, _CLASSES, progress.advance)
                for estimator in estimators
            ]
            best, place = cross_fit(evidence, candidates, clf.rounds)
            fitted.append(best)
            chosen.append(place)
    clf.unseen_proba_ = np.stack([own.p[:, 1] for own in fitted], axis=1)
    clf._rounds_by_class, clf._chosen_by_class = [own.n_rounds for own in fitted], chosen
    answers = zip(sets.classes.tolist(), (own.answer for own in fitted), strict=True)
    posterior = MultiLabelPosterior(
        sets, tuple(ClassPosterior(sets.binary(name), answer) for name, answer in answers)
    )
    finish(clf, X, posterior, gold)


def finish(clf: CrowdClassifier, X: Any, posterior: MultiLabelPosterior, gold: Gold) -> None:
    """Fit the final estimators on all items with answers or true classes."""
    from annotmix.estimators.crowd import seeded

    sets = posterior.label_sets
    rows, clf._X, clf._gold = np.flatnonzero(_learnable(sets, gold)), X, gold
    estimators = clf._estimators(X)
    clf.posterior_, clf.n_rounds_ = posterior, max(clf._rounds_by_class)
    clf._models = [
        fit_soft(seeded(estimators[place], clf._seed), X, own.answer.q, rows, _CLASSES)
        for place, own in zip(clf._chosen_by_class, posterior.by_class, strict=True)
    ]
    clf.estimator_ = [model.estimator for model in clf._models]
    for name in ("n_features_in_", "feature_names_in_"):
        clf.__dict__.pop(name, None)
        if hasattr(clf.estimator_[0], name):
            setattr(clf, name, getattr(clf.estimator_[0], name))


def _learnable(sets: LabelSets, gold: Gold) -> np.ndarray:
    learnable = sets.labels_per_item > 0
    learnable[gold[0]] = True
    return np.asarray(learnable)
