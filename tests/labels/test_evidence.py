"""Labels joined with a classifier, against loops; and judging items again or for the first time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.crowds import crowd, distributions, few_labels, out_of_fold

from annotmix.labels import confusion
from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import Shrinkage
from annotmix.labels.evidence import LEAST_PROBABILITY, Evidence, Weights

WEIGHTS = [Weights(), Weights(1.5, 0.4, 0.5), Weights(0.0, 1.0, 0.0)]


@pytest.fixture(params=[False, True], ids=["labels", "soft labels"])
def evidence(request):
    a = few_labels(1, weighted=request.param)
    evidence = Evidence(a)
    evidence.count(distributions(3, a.n_items, a.n_classes), Shrinkage(20, 10, 3, True))
    return evidence


@pytest.fixture(scope="module")
def simulated():
    return crowd(0, n_items=400, per_item=3)


# ---------------------------------------------------------------- slow, obvious references


def prior_by_loop(evidence, log_p, weights, n):
    shares = evidence.log_shares
    return [weights.shares * shares[c] + weights.classifier * log_p[n, c] for c in range(len(shares))]


def joint_by_loop(evidence, log_p, weights, n, without=None):
    """log q of item n up to a constant, without the labels of one annotator."""
    a = evidence.annotations
    rows = [p for p in range(len(a)) if a.item[p] == n and a.annotator[p] != without]
    n_labels = len({a.annotator[p] for p in rows})
    factor = 1 / (1 + max(n_labels - 1, 0) * weights.correlation)
    result = prior_by_loop(evidence, log_p, weights, n)
    for p in rows:
        for c in range(a.n_classes):
            result[c] += factor * evidence.labelled.weight[p] * evidence.confusion.log_likelihood()[p, c]
    return result


def likelihood_by_loop(evidence, log_p, weights, p):
    """log of the probability of label p given the others of its item."""
    a = evidence.annotations
    joint = joint_by_loop(evidence, log_p, weights, a.item[p], without=a.annotator[p])
    total = sum(map(math.exp, joint))
    return math.log(
        sum(
            math.exp(value) / total * math.exp(evidence.confusion.log_likelihood()[p, c])
            for c, value in enumerate(joint)
        )
    )


# ---------------------------------------------------------------- joint and likelihood


@pytest.mark.parametrize("weights", WEIGHTS)
def test_joint_equals_bayes_rule(evidence, weights):
    a = evidence.annotations
    log_p = evidence.centre(distributions(4, a.n_items, a.n_classes))
    expected = [joint_by_loop(evidence, log_p, weights, n) for n in range(a.n_items)]
    np.testing.assert_allclose(evidence.joint(log_p, weights), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("most", [5, 10**6])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_likelihood_is_of_every_label_given_the_others(evidence, weights, most, monkeypatch):
    monkeypatch.setattr(confusion, "PIECE", most)
    a = evidence.annotations
    log_p = evidence.centre(distributions(4, a.n_items, a.n_classes))
    expected = [likelihood_by_loop(evidence, log_p, weights, p) for p in range(len(a))]
    np.testing.assert_allclose(evidence.likelihood(log_p, weights), expected, rtol=1e-9, atol=1e-12)


def test_factors_of_annotators_and_offsets_of_classes(evidence):
    a = evidence.annotations
    factors, offsets = np.array([1, 0.5, 2, 0]), np.array([0.1, -0.2, 0.0])
    found = evidence.joint(None, Weights(annotators=factors, classes=offsets))
    for n in range(a.n_items):
        rows = a.item == n
        weight = (evidence.labelled.weight * factors[a.annotator])[rows, None]
        expected = (
            evidence.log_shares + offsets + (weight * evidence.confusion.log_likelihood()[rows]).sum(axis=0)
        )
        np.testing.assert_allclose(found[n], expected, atol=1e-12)


def test_a_classifier_is_centred_over_labelled_items(evidence):
    p = distributions(4, 12, 3)
    p[0] = [1, 0, 0]  # the first item has no labels
    labelled = evidence.labelled.labelled
    assert not labelled[0]
    expected = np.log(np.maximum(p, LEAST_PROBABILITY)) - np.log(p[labelled].mean(axis=0))
    np.testing.assert_allclose(evidence.centre(p), expected, rtol=1e-9)


# ---------------------------------------------------------------- learning


def test_learning_raises_the_likelihood(simulated):
    evidence = Evidence(simulated.annotations)
    log_p = evidence.centre(out_of_fold(simulated.X, evidence.alone.q))
    weights, likelihood = evidence.learn(log_p)
    assert weights.classifier > 0
    for trial in WEIGHTS:
        assert likelihood.mean() >= evidence.likelihood(log_p, trial).mean()


def test_an_evidence_joins_several_classifiers_in_any_order(simulated):
    evidence = Evidence(simulated.annotations)
    p = out_of_fold(simulated.X, evidence.alone.q)
    first = evidence.combine(p).q
    evidence.combine(distributions(0, *p.shape))
    evidence.combine()
    np.testing.assert_array_equal(evidence.combine(p).q, first)


def test_a_classifier_that_says_nothing_leaves_the_labels_answer(simulated):
    evidence = Evidence(simulated.annotations)
    answer = evidence.combine(np.full((400, 3), 1 / 3))
    assert not answer.helps
    np.testing.assert_array_equal(answer.q, evidence.combine().q)


def test_nothing_is_known_about_correlation_with_two_labels_per_item():
    two, three = (Evidence(crowd(0, n_items=200, per_item=n).annotations) for n in (2, 3))
    assert "correlation" not in two.grids(None)
    assert "correlation" in three.grids(None)


# ---------------------------------------------------------------- judging


@pytest.mark.parametrize("with_classifier", [False, True])
@pytest.mark.parametrize("gold", [None, (np.arange(5), np.zeros(5, np.int64))])
def test_judging_the_training_items_gives_the_answer(simulated, with_classifier, gold):
    evidence = Evidence(simulated.annotations, gold)
    p = out_of_fold(simulated.X, evidence.alone.q) if with_classifier else None
    answer = evidence.combine(p)
    assert answer.helps == with_classifier
    np.testing.assert_allclose(answer.judge(simulated.annotations, p, np.arange(400)), answer.q, atol=1e-9)


def test_judging_soft_labels_gives_the_answer():
    a = few_labels(1, weighted=True, n_items=200)
    answer = Evidence(a).combine()
    np.testing.assert_allclose(answer.judge(a, None, np.arange(200)), answer.q, atol=1e-9)


def test_judging_new_items_by_hand(simulated):
    evidence = Evidence(simulated.annotations)
    answer = evidence.combine(out_of_fold(simulated.X, evidence.alone.q))
    names = simulated.annotations.annotators, simulated.annotations.classes
    new = Annotations([0, 0, 1], [3, 5, 5], [2, 1, 0], ["a", "b", "c"], *names)
    p, row, weights = distributions(7, 3, 3), np.full(3, -1), answer.weights
    theta = answer.confusion.matrices(np.arange(30))
    joint = np.exp(weights.shares * answer.log_shares) * (p / np.exp(answer.log_mean)) ** weights.classifier
    joint[0] *= (theta[3, :, 2] * theta[5, :, 1]) ** (1 / (1 + weights.correlation))
    joint[1] *= theta[5, :, 0]
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(answer.judge(new, p, row), expected, rtol=1e-6)


def test_a_classifier_that_was_never_compared_decides_alone_where_labels_are_missing(simulated):
    answer = Evidence(simulated.annotations).combine()
    names = simulated.annotations.annotators, simulated.annotations.classes
    new = Annotations([0], [3], [2], ["labelled", "not"], *names)
    p = distributions(7, 2, 3)
    judged = answer.judge(new, p, np.full(2, -1))
    np.testing.assert_allclose(judged[1], p[1])
    assert np.abs(judged[0] - p[0]).max() > 0.01
