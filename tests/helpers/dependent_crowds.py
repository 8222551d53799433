"""Simulated crowds whose annotators copy each other, share errors, or do neither."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from annotmix.labels.annotations import Annotations

Index = NDArray[np.int64]


class DependentCrowd(NamedTuple):
    """Labels, true classes, and the group of every annotator; annotators of one group err together."""

    annotations: Annotations
    y: Index  # (N,)
    group: Index  # (M,)


def independent_labels(
    rng: np.random.Generator, y: Index, n_classes: int, accuracy: NDArray[np.float64]
) -> Index:
    """Labels, shape (N, M), that are right with the accuracies of annotators, shape (M,) or (N, M)."""
    n_annotators = np.shape(accuracy)[-1]
    wrong = (y[:, None] + rng.integers(1, n_classes, (len(y), n_annotators))) % n_classes
    right = rng.random(wrong.shape) < accuracy
    return np.where(right, y[:, None], wrong)


def thinned(rng: np.random.Generator, Z: Index, per_item: int | None) -> Annotations:
    """`per_item` labels of every item, chosen at random; all without a number."""
    if per_item is not None:
        order = rng.random(Z.shape).argsort(axis=1).argsort(axis=1)
        Z = np.where(order < per_item, Z, -1)
    return Annotations.from_matrix(Z, classes=range(int(Z.max()) + 1))


def alone(
    seed: int,
    n_items: int = 600,
    n_annotators: int = 12,
    n_classes: int = 2,
    skill: tuple[float, float] = (0.6, 0.9),
    per_item: int | None = None,
    difficulty: float = 0.0,
    experts: int = 0,
) -> DependentCrowd:
    """Annotators who err independently.

    Items are hard, labelled at random by everybody, with the probability `difficulty`; the first `experts`
    annotators are right in 97 %.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_items)
    accuracy = rng.uniform(*skill, n_annotators)
    accuracy[:experts] = 0.97
    hard = rng.random(n_items) < difficulty
    chances = np.where(hard[:, None], 1 / n_classes, accuracy)
    Z = independent_labels(rng, y, n_classes, chances)
    return DependentCrowd(thinned(rng, Z, per_item), y, np.arange(n_annotators))


def copied(
    seed: int,
    times: int,
    noise: float = 0.0,
    n_items: int = 600,
    n_annotators: int = 8,
    n_classes: int = 2,
    skill: tuple[float, float] = (0.6, 0.9),
    leader: float = 0.65,
    per_item: int | None = None,
) -> DependentCrowd:
    """Independent annotators, the first of whom is copied; a share `noise` of a copy's labels is random."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_items)
    accuracy = rng.uniform(*skill, n_annotators)
    accuracy[0] = leader
    Z = independent_labels(rng, y, n_classes, accuracy)
    copies = np.repeat(Z[:, :1], times, axis=1)
    random = rng.integers(n_classes, size=copies.shape)
    copies = np.where(rng.random(copies.shape) < noise, random, copies)
    group = np.concatenate([np.arange(n_annotators), np.zeros(times, int)])
    return DependentCrowd(thinned(rng, np.hstack([Z, copies]), per_item), y, group)


def families(
    seed: int,
    sizes: tuple[int, ...],
    rho: float,
    n_items: int = 600,
    n_classes: int = 2,
    skill: tuple[float, float] = (0.6, 0.9),
    per_item: int | None = None,
) -> DependentCrowd:
    """Families of annotators: a label is the family's with the probability rho, else the annotator's own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_items)
    group = np.repeat(np.arange(len(sizes)), sizes)
    accuracy = rng.uniform(*skill, len(sizes))
    common = independent_labels(rng, y, n_classes, accuracy)[:, group]
    own = independent_labels(rng, y, n_classes, rng.uniform(*skill, len(group)))
    Z = np.where(rng.random(own.shape) < rho, common, own)
    return DependentCrowd(thinned(rng, Z, per_item), y, group)


def models(
    seed: int,
    sizes: tuple[int, ...] = (2,) * 10,
    n_items: int = 1000,
    hardness: float = 0.3,
    kinship: float = 0.3,
    weak: int = 4,
) -> DependentCrowd:
    """Models of two classes in families: some items are harder for all, some for one family.

    A model is right where skill + √hardness a_n + √kinship b_n,family + √(1 − hardness − kinship) noise > 0.
    The last `weak` models are near chance and prefer one class.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_items)
    group = np.repeat(np.arange(len(sizes)), sizes)
    skill = rng.uniform(0.3, 1.0, len(sizes))[group] + rng.normal(0, 0.1, len(group))
    common, own = rng.normal(size=(n_items, 1)), rng.normal(size=(n_items, len(group)))
    family = rng.normal(size=(n_items, len(sizes)))[:, group]
    score = np.sqrt(hardness) * common + np.sqrt(kinship) * family + np.sqrt(1 - hardness - kinship) * own
    right = skill + score > 0
    biased = skill * 0.3 + np.where(y == 1, 1.0, -0.7)[:, None] + score > 0
    at = np.arange(len(group)) >= len(group) - weak
    Z = np.where(np.where(at, biased, right), y[:, None], 1 - y[:, None])
    return DependentCrowd(thinned(rng, Z, None), y, group)
