"""What "auto" stands for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from torch import nn

import annotmix

ENCODED = ((128,), 0.5, 1e-4)
SMALL_TABLE = ((256, 128), 0.5, 0.0)
LARGE_TABLE = ((256, 128), 0.0, 0.0)


def fitted(shape, n_labelled=20, **params):
    """A classifier of items of that shape, of which the first ones have a label."""
    rng = np.random.default_rng(0)
    n = n_labelled + 5
    Z = np.full((n, 2), -1)
    Z[:n_labelled, 0] = rng.integers(2, size=n_labelled)
    clf = annotmix.make_classifier(
        "mv-base", **({"batch_size": 1024, "max_epochs": 1, "random_state": 0, "progress": False} | params)
    )
    with pytest.warns(UserWarning, match="no labels"):
        return clf.fit(rng.normal(size=(n, *shape)), Z)


def network(clf):
    return clf.hidden_, clf.dropout_, clf.weight_decay_


@pytest.mark.parametrize(
    ("shape", "n_labelled", "expected"),
    [
        ((512,), 20, ENCODED),
        ((257,), 5000, ENCODED),
        ((256,), 20, SMALL_TABLE),
        ((5,), 4999, SMALL_TABLE),
        ((5,), 5000, LARGE_TABLE),
    ],
)
def test_auto_follows_features_and_labelled_items(shape, n_labelled, expected):
    clf = fitted(shape, n_labelled)
    assert network(clf) == expected
    backbone = clf.module_.classifier.backbone
    assert tuple(m.out_features for m in backbone if isinstance(m, nn.Linear)) == expected[0]
    assert {m.p for m in backbone if isinstance(m, nn.Dropout)} == ({expected[1]} - {0.0})
    assert clf.get_params()["hidden"] == "auto"


@pytest.mark.parametrize(
    ("shape", "backbone"), [((300, 2, 2), "cnn"), ((300,), nn.Linear(300, 4)), ((1, 32, 32), "resnet18")]
)
def test_other_backbones_have_no_penalty(shape, backbone):
    clf = fitted(shape, backbone=backbone)
    assert (clf.dropout_, clf.weight_decay_) == (0.0, 0.0)
    if backbone == "cnn":
        assert clf.hidden_ == (256, 128)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"hidden": [8, 4]}, ((8, 4), 0.5, 1e-4)),
        ({"dropout": 0}, ((128,), 0, 1e-4)),
        ({"weight_decay": 0.0}, ((128,), 0.5, 0.0)),
        ({"hidden": (8,), "dropout": 0.1, "weight_decay": 0.2}, ((8,), 0.1, 0.2)),
    ],
)
def test_explicit_values_win(params, expected):
    assert network(fitted((512,), **params)) == expected


def test_the_choice_is_made_anew_and_saved(tmp_path):
    clf = fitted((512,))
    clf.save(tmp_path)
    loaded = annotmix.load(tmp_path)
    assert network(loaded) == network(clf) == ENCODED
    assert loaded.get_params()["dropout"] == clone(loaded).dropout == "auto"
    X, Z = np.eye(6, 5), [0, 1] * 3
    assert network(loaded.fit(X, Z)) == network(clone(clf).fit(X, Z)) == SMALL_TABLE


def test_weight_decay_of_auto_is_trained_with():
    same, without = (fitted((300,), weight_decay=w, max_epochs=3, lr=0.1) for w in (1e-4, 0.0))
    auto = fitted((300,), max_epochs=3, lr=0.1)
    X = np.random.default_rng(1).normal(size=(9, 300))
    np.testing.assert_array_equal(auto.predict_proba(X), same.predict_proba(X))
    assert not np.array_equal(auto.predict_proba(X), without.predict_proba(X))


@pytest.mark.parametrize("lr", [1e38, float("inf"), float("nan"), 0, -1, "fast", True, None])
def test_a_learning_rate_out_of_range_is_named(lr):
    with pytest.raises(ValueError, match=r"lr must be positive and at most 1e\+06, found"):
        annotmix.AnnotMixClassifier(lr=lr).fit(np.eye(6, 5), [0, 1] * 3)
