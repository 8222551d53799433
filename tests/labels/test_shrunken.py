"""Class probabilities from labels alone: Bayes' rule against a loop, and the choice of models."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.crowds import crowd, few_labels

from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import Confusion, Labelled, Shrinkage
from annotmix.labels.shrunken import (
    FEWEST,
    MODELS,
    ROUNDS,
    expectation_maximisation,
    fix,
    label_exponent,
    shrunken_dawid_skene,
    softmax,
    standard_errors,
)

NO_GOLD = np.zeros(0, np.int64), np.zeros(0, np.int64)


def rounds_by_loop(a, q, shrinkage, rounds, correlation):
    """EM, one item and one label at a time."""
    labelled = Labelled(a)
    for _ in range(rounds):
        confusion = Confusion(labelled, q, shrinkage)
        said, new = confusion.log_likelihood(), np.empty_like(q)
        for n in range(a.n_items):
            rows = np.flatnonzero(a.item == n)
            n_annotators = len(set(a.annotator[rows]))
            factor = 1 / (1 + max(n_annotators - 1, 0) * correlation)
            joint = [
                confusion.log_shares[c] + factor * sum(labelled.weight[p] * said[p, c] for p in rows)
                for c in range(a.n_classes)
            ]
            total = sum(map(math.exp, joint))
            new[n] = [math.exp(value) / total for value in joint]
        q = new
    return q


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shrinkage", [Shrinkage(), Shrinkage(20, 10, 3, True)])
def test_rounds_equal_bayes_rule(weighted, shrinkage):
    a = few_labels(1, weighted)
    labelled = Labelled(a)
    found = expectation_maximisation(labelled, labelled.votes(), shrinkage, 3, 0.3, NO_GOLD)
    expected = rounds_by_loop(a, labelled.votes(), shrinkage, 3, 0.3)
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_every_label_counts_less_where_labels_err_together():
    n_labels = np.array([0, 1, 2, 5])
    np.testing.assert_allclose(label_exponent(n_labels, 0.5), [1, 1, 1 / 1.5, 1 / 3])
    np.testing.assert_allclose(label_exponent(n_labels, 0.0), 1)


def test_softmax_bears_large_numbers():
    np.testing.assert_allclose(softmax(np.array([[1e4, 1e4 - 1], [-1e4, 0]])), [[0.731, 0.269], [0, 1]], 1e-3)


def test_standard_errors_of_no_difference_are_zero():
    assert standard_errors(np.zeros(5)) == 0
    assert standard_errors(np.array([0.0, 2.0])) == pytest.approx(math.sqrt(2))


def test_gold_is_certain():
    q = fix(np.full((3, 2), 0.5), (np.array([1]), np.array([0])))
    assert q.tolist() == [[0.5, 0.5], [1, 0], [0.5, 0.5]]


def test_with_few_labels_nothing_is_chosen():
    a = Annotations.from_matrix(np.zeros((FEWEST - 1, 2), int), classes=[0, 1])
    result = shrunken_dawid_skene(a, NO_GOLD)
    assert result.shares == {}
    np.testing.assert_array_equal(result.q, Labelled(a).votes())


def test_models_share_the_average_and_the_largest_share_is_best():
    result = shrunken_dawid_skene(crowd(0, n_items=300).annotations, NO_GOLD)
    assert sum(result.shares.values()) == pytest.approx(1)
    assert {model for model, _ in result.shares} <= set(MODELS)
    assert {rounds for _, rounds in result.shares} <= set(ROUNDS)
    assert result.shares[max(result.shares, key=lambda key: result.shares[key])] == max(
        result.shares.values()
    )
    np.testing.assert_allclose(result.q.sum(axis=1), 1)


def test_annotators_who_differ_get_a_skill_of_their_own():
    different = shrunken_dawid_skene(crowd(0, per_item=5, skill=(0.4, 0.95)).annotations, NO_GOLD)
    assert different.shrinkage.skill < np.inf or different.shrinkage.own < np.inf
    alike = shrunken_dawid_skene(crowd(0, per_item=5, skill=(0.7, 0.7)).annotations, NO_GOLD)
    assert alike.shrinkage.own == np.inf


def test_independent_errors_have_no_correlation():
    assert shrunken_dawid_skene(crowd(0, per_item=5).annotations, NO_GOLD).correlation == 0


def test_a_large_crowd_is_chosen_for_on_a_sample(monkeypatch):
    a, y = crowd(0, n_items=2000)[0], crowd(0, n_items=2000).y
    whole = shrunken_dawid_skene(a, NO_GOLD)
    monkeypatch.setattr("annotmix.labels.shrunken.BUDGET", 3_000)
    monkeypatch.setattr("annotmix.labels.shrunken.SAMPLE", 1_000)
    sampled = shrunken_dawid_skene(a, NO_GOLD)
    assert sampled.q.shape == whole.q.shape
    accuracy, reference = ((q.argmax(axis=1) == y).mean() for q in (sampled.q, whole.q))
    assert accuracy > reference - 0.02
