"""Confusion matrices, against loops over labels and classes."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.crowds import distributions, few_labels

from annotmix.labels.confusion import EDGE, TINY, Confusion, Labelled, Shrinkage

INF = np.inf
SHRINKAGES = [
    Shrinkage(),
    Shrinkage(skill=3),
    Shrinkage(INF, 10, INF, True),
    Shrinkage(20, 10, 3, True),
    Shrinkage(INF, 2, 1),
    Shrinkage(3, INF, 10),
]


# ---------------------------------------------------------------- slow, obvious references


def common_by_loop(a, q, shrinkage):
    """θ̄[c, k] from the labels of everybody."""
    C = a.n_classes
    counts = [[0.0] * C for _ in range(C)]
    for n, k, w in zip(a.item, a.label, Labelled(a).weight, strict=True):
        for c in range(C):
            counts[c][k] += w * q[n, c]
    right, total = sum(counts[c][c] for c in range(C)), sum(map(sum, counts))
    accuracy = (right + 1) / (total + 1 + 1 / (C - 1))  # one right label, and one for each wrong class pair
    accuracy = min(max(accuracy, 1 / C + EDGE), 1 - EDGE)
    theta = [[accuracy if c == k else (1 - accuracy) / (C - 1) for k in range(C)] for c in range(C)]
    if shrinkage.common == INF:
        return theta
    kappa = shrinkage.common
    return [
        [(counts[c][k] + kappa * theta[c][k]) / (sum(counts[c]) + kappa) for k in range(C)] for c in range(C)
    ]


def theta_by_loop(a, q, shrinkage, m, without=None):
    """θ_m[c, k], with what m said about item `without` left out of m's counts."""
    C, common = a.n_classes, common_by_loop(a, q, shrinkage)
    usual = [min(max(common[c][c], EDGE), 1 - EDGE) for c in range(C)]
    counts, right, n_labels, expected = [[0.0] * C for _ in range(C)], 0.0, 0.0, 0.0
    for n, who, k, w in zip(a.item, a.annotator, a.label, Labelled(a).weight, strict=True):
        if who != m or n == without:
            continue
        right, n_labels = right + w * q[n, k], n_labels + w
        for c in range(C):
            counts[c][k] += w * q[n, c]
            expected += w * q[n, c] * usual[c]
    theta = common
    if shrinkage.skill < INF:
        e = expected / n_labels if n_labels > EDGE else sum(usual) / C
        kappa = shrinkage.skill
        factor = (right + kappa * e) / (n_labels - right + kappa * (1 - e)) * (1 - e) / e
        theta = [skilled_row(common[c], c, usual[c], factor) for c in range(C)]
    if shrinkage.own < INF:
        kappa = shrinkage.own
        theta = [
            [(counts[c][k] + kappa * theta[c][k]) / (sum(counts[c]) + kappa) for k in range(C)]
            for c in range(C)
        ]
    return np.array(theta)


def skilled_row(row, c, usual, factor):
    """Label probabilities with the odds of the right one times `factor`, the others in proportion."""
    odds = usual / (1 - usual) * factor
    return [odds / (1 + odds) if k == c else p / (1 - usual) / (1 + odds) for k, p in enumerate(row)]


@pytest.fixture(params=[False, True], ids=["labels", "soft labels"])
def problem(request):
    a = few_labels(1, weighted=request.param)
    return a, distributions(2, a.n_items, a.n_classes)


# ---------------------------------------------------------------- tests


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_matrices_and_columns_equal_counting(problem, shrinkage):
    a, q = problem
    confusion = Confusion(Labelled(a), q, shrinkage)
    expected = np.array([theta_by_loop(a, q, shrinkage, m) for m in range(a.n_annotators)])
    who = np.arange(a.n_annotators)
    matrices = confusion.matrices(who)
    np.testing.assert_allclose(matrices, expected, rtol=1e-9)
    np.testing.assert_allclose(matrices.sum(axis=2), 1, rtol=1e-12)
    for k in range(a.n_classes):  # the last class is never said
        columns = confusion.columns(who, np.full(len(who), k))
        np.testing.assert_allclose(np.exp(columns), expected[:, :, k], rtol=1e-9)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_a_label_does_not_count_for_its_own_item(problem, shrinkage):
    a, q = problem
    found = Confusion(Labelled(a), q, shrinkage).log_likelihood()
    for p, (n, m, k) in enumerate(zip(a.item, a.annotator, a.label, strict=True)):
        theta = theta_by_loop(a, q, shrinkage, m, without=n)
        np.testing.assert_allclose(np.exp(found[p]), theta[:, k], rtol=1e-9)


def test_columns_leave_out_labels_as_log_likelihood_does(problem):
    a, q = problem
    labelled = Labelled(a)
    confusion, own = Confusion(labelled, q, Shrinkage(3, 10, 1)), q[a.item]
    columns = confusion.columns(
        a.annotator, a.label, own, labelled.weight, labelled.own_weight, labelled.own_right(own)
    )
    np.testing.assert_array_equal(columns, confusion.log_likelihood())


def test_class_shares_are_counted_or_equal(problem):
    a, q = problem
    counted = np.exp(Confusion(Labelled(a), q, Shrinkage(shares=True)).log_shares)
    labelled = [n for n in range(a.n_items) if any(Labelled(a).weight[a.item == n])]
    expected = [(sum(q[n, c] for n in labelled) + 1) / (len(labelled) + a.n_classes) for c in range(3)]
    np.testing.assert_allclose(counted, expected, rtol=1e-9)
    np.testing.assert_allclose(np.exp(Confusion(Labelled(a), q, Shrinkage()).log_shares), 1 / 3)


def test_without_shrinkage_everybody_is_alike_and_errs_evenly(problem):
    a, q = problem
    matrices = Confusion(Labelled(a), q, Shrinkage()).matrices(np.arange(a.n_annotators))
    assert np.ptp(matrices, axis=0).max() < 1e-12
    assert np.ptp(matrices[0][~np.eye(3, dtype=bool)]) < 1e-12


def test_sums_over_the_labels_of_a_pair():
    a = few_labels(3, weighted=True)
    labelled, values = Labelled(a), distributions(4, len(a), 3)
    sums = labelled.pair_sums(values)
    for p in range(len(a)):
        same = (a.item == a.item[p]) & (a.annotator == a.annotator[p])
        np.testing.assert_allclose(sums[p], (labelled.weight[:, None] * values)[same].sum(axis=0))


def test_probabilities_stay_above_zero():
    a = few_labels(5)
    q = np.eye(3)[np.zeros(a.n_items, dtype=int)]
    log_theta = Confusion(Labelled(a), q, Shrinkage(INF, 10, 1e-9)).log_likelihood()
    assert log_theta.min() >= np.log(TINY)
    assert log_theta.max() <= 0
