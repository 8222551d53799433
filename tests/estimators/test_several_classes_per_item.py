"""Classifiers that learn label sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from helpers.set_crowds import set_crowd

import annotmix
from annotmix import CrowdClassifier
from annotmix.labels.metrics import set_scores
from annotmix.labels.set_posterior import vote_by_class


@pytest.fixture(scope="module")
def problem():
    true, sets = set_crowd(200, 10, 3)
    X = np.asarray(true + np.random.default_rng(0).normal(0, 0.4, true.shape))
    return X, true, sets


@pytest.fixture(scope="module")
def crowd(problem):
    X, _, sets = problem
    gold = {sets.items[0]: [], sets.items[1]: ["rock", "calm"]}
    return CrowdClassifier(random_state=0, progress=False).fit(X, sets, items=sets.items, gold=gold)


def check(clf, problem):
    X, true, sets = problem
    p, chosen = clf.predict_proba(X), clf.predict(X)
    assert p.shape == chosen.shape == true.shape
    assert clf.classes_.tolist() == sets.classes.tolist()
    assert set(np.unique(chosen)) <= {0, 1}
    assert set_scores(true, chosen)["micro-f1"] > 0.75
    voted = set_scores(true, vote_by_class(sets))
    assert set_scores(true, clf.posterior_.members)["subset-acc"] > voted["subset-acc"] + 0.1
    assert clf.score(X, true) == pytest.approx((chosen == true).all(axis=1).mean())
    quality = clf.label_quality()
    assert len(quality) == len(sets)
    assert {"labels", "probability"} <= set(quality.columns)
    new = clf.consensus(X[:20], sets[:20])
    assert len(new) == 20


def check_saved(clf, problem, folder):
    X, _, _ = problem
    clf.save(folder)
    again = annotmix.load(folder)
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X), atol=1e-6)
    pd.testing.assert_frame_equal(again.consensus(), clf.consensus())
    assert again.score(X, clf.predict(X)) == 1.0


def test_one_estimator_per_class(crowd, problem):
    check(crowd, problem)
    assert len(crowd.estimator_) == 5
    assert crowd.consensus()["labels"].iloc[:2].tolist() == [(), ("calm", "rock")]
    X, _, sets = problem
    assert crowd.score(X, sets) < 0  # a mean log-likelihood


def test_it_is_saved_and_loaded(crowd, problem, tmp_path):
    check_saved(crowd, problem, tmp_path)


def test_what_takes_one_class_refuses_sets(problem):
    X, _, sets = problem
    with pytest.raises(ValueError, match="AnnotMixPlusClassifier, CrowdClassifier"):
        annotmix.AnnotMixClassifier(max_epochs=1).fit(X, sets)
    with pytest.raises(ValueError, match="LabelSets"):
        annotmix.majority_vote(sets)
