"""True classes of some items: fixed always, and decisive where there are enough."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.crowds import crowd, gain

import annotmix
from annotmix.labels.annotations import Annotations
from annotmix.labels.evidence import Evidence
from annotmix.labels.gold import ENOUGH, _Factors
from annotmix.labels.shrunken import shrunken_dawid_skene, softmax


def clones(seed, n_items=1500):
    """Four good annotators, and five who copy the errors of one bad one; three classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_items)
    wrong = (y + rng.integers(1, 3, size=n_items)) % 3
    Z = np.empty((n_items, 9), dtype=int)
    for m in range(4):
        other = (y + rng.integers(1, 3, size=n_items)) % 3
        Z[:, m] = np.where(rng.random(n_items) < 0.8, y, other)
    original = np.where(rng.random(n_items) < 0.5, y, wrong)
    for m in range(4, 9):
        Z[:, m] = np.where(rng.random(n_items) < 0.95, original, rng.integers(3, size=n_items))
    return Annotations.from_matrix(Z), y


@pytest.mark.parametrize("seed", [0, 1])
def test_gold_exposes_annotators_who_copy_each_other(seed):
    """Even where nobody looks for copies."""
    a, y = clones(seed)
    gold = np.arange(200)
    others = np.arange(len(y)) >= 200
    plain, helped = (
        Evidence(a, known, shrunken_dawid_skene(a, known)).combine().q.argmax(axis=1)
        for known in ((gold[:0], y[:0]), (gold, y[gold]))
    )
    rise, error = gain(helped[others], plain[others], y[others])
    assert rise - 2 * error > 0.1
    assert (helped[gold] == y[gold]).all()


def test_few_gold_items_keep_their_class_and_no_more():
    a, y, *_ = crowd(0, n_items=400)[0], crowd(0, n_items=400).y
    few = ENOUGH - 1
    answer = Evidence(a, (np.arange(few), y[:few])).combine()
    np.testing.assert_array_equal(answer.q[:few], np.eye(3)[y[:few]])
    assert answer.weights.annotators is None
    assert answer.weights.classes is None
    assert answer.weights.correlation == 0


def test_gold_of_independent_annotators_does_no_harm():
    c = crowd(0)
    plain = annotmix.posterior(c.annotations).probabilities.to_numpy().argmax(axis=1)
    gold = dict(enumerate(c.y[:200]))
    helped = annotmix.posterior(c.annotations, gold=gold).probabilities.to_numpy().argmax(axis=1)
    rise, error = gain(helped[200:], plain[200:], c.y[200:])
    assert rise + 2 * error > -0.01


def test_gold_items_without_labels_count_as_known():
    a = Annotations.from_matrix(np.full((3, 2), -1), classes=["a", "b"])
    result = annotmix.posterior(a, gold={1: "b"})
    np.testing.assert_allclose(result.probabilities.to_numpy(), [[0.5, 0.5], [0, 1], [0.5, 0.5]], atol=0.2)
    assert result.probabilities.loc[1, "b"] == 1


# ---------------------------------------------------------------- factors and offsets


@pytest.fixture
def problem():
    c = crowd(0, n_items=120, n_annotators=6)
    evidence = Evidence(c.annotations, (np.arange(60), c.y[:60]))
    weights = evidence.combine().weights
    return _Factors(evidence, None, weights), evidence, weights


def test_without_factors_gold_is_predicted_by_the_joint(problem):
    factors, evidence, weights = problem
    item, label = evidence.gold
    plain = type(weights)(weights.classifier, weights.correlation, weights.shares)
    expected = np.log(softmax(evidence.joint(None, plain)[item])[np.arange(60), label])
    found = _Factors(evidence, None, plain).log_q(np.zeros(factors.n), np.arange(60))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_factors_are_the_best_by_any_small_step(problem):
    factors = problem[0]
    which, penalty = np.arange(40), 3.0
    best = factors.solve(penalty, which)

    def loss(values):
        return -factors.log_q(values, which).sum() + penalty / 2 * values @ values

    for k in range(factors.n):
        step = np.zeros(factors.n)
        step[k] = 0.01
        assert min(loss(best + step), loss(best - step)) >= loss(best) - 1e-6
