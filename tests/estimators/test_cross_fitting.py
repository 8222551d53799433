import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from annotmix.estimators.cross_fitting import (
    OutOfFold,
    cross_fit,
    draw_folds,
    fit_soft,
    weight_parameter,
    weighted_targets,
)


class Rounds:
    """Stands for `Evidence`: the likelihoods and helpfulness of the answers are given."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0

    def combine(self, p):
        if p is None:
            return Answer(0, -9.0, False)
        self.asked += 1
        return Answer(self.asked, *self.answers[self.asked - 1])


class Answer:
    def __init__(self, q, likelihood, helps):
        self.q, self.likelihood, self.helps = q, likelihood, helps


@pytest.mark.parametrize(
    ("answers", "kept", "asked"),
    [
        ([(-2.0, False), (-1.0, True)], 1, 1),  # does not help: the answer of the labels
        ([(-2.0, True), (-1.5, True), (-1.7, True), (-1.0, True)], 2, 3),  # stops at the first fall
        ([(-2.0, True), (-1.5, False)], 1, 2),
        ([(-2.0, True), (-2.0, True)], 1, 2),
        ([(-5.0, True), (-4.0, True), (-3.0, True), (-2.0, True)], 3, 3),  # no more rounds than asked for
    ],
)
def test_rounds_end_with_the_highest_likelihood(answers, kept, asked):
    evidence, targets = Rounds(*answers), []

    def predict_unseen(q):
        targets.append(q)
        return q

    best, chosen = cross_fit(evidence, [predict_unseen], rounds=3)
    assert chosen == 0
    assert (best.n_rounds, best.answer.q, best.p) == (kept, kept, kept - 1)
    assert evidence.asked == asked
    assert targets == list(range(asked))  # every round learns the answer of the one before


def test_folds_are_alike():
    rng = np.random.default_rng(0)
    q = np.eye(3)[np.repeat([0, 1, 2], [50, 20, 5])]
    learnable = rng.random(75) < 0.8
    fold = draw_folds(q, learnable, 5, rng)
    assert np.ptp(np.bincount(fold)) == 0
    for c in range(3):
        assert np.ptp(np.bincount(fold[learnable & (q[:, c] == 1)], minlength=5)) <= 1
    assert not np.array_equal(fold, draw_folds(q, learnable, 5, np.random.default_rng(1)))


def test_targets_are_probable_classes_with_weights_that_sum_to_one():
    q = np.array([[0.995, 0.005, 0.0], [0.6, 0.395, 0.005], [0.2, 0.3, 0.5]])
    row, target, weight = weighted_targets(q)
    assert row.tolist() == [0, 1, 1, 2, 2, 2]
    assert target.tolist() == [0, 0, 1, 0, 1, 2]
    np.testing.assert_allclose(weight, [1, 0.6 / 0.995, 0.395 / 0.995, 0.2, 0.3, 0.5])
    many = np.full((2, 500), 1 / 500)  # every class is below the floor
    assert weighted_targets(many)[0].tolist() == [0, 1]


def test_weights_reach_the_last_step():
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    assert weight_parameter(LogisticRegression()) == "sample_weight"
    assert weight_parameter(inner) == "logisticregression__sample_weight"
    assert weight_parameter(make_pipeline(inner)) == "pipeline__logisticregression__sample_weight"
    assert weight_parameter(KNeighborsClassifier()) is None
    assert weight_parameter(make_pipeline(StandardScaler(), KNeighborsClassifier())) is None


@pytest.fixture
def soft():
    rng = np.random.default_rng(0)
    q = rng.dirichlet([0.5, 0.5, 0.5], size=60)
    return rng.normal(size=(60, 2)) + 2 * q[:, :2], q, np.array(["a", "b", "c"])


def test_a_soft_fit_is_the_fit_with_all_classes_as_weighted_rows(soft):
    X, q, classes = soft
    rows = np.arange(10, 50)
    q[q < 0.01] = 0
    q /= q.sum(axis=1, keepdims=True)
    slow = LogisticRegression().fit(
        np.repeat(X[rows], 3, axis=0), np.tile(classes, 40), sample_weight=q[rows].ravel()
    )
    p = fit_soft(LogisticRegression(), X, q, rows, classes).predict_proba(X)
    np.testing.assert_allclose(p, slow.predict_proba(X), atol=1e-4)


def test_without_weights_the_most_probable_class_is_learnt(soft):
    X, q, classes = soft
    rows = np.arange(60)
    model = fit_soft(KNeighborsClassifier(1), X, q, rows, classes)
    np.testing.assert_array_equal(model.estimator.predict(X), classes[q.argmax(axis=1)])


def test_classes_that_are_absent_get_a_small_probability(soft):
    X, q, _ = soft
    classes, rows = np.array(["d", "b", "a", "c"]), np.arange(60)  # in no order
    wide = np.c_[np.zeros(60), q]
    p = fit_soft(LogisticRegression(), X, wide, rows, classes).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(p[:, 0], 1 / 64)
    same = fit_soft(LogisticRegression(), X, q, rows, classes[1:]).predict_proba(X)
    np.testing.assert_allclose(p[:, 1:], same * 63 / 64)
    one = np.tile([0.0, 1.0, 0.0, 0.0], (60, 1))
    p = fit_soft(LogisticRegression(), X, one, rows, classes).predict_proba(X)
    np.testing.assert_allclose(p, np.tile([1, 61, 1, 1], (60, 1)) / 64)


def test_an_item_s_own_target_has_no_influence_on_its_probabilities(soft):
    X, q, classes = soft
    learnable = np.arange(60) >= 6  # the first six are only predicted
    fold, steps = np.arange(60) % 4, []
    unseen = OutOfFold(LogisticRegression(), X, learnable, fold, classes, lambda: steps.append(1))
    before, other = unseen(q), q.copy()
    assert len(steps) == 4
    other[:6] = np.roll(q[:6], 1, axis=1)
    np.testing.assert_array_equal(unseen(other), before)
    other[20] = np.roll(q[20], 1)
    after = unseen(other)
    np.testing.assert_array_equal(after[fold == 0], before[fold == 0])
    assert (after[fold == 1] != before[fold == 1]).any()
