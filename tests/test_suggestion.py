"""Which items to have labelled next, and by whom."""

from __future__ import annotations

import numpy as np
import pytest

import annotmix
from annotmix.beliefs import beliefs
from annotmix.suggestion import _greedy, suggest_from


@pytest.fixture
def model(noisy):
    return annotmix.AnnotMixClassifier(max_epochs=15, random_state=0, progress=False).fit(noisy.X, noisy.Z)


def entropy(p):
    return -sum(v * np.log2(v) for v in p if v > 0)


def test_gain_is_mutual_information(model, noisy):
    believed = beliefs(model, noisy.X, noisy.Z)
    table = annotmix.suggest(model, noisy.X, noisy.Z, 10)
    for row in table.itertuples():
        ((_, confusion),) = believed.confusion_on(np.array([row.task]), np.array([row.worker]))
        q, pi = believed.q[row.task], confusion[0]
        joint = q[:, None] * pi
        expected = entropy(q) + entropy(joint.sum(axis=0)) - entropy(joint.ravel())
        assert row.gain == pytest.approx(expected, abs=1e-6)  # confusion is float32
        assert row.performance == pytest.approx(sum(q[c] * pi[c, c] for c in range(3)))


def test_limits_hold_and_known_pairs_are_left_out(model, noisy):
    table = annotmix.suggest(model, noisy.X, noisy.Z, 100)
    assert len(table) == 100
    assert table["gain"].is_monotonic_decreasing
    assert table["task"].is_unique
    assert table["worker"].value_counts().max() <= 40  # twice an equal share among five
    assert all(noisy.Z[row.task, row.worker] == -1 for row in table.itertuples())
    several = annotmix.suggest(model, noisy.X, noisy.Z, 30, per_item=2, per_annotator=8)
    assert several["task"].value_counts().max() <= 2
    assert several["worker"].value_counts().max() <= 8
    assert not several.duplicated(["task", "worker"]).any()


def test_good_annotators_are_asked_first(model, noisy):
    first = annotmix.suggest(model, noisy.X, noisy.Z, 40, per_annotator=40)
    assert first["worker"].isin([0, 1]).mean() > 0.7  # right in 95 % and 80 %


def test_no_more_than_there_is(model, noisy):
    Z = np.where(noisy.Z < 0, 0, noisy.Z)
    Z[:3, 2] = -1
    found = annotmix.suggest(model, noisy.X, Z, 10)
    assert len(found) == 0 or set(found["worker"]) == {2}
    assert len(found) <= 3


def test_greedy_against_trying_every_pair():
    rng = np.random.default_rng(0)
    gain = rng.random((12, 4))
    gain[rng.random(gain.shape) < 0.2] = -np.inf
    chosen, load, count = [], np.zeros(4), np.zeros(12)
    for flat in np.argsort(-gain, axis=None):
        n, m = divmod(int(flat), 4)
        if gain[n, m] > -np.inf and load[m] < 5 and count[n] < 2 and len(chosen) < 15:
            chosen.append((n, m))
            load[m] += 1
            count[n] += 1
    assert _greedy(gain, 15, 2, 5) == chosen


def test_wrong_numbers_are_named(model, noisy):
    believed = beliefs(model, noisy.X, noisy.Z)
    with pytest.raises(ValueError, match="budget must be a positive integer, found 0"):
        suggest_from(believed, 0)
    with pytest.raises(ValueError, match="Unknown annotators 7"):
        suggest_from(believed, 1, annotators=[7])


def test_beliefs_against_slow_products(model, noisy):
    from annotmix.beliefs import EVIDENCE

    believed = beliefs(model, noisy.X, noisy.Z)
    p = model.predict_proba(noisy.X)
    a = believed.annotations
    for item in range(10):
        own = np.flatnonzero(a.item == item)
        terms = {}
        for label in own:
            pair = (np.array([item]), a.annotator[[label]])
            ((_, confusion),) = believed.confusion_on(*pair)
            terms[label] = confusion[0][:, a.label[label]] ** EVIDENCE
        q = p[item] * np.prod(list(terms.values()), axis=0) if terms else p[item]
        np.testing.assert_allclose(believed.q[item], q / q.sum(), atol=1e-5)
        for label in own:
            rest = q / terms[label]
            np.testing.assert_allclose(believed.others[label], rest / rest.sum(), atol=1e-5)
    total = np.zeros((5, 3, 3))
    for label in range(len(a)):
        total[a.annotator[label], :, a.label[label]] += believed.others[label]
    np.testing.assert_allclose(believed.counts, total, atol=1e-4)
