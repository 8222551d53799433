"""Agreement of all annotators, of groups, of one with the others and of pairs, against loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import (
    annotator_agreement,
    between,
    item_agreement,
    pair_agreement,
    percent_agreement,
    within,
)


def crowd_matrix(seed: int) -> np.ndarray:
    """Labels that are right in six of ten cases; -1 is none."""
    rng = np.random.default_rng(seed)
    shape = (60, 6)
    true = rng.integers(4, size=(60, 1))
    Z = np.where(rng.random(shape) < 0.6, true, rng.integers(4, size=shape))
    return np.where(rng.random(shape) < 0.4, -1, Z)


def soft_labels(seed: int) -> np.ndarray:
    """Soft labels of three classes with weights from 0 to 1; some are missing."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=(30, 4)) * rng.random((30, 4, 1))
    P[rng.random((30, 4)) < 0.3] = np.nan
    return P


def compared_slowly(P: np.ndarray, pairs: list[tuple[int, int]]) -> tuple[int, float, float]:
    """Items, agreement and κ of the pairs of annotators; `P` are soft labels, shape (N, M, C)."""
    shares, first, second = [], [], []
    for soft in np.nan_to_num(P):
        weight = sum(soft[i].sum() * soft[j].sum() for i, j in pairs)
        if weight == 0:
            continue
        shares.append(sum(soft[i] @ soft[j] for i, j in pairs) / weight)
        for side, votes in ((0, first), (1, second)):
            chosen = sum(soft[i] for i in sorted({pair[side] for pair in pairs}))
            votes.append(chosen / chosen.sum())
    if not shares:
        return 0, np.nan, np.nan
    chance = np.mean(first, axis=0) @ np.mean(second, axis=0)
    return len(shares), float(np.mean(shares)), float((np.mean(shares) - chance) / (1 - chance))


def one_hot(Z: np.ndarray, n_classes: int) -> np.ndarray:
    return np.where((Z < 0)[..., None], np.nan, np.eye(n_classes)[Z])


@pytest.fixture(params=["hard", "soft"])
def crowd(request):
    """Annotations and the same as an array, shape (N, M, C)."""
    if request.param == "soft":
        return Annotations.from_soft(soft_labels(2)), soft_labels(2)
    return Annotations.from_matrix(crowd_matrix(1)), one_hot(crowd_matrix(1), 4)


def test_within_and_between_equal_loops(crowd):
    a, P = crowd
    everyone = range(a.n_annotators)
    pairs = [(i, j) for i, j in product(everyone, everyone) if i != j]
    np.testing.assert_allclose(within(a), compared_slowly(P, pairs))
    one = np.arange(a.n_annotators) < 2
    few = [(i, j) for i, j in pairs if one[i] and one[j]]
    np.testing.assert_allclose(within(a, one), compared_slowly(P, few))
    across = [(i, j) for i, j in pairs if one[i] and not one[j]]
    np.testing.assert_allclose(between(a, one, ~one), compared_slowly(P, across))
    np.testing.assert_allclose(between(a, ~one, one), between(a, one, ~one))


def test_items_equal_their_mean(crowd):
    a, _ = crowd
    shares = item_agreement(a)
    assert np.isnan(shares).sum() == (a.labels_per_item < 2).sum() > 0
    assert percent_agreement(a) == within(a).percent == pytest.approx(np.nanmean(shares))


def test_one_against_the_rest():
    a = Annotations.from_matrix(crowd_matrix(3))
    percent, kappa = annotator_agreement(a)
    for m in range(a.n_annotators):
        one = np.arange(a.n_annotators) == m
        _, share, corrected = between(a, one, ~one)
        assert (percent[m], kappa[m]) == (pytest.approx(share), pytest.approx(corrected))


def test_one_against_the_rest_by_weight():
    P = soft_labels(4)
    percent, kappa = annotator_agreement(Annotations.from_soft(P))
    soft = np.nan_to_num(P)
    for m in range(P.shape[1]):
        rest = soft.sum(axis=1) - soft[:, m]
        weight = np.where(rest.sum(axis=1) > 0, soft[:, m].sum(axis=1), 0)
        known = weight > 0
        q = rest[known] / rest[known].sum(axis=1, keepdims=True)
        p = soft[known, m]
        share = (p * q).sum() / weight.sum()
        chance = p.sum(axis=0) @ (weight[known] @ q) / weight.sum() ** 2
        assert percent[m] == pytest.approx(share)
        assert kappa[m] == pytest.approx((share - chance) / (1 - chance))


@pytest.mark.parametrize(("values", "weights"), [(None, None), (np.arange(4.0), "quadratic")])
def test_pairs_equal_scikit_learn(values, weights):
    Z = crowd_matrix(5)
    found = pair_agreement(Annotations.from_matrix(Z), np.array([4, 0, 2]), values)
    for i, j in product(range(3), range(3)):
        x, y = Z[:, [4, 0, 2][i]], Z[:, [4, 0, 2][j]]
        both = (x >= 0) & (y >= 0)
        assert found.n_items[i, j] == both.sum()
        assert found.percent[i, j] == pytest.approx((x == y)[both].mean())
        kappa = cohen_kappa_score(x[both], y[both], weights=weights)
        assert found.kappa[i, j] == pytest.approx(kappa)


def test_pairs_of_soft_labels():
    P = soft_labels(6)
    found = pair_agreement(Annotations.from_soft(P), np.arange(4))
    P = P / P.sum(axis=2, keepdims=True)  # every item counts alike
    for i, j in product(range(4), range(4)):
        if i != j:
            figures = [table[i, j] for table in found]
            np.testing.assert_allclose(figures, compared_slowly(P, [(i, j)]))


def test_values_may_be_large():
    Z = crowd_matrix(7)
    a, who = Annotations.from_matrix(Z), np.arange(6)
    near = pair_agreement(a, who, np.array([0.0, 1, 3, 4]))
    far = pair_agreement(a, who, 1e9 + np.array([0.0, 1, 3, 4]))
    np.testing.assert_allclose(near.kappa, far.kappa, atol=1e-12)


def test_nothing_in_common():
    a = Annotations.from_matrix([[0, -1], [-1, 1]])
    assert within(a)[0] == 0
    assert np.isnan(within(a)[1:]).all()
    assert np.isnan(np.concatenate(annotator_agreement(a))).all()
    pairs = pair_agreement(a, np.arange(2))
    assert pairs.n_items.tolist() == [[1, 0], [0, 1]]
    assert np.isnan(pairs.percent[0, 1])
    assert np.isnan(percent_agreement(Annotations.from_matrix(np.zeros((0, 3), dtype=int))))


def test_one_class_has_no_chance_correction():
    a = Annotations.from_matrix(np.zeros((5, 3), dtype=int))
    assert within(a)[:2] == (5, 1)
    assert np.isnan(within(a).kappa)
    assert np.isnan(annotator_agreement(a)[1]).all()


def test_nobody_is_in_two_groups():
    a = Annotations.from_matrix([[0, 1]])
    with pytest.raises(ValueError, match="1 annotator is in both groups"):
        between(a, np.array([True, True]), np.array([False, True]))
