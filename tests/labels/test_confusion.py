"""Confusion matrices, against loops over labels and classes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from helpers.crowds import distributions, few_labels

from annotmix.labels import confusion as confusion_module
from annotmix.labels.annotations import Annotations
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
        a.annotator,
        a.label,
        own,
        labelled.weight,
        labelled.own_weight,
        labelled.own_right(own[np.arange(len(a)), a.label]),
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
    sums = labelled.block_sums(values, slice(None))
    for p in range(len(a)):
        same = (a.item == a.item[p]) & (a.annotator == a.annotator[p])
        np.testing.assert_allclose(sums[p], (labelled.weight[:, None] * values)[same].sum(axis=0))


@pytest.mark.parametrize("most", [1, 7, 40])
def test_pieces_hold_all_items_with_their_labels_and_few_numbers(problem, monkeypatch, most):
    monkeypatch.setattr(confusion_module, "PIECE", most)
    a, _ = problem
    pieces = list(Labelled(a).pieces())
    items = [n for items, _ in pieces for n in range(items.start, items.stop)]
    labels = [p for _, labels in pieces for p in range(labels.start, labels.stop)]
    assert items == list(range(a.n_items))
    assert labels == list(range(len(a)))
    for items, labels in pieces:
        assert set(a.item[labels]) <= set(range(items.start, items.stop))
        assert items.stop - items.start == 1 or (labels.stop - labels.start) * a.n_classes <= most


@pytest.mark.parametrize("most", [1, 7, 40, 10**6])
@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_sums_over_the_labels_of_an_item_equal_loops_whatever_the_pieces(
    problem, monkeypatch, shrinkage, most
):
    monkeypatch.setattr(confusion_module, "PIECE", most)
    a, q = problem
    labelled, factors = Labelled(a), np.linspace(0.5, 2, a.n_annotators)
    confusion = Confusion(labelled, q, shrinkage)
    expected = np.zeros((2, a.n_items, a.n_classes))
    for p, said in enumerate(confusion.log_likelihood()):
        expected[0, a.item[p]] += labelled.weight[p] * said
        expected[1, a.item[p]] += labelled.weight[p] * factors[a.annotator[p]] * said
    np.testing.assert_allclose(confusion.item_sums(), expected[0], rtol=1e-9)
    np.testing.assert_allclose(confusion.item_sums(factors), expected[1], rtol=1e-9)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_the_same_counts_can_be_shrunken_otherwise(problem, shrinkage):
    a, q = problem
    expected = Confusion(Labelled(a), q, shrinkage)
    found = Confusion(Labelled(a), q, Shrinkage(5, 4, 2, True)).shrunken_by(shrinkage)
    np.testing.assert_array_equal(found.log_likelihood(), expected.log_likelihood())
    np.testing.assert_array_equal(found.log_shares, expected.log_shares)


def test_nothing_of_the_size_of_annotators_times_classes_squared_exists():
    """200 labels of 100 annotators and 400 classes: matrices would be 128 MB, labels × C are 0.6 MB."""
    rng = np.random.default_rng(0)
    n_items, M, C = 50, 100, 400
    a = Annotations(
        np.repeat(np.arange(n_items), 4),
        rng.permuted(np.tile(np.arange(M), (n_items, 1)), axis=1)[:, :4].reshape(-1),
        rng.integers(C, size=4 * n_items),
        items=np.arange(n_items),
        annotators=np.arange(M),
        classes=np.arange(C),
    )
    q = distributions(1, n_items, C)
    tracemalloc.start()
    try:
        Confusion(Labelled(a), q, Shrinkage(3, 10, 1)).item_sums()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16e6  # a few arrays of size C²


def test_probabilities_stay_above_zero():
    a = few_labels(5)
    q = np.eye(3)[np.zeros(a.n_items, dtype=int)]
    log_theta = Confusion(Labelled(a), q, Shrinkage(INF, 10, 1e-9)).log_likelihood()
    assert log_theta.min() >= np.log(TINY)
    assert log_theta.max() <= 0
