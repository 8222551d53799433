"""People, models and rules compared, against loops over labels."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import annotmix
from annotmix.datasets.simulation import confuser, hammer, simulate

KINDS = {"ann": "human", "bob": "person", "m1": "LLM", "m2": "model", "rule": "labeling function"}
COST = {"ann": 2.0, "bob": 1.0, "m1": 0.1, "m2": 0.2}


def made(seed=0, n=300, weights=False):
    """Two people, two models that take class 0 for class 1, a rule, and somebody unknown."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    swap = confuser(3, [(0, 1)], 0.9)
    crowd = {"ann": hammer(3, 0.95), "bob": hammer(3, 0.9), "m1": swap, "m2": swap, "rule": hammer(3, 0.5)}
    labels = simulate(truth, crowd | {"eve": hammer(3, 0.8)}, random_state=seed).to_long()
    labels = labels.sample(frac=0.7, random_state=seed)
    if weights:
        labels["weight"] = rng.choice([0.5, 1.0, 2.0], size=len(labels))
    return annotmix.posterior(annotmix.Annotations.from_long(labels, items=range(n), classes=range(3)))


@pytest.mark.parametrize("weights", [False, True])
def test_equals_loops_over_labels(weights):
    posterior = made(weights=weights)
    found = annotmix.compare_kinds(posterior, KINDS, COST)
    names = {"human": "people", "person": "people", "LLM": "models", "model": "models"}
    kind = {name: names.get(word, "rules") for name, word in KINDS.items()} | {"eve": "unknown"}
    long = posterior.label_quality.assign(kind=lambda t: t["annotator"].map(kind))
    long["weight"] = long.get("weight", 1.0)
    assert list(found.kinds.index) == ["people", "models", "rules", "unknown"]
    for name, row in found.kinds.iterrows():
        own = long[long["kind"] == name]
        mean = (own["weight"] * own["probability"]).sum() / own["weight"].sum()
        assert row["accuracy"] == pytest.approx(mean, abs=0.003)
        assert row["low"] < row["accuracy"] < row["high"]
        assert (row["labels"], row["annotators"]) == (len(own), own["annotator"].nunique())
        paid = own[own["annotator"].isin(COST)]
        if len(paid):
            spent = paid["annotator"].map(COST).sum()
            assert row["cost_per_label"] == pytest.approx(spent / len(paid))
            assert row["cost_per_right_label"] == pytest.approx(spent / paid["probability"].sum())
        else:
            assert math.isnan(row["cost_per_label"])
    q = posterior.probabilities.to_numpy()
    models = long[long["kind"] == "models"]
    counts = np.zeros((3, 3))
    for row in models.itertuples():
        counts[:, row.label] += row.weight * q[row.item]
    expected = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.classes["models"], np.diag(expected))
    first = found.confusions.iloc[0]
    assert {first["class"], first["label"]} == {0, 1}
    assert first["models"] == pytest.approx(expected[int(first["class"]), int(first["label"])])
    assert first["models"] > first["people"] + 0.5


def test_items_that_models_get_wrong_and_people_right():
    posterior = made()
    found = annotmix.compare_kinds(posterior, KINDS).items
    long = posterior.label_quality
    assert 0 < len(found) <= 50
    for row in found.head(10).itertuples():
        own = long[long["item"] == row.item].set_index("annotator")["probability"]
        assert own[own.index.isin(["m1", "m2"])].mean() == pytest.approx(row.models)
        assert own[own.index.isin(["ann", "bob"])].mean() == pytest.approx(row.people)
        assert row.models < 0.5 <= row.people


def test_agreement_between_kinds():
    found = annotmix.compare_kinds(made(), KINDS).agreement
    by_pair = found.set_index(["kind", "other"])["agreement"]
    assert len(found) == 6
    long = made().annotations.to_long()
    both = long[long["annotator"].isin(["ann", "bob"])].merge(long[long["annotator"] == "rule"], on="item")
    share = (both["label_x"] == both["label_y"]).groupby(both["item"]).mean().mean()
    assert by_pair["people", "rules"] == pytest.approx(share)


def test_the_interval_takes_items_not_labels_as_independent():
    """Ten copies of one model tell no more about its accuracy than one does."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=200)
    gold = pd.Series(truth, index=range(200))
    one = np.where(rng.random(200) < 0.8, truth, 1 - truth)
    widths = []
    for copies in (1, 10):
        labels = pd.DataFrame({f"m{k}": one for k in range(copies)})
        row = annotmix.compare_kinds(
            annotmix.posterior(labels, gold=gold), dict.fromkeys(labels, "model")
        ).kinds.iloc[0]
        widths.append(row["high"] - row["low"])
    assert widths[1] == pytest.approx(widths[0], rel=0.05)


def test_without_people_there_is_nothing_to_set_models_against():
    found = annotmix.compare_kinds(made(), dict.fromkeys(KINDS, "model"))
    assert found.confusions.empty
    assert found.items.empty
    assert "models: " in repr(found)
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"ann": "robot arm"},), "The kind of 'ann' is 'robot arm', expected people"),
        ((KINDS, {"ann": -1}), "cost must be numbers of 0 or more, found -1"),
    ],
)
def test_errors_name_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        annotmix.compare_kinds(made(n=30), *arguments)
