"""Classifiers that learn label sets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.set_crowds import set_crowd

import annotmix
from annotmix import Batch, CrowdClassifier
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


@pytest.fixture(scope="module")
def network(problem):
    X, _, sets = problem
    clf = annotmix.AnnotMixPlusClassifier(max_epochs=15, random_state=0, progress=False)
    return clf.fit(X, sets, items=sets.items, gold={sets.items[0]: []})


def test_one_network_with_an_output_per_class(network, problem):
    check(network, problem)
    assert network.module_.classifier.n_classes == 5
    assert network.consensus()["labels"].iloc[0] == ()
    p = network.predict_proba(problem[0])
    assert not np.allclose(p.sum(axis=1), 1)
    assert network.evaluate(problem[0], problem[1])["hamming"] < 0.2
    assert network.score(problem[0], problem[2]) < 0


def test_the_network_is_saved_and_loaded(network, problem, tmp_path):
    check_saved(network, problem, tmp_path)


def test_the_same_seed_gives_the_same_network(network, problem):
    X, _, sets = problem
    again = annotmix.AnnotMixPlusClassifier(max_epochs=15, random_state=0, progress=False)
    again.fit(X, sets, items=sets.items, gold={sets.items[0]: []})
    np.testing.assert_array_equal(again.predict_proba(X), network.predict_proba(X))


def test_the_loss_is_the_cross_entropy_of_every_class(problem):
    X, _, sets = problem
    clf = annotmix.AnnotMixPlusClassifier(
        max_epochs=1, folds=0, alpha=0, dropout=0, random_state=0, progress=False
    )
    clf.fit(X, sets)
    module = clf.module_
    module.train()
    module.q = torch.rand(len(X), 5)
    module.fold = torch.zeros(len(X), dtype=torch.long)
    rows = torch.arange(8)
    x = torch.tensor(X[:8], dtype=torch.float32)
    batch = Batch(x, rows, rows, rows, rows)
    loss = module.loss(batch, np.random.default_rng(0))
    p = torch.sigmoid(module.classifier.own.logits(module.classifier.own.features(x)))
    q = module.q[:8]
    expected = -(q * p.log() + (1 - q) * (1 - p).log()).sum() / 8
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=1e-4)


def test_what_sets_cannot_be_combined_with_is_refused(problem, network):
    X, true, sets = problem
    clf = annotmix.AnnotMixPlusClassifier(max_epochs=1, progress=False)
    with pytest.raises(ValueError, match="validation cannot be used"):
        clf.fit(X, sets, validation=(X, true))
    with pytest.raises(AttributeError, match="annotators_by_class"):
        network.predict_annotator_perf(X)
