"""Simulated crowds: Gaussian classes, and annotators whose errors are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import Labelled
from annotmix.labels.dawid_skene import dawid_skene

Floats = NDArray[np.float64]
N_FEATURES = 24


class Crowd(NamedTuple):
    """Labels, features and true classes of simulated items."""

    annotations: Annotations
    X: Floats  # (N, 24)
    y: NDArray[np.int64]  # (N,)
    accuracy: Floats  # (M,), the share of right labels that each annotator gives on average


def crowd(
    seed: int,
    n_items: int = 1000,
    n_annotators: int = 30,
    n_classes: int = 3,
    per_item: int = 3,
    skill: tuple[float, float] = (0.4, 0.95),
    distance: float = 2.0,
    spammers: float = 0.0,
    one_sided: float = 0.0,
    shares: tuple[float, ...] | None = None,
    difficulty: float = 0.0,
) -> Crowd:
    """Simulated labels.

    Parameters
    ----------
    skill : (float, float)
        Probabilities of right labels are uniform between these.
    distance : float
        Of the class means from the origin, in standard deviations of a feature; 0 makes features useless.
    spammers : float
        Share of annotators who choose labels at random.
    one_sided : float
        Share of wrong labels that are the next class, the same for all annotators.
    shares : tuple of float, optional
        Of the classes; equal by default.
    difficulty : float
        Share of items with labels at random.
    """
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, size=n_items, p=shares)
    means = rng.normal(size=(n_classes, N_FEATURES))
    means *= distance / np.linalg.norm(means, axis=1, keepdims=True)
    X = means[y] + rng.normal(size=(n_items, N_FEATURES))
    theta = confusion(rng, n_annotators, n_classes, skill, one_sided)
    theta[: round(spammers * n_annotators)] = 1 / n_classes
    who = np.argsort(rng.random((n_items, n_annotators)), axis=1)[:, :per_item].ravel()
    item = np.repeat(np.arange(n_items), per_item)
    p = theta[who, y[item]]
    p[(rng.random(n_items) < difficulty)[item]] = 1 / n_classes
    label = (rng.random((len(p), 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    names = np.arange(n_items), np.arange(n_annotators), np.arange(n_classes)
    return Crowd(Annotations(item, who, label, *names), X, y, np.trace(theta, axis1=1, axis2=2) / n_classes)


def confusion(
    rng: np.random.Generator, n_annotators: int, n_classes: int, skill: tuple[float, float], one_sided: float
) -> Floats:
    """Confusion matrices of annotators with uniform skill, shape (M, C, C)."""
    right = rng.uniform(*skill, size=n_annotators)[:, None, None]
    even = (1 - np.eye(n_classes)) / (n_classes - 1)
    wrong = one_sided * np.roll(np.eye(n_classes), 1, axis=1) + (1 - one_sided) * even
    return np.asarray(right * np.eye(n_classes) + (1 - right) * wrong)


def out_of_fold(X: Floats, q: Floats) -> Floats:
    """Class probabilities of a logistic regression that learns the most probable classes, out of fold."""
    best = q.argmax(axis=1)
    p = np.zeros_like(q)
    model = LogisticRegression(C=0.1, max_iter=200)
    p[:, np.unique(best)] = cross_val_predict(model, X, best, cv=5, method="predict_proba")
    return p


def vote(annotations: Annotations) -> NDArray[np.int64]:
    """The class with the most votes; the first one of several."""
    return np.asarray(Labelled(annotations).votes().argmax(axis=1))


def dawid_skene_classes(annotations: Annotations) -> NDArray[np.int64]:
    """The most probable classes by Dawid–Skene."""
    return np.asarray(dawid_skene(annotations).probabilities.to_numpy().argmax(axis=1))


def gain(chosen: NDArray[np.int64], other: NDArray[np.int64], y: NDArray[np.int64]) -> tuple[float, float]:
    """Difference of two accuracies, and its standard error, paired over items."""
    difference = (chosen == y).astype(float) - (other == y)
    return float(difference.mean()), float(difference.std() / np.sqrt(len(y)))


def few_labels(seed: int, weighted: bool = False, n_items: int = 12, n_classes: int = 3) -> Annotations:
    """A few random labels; the first item has none, and nobody says the last class."""
    rng = np.random.default_rng(seed)
    P = rng.random((n_items, 4, n_classes)) * (rng.random((n_items, 4, 1)) < 0.6)
    P[..., -1] = 0
    P[0] = 0
    if weighted:
        P[P < 0.2] = 0
        return Annotations.from_soft(P)
    Z = np.where(P.any(axis=2), P.argmax(axis=2), -1)
    return Annotations.from_matrix(Z, classes=range(n_classes))


def distributions(seed: int, n: int, n_classes: int) -> Floats:
    """Random class probabilities, shape (n, n_classes)."""
    return np.random.default_rng(seed).dirichlet(np.ones(n_classes), size=n)
