"""Confusion matrices of a run without whole matrices, against whole ones."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from helpers.crowds import crowd, distributions, few_labels

from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import Confusion, Labelled, Shrinkage
from annotmix.runs import confusion_matrices
from annotmix.runs.confusion_matrices import ConfusionMatrices, entries, frequent_confusions

SHRINKAGES = [Shrinkage(), Shrinkage(skill=3), Shrinkage(20, 10, 3, True), Shrinkage(np.inf, 2, 1)]


def confusion_of(a: Annotations, shrinkage: Shrinkage = SHRINKAGES[2], seed: int = 2) -> Confusion:
    return Confusion(Labelled(a), distributions(seed, a.n_items, a.n_classes), shrinkage)


@pytest.fixture(params=[False, True], ids=["labels", "soft labels"])
def labels(request):
    return few_labels(1, weighted=request.param)


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_diagonals_and_single_entries_equal_those_of_the_matrices(labels, shrinkage):
    confusion = confusion_of(labels, shrinkage)
    who = np.arange(labels.n_annotators)[::-1]
    whole = confusion.matrices(who)
    np.testing.assert_allclose(confusion.diagonals(who), np.diagonal(whole, axis1=1, axis2=2), rtol=1e-9)
    for c in range(3):
        for k in range(3):
            found = entries(confusion, who, np.full(len(who), c), np.full(len(who), k))
            np.testing.assert_allclose(found, whole[:, c, k], rtol=1e-9)


def test_frequent_confusions_equal_those_of_all_counts(labels):
    q, weight = distributions(2, labels.n_items, labels.n_classes), Labelled(labels).weight
    counts = np.zeros((labels.n_annotators, 3, 3))
    for p in range(len(labels)):
        counts[labels.annotator[p], :, labels.label[p]] += weight[p] * q[labels.item[p]]
    counts[:, np.arange(3), np.arange(3)] = 0
    true, label, count = frequent_confusions(confusion_of(labels))
    np.testing.assert_allclose(count, counts.max(axis=(1, 2)))
    for m in np.flatnonzero(count > 0):
        assert counts[m, true[m], label[m]] == counts[m].max()


@pytest.mark.parametrize("shrinkage", SHRINKAGES)
def test_many_classes_keep_the_diagonal_and_the_largest_confusions(monkeypatch, shrinkage):
    a = crowd(3, n_items=60, n_classes=6, n_annotators=5, per_item=2).annotations
    confusion, who = confusion_of(a, shrinkage), np.array([3, 0, 4])
    whole = ConfusionMatrices.counted(confusion, who).whole
    monkeypatch.setattr(confusion_matrices, "MOST", 10)
    monkeypatch.setattr(confusion_matrices, "LARGEST", 4)
    found = ConfusionMatrices.counted(confusion, who)
    assert found.whole is None
    for m, matrix in enumerate(whole):
        np.testing.assert_allclose(found.diagonal[m], np.diag(matrix), rtol=1e-9)
        said = np.unique(a.label[a.annotator == who[m]])
        others = sorted((matrix[c, k] for c in range(6) for k in said if c != k), reverse=True)
        np.testing.assert_allclose(sorted(found.share[m], reverse=True), others[:4], rtol=1e-9)
        np.testing.assert_allclose(matrix.flat[found.cell[m]], found.share[m], rtol=1e-9)


@pytest.mark.parametrize("most", [10, 10**6])
def test_an_array_holds_everything(monkeypatch, most):
    monkeypatch.setattr(confusion_matrices, "MOST", most)
    given = ConfusionMatrices.of(np.random.default_rng(0).dirichlet(np.ones(7), size=(3, 7)))
    again = ConfusionMatrices.from_array(given.to_array(), 7)
    assert (again.whole is None) == (most == 10)
    for part in ("diagonal", "cell", "share"):
        np.testing.assert_array_equal(getattr(again, part), getattr(given, part))


def test_an_annotator_without_labels_has_no_confusions(monkeypatch):
    monkeypatch.setattr(confusion_matrices, "MOST", 10)
    a = few_labels(1).align(annotators=[*few_labels(1).annotators, "nobody"])
    found = ConfusionMatrices.counted(confusion_of(a), np.array([a.n_annotators - 1]))
    assert not found.share.any()
    assert np.isfinite(found.diagonal).all()


def test_nothing_of_the_size_of_annotators_times_classes_squared_exists():
    """Matrices of 300 annotators and 300 classes would have 216 MB."""
    rng, M, C, N = np.random.default_rng(0), 300, 300, 300
    a = Annotations(np.arange(N), rng.permutation(M), rng.integers(C, size=N), range(N), range(M), range(C))
    confusion = confusion_of(a)
    tracemalloc.start()
    try:
        found = ConfusionMatrices.counted(confusion, np.arange(M))
        frequent_confusions(confusion)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.whole is None
    assert peak < 20e6
