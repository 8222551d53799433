"""Which items to have labelled next, and by whom."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import annotmix
from annotmix.estimators import suggestion
from annotmix.estimators.suggestion import _greedy, suggest_from


@pytest.fixture(scope="module")
def fitted():
    return {}


@pytest.fixture
def model(noisy, fitted):
    """Fitted once; no test changes it."""
    if not fitted:
        clf = annotmix.AnnotMixClassifier(max_epochs=15, random_state=0, progress=False)
        fitted["model"] = clf.fit(noisy.X, noisy.Z)
    return fitted["model"]


def entropy(p):
    return -sum(v * np.log2(v) for v in p if v > 0)


def test_gain_is_mutual_information(model, noisy):
    posterior = model.judge(noisy.X, noisy.Z)
    table = annotmix.suggest(model, noisy.X, noisy.Z, 10)
    for row in table.itertuples():
        q, theta = posterior.answer.q[row.item], posterior.confusion([row.annotator]).to_numpy()
        joint = q[:, None] * theta
        expected = entropy(q) + entropy(joint.sum(axis=0)) - entropy(joint.ravel())
        assert row.gain == pytest.approx(expected)
        assert row.performance == pytest.approx(sum(q[c] * theta[c, c] for c in range(3)))


def test_few_matrices_at_once_change_nothing(model, noisy, monkeypatch):
    whole = annotmix.suggest(model, noisy.X, noisy.Z, 20)
    monkeypatch.setattr(suggestion, "MOST_ENTRIES", 1)
    assert annotmix.suggest(model, noisy.X, noisy.Z, 20).equals(whole)


def test_with_many_classes_fewer_annotators_are_compared(model, noisy, monkeypatch):
    every = annotmix.suggest(model, noisy.X, noisy.Z, 20)
    monkeypatch.setattr(suggestion, "MOST_MATRICES", 2 * 3**2)
    few = annotmix.suggest(model, noisy.X, noisy.Z, 20)
    best_two = model.judge(noisy.X, noisy.Z).annotators.index[:2]
    assert set(few["annotator"]) <= set(best_two) < set(every["annotator"]) | set(best_two)
    assert every["annotator"].nunique() > 2


def test_of_very_many_annotators_the_surely_good_ones_are_asked(noisy, monkeypatch):
    """Two labels, both right, are no reason to ask somebody first."""
    monkeypatch.setattr(suggestion, "MOST_ANNOTATORS", 2)
    right = np.full((len(noisy.Z), 1), -1)
    right[:2, 0] = noisy.y[:2]
    Z = np.hstack([right, noisy.Z])
    clf = annotmix.AnnotMixClassifier(max_epochs=2, random_state=0, progress=False).fit(noisy.X, Z)
    asked = annotmix.suggest(clf, noisy.X, Z, 40, per_annotator=20)
    assert set(asked["annotator"]) == {1, 2}  # right in 95 % and 80 %


def test_limits_hold_and_known_pairs_are_left_out(model, noisy):
    table = annotmix.suggest(model, noisy.X, noisy.Z, 100)
    assert len(table) == 100
    assert table["item"].is_unique
    assert table["annotator"].value_counts().max() <= 40  # twice an equal share among five
    assert all(noisy.Z[row.item, row.annotator] == -1 for row in table.itertuples())
    several = annotmix.suggest(model, noisy.X, noisy.Z, 30, per_item=2, per_annotator=8)
    assert several["item"].value_counts().max() <= 2
    assert several["annotator"].value_counts().max() <= 8
    assert not several.duplicated(["item", "annotator"]).any()


def test_excluded_items_are_not_suggested(model, noisy):
    posterior = model.judge(noisy.X, noisy.Z)
    first = suggest_from(posterior, 10)
    others = suggest_from(posterior, 10, exclude=first["item"].tolist())
    assert len(others) == 10
    assert not set(first["item"]) & set(others["item"])


def test_good_annotators_are_asked_first(model, noisy):
    first = annotmix.suggest(model, noisy.X, noisy.Z, 40, per_annotator=40)
    assert first["annotator"].isin([0, 1]).mean() > 0.7  # right in 95 % and 80 %


def test_no_more_than_there_is(model, noisy):
    Z = np.where(noisy.Z < 0, 0, noisy.Z)
    Z[:3, 2] = -1
    found = annotmix.suggest(model, noisy.X, Z, 10)
    assert len(found) == 0 or set(found["annotator"]) == {2}
    assert len(found) <= 3


@pytest.mark.parametrize("credit", [0.0, 3.0])
def test_greedy_against_trying_every_pair(credit):
    rng = np.random.default_rng(0)
    gain, free = rng.random((12, 4)), rng.random((12, 4)) > 0.2
    labels, limit, price = np.array([0, 3, 20, 50]), np.array([5, 2, 5, 0]), np.array([1, 1.5, 0.5, 1])
    chosen, load, count, left = [], [0] * 4, [0] * 12, 11.0
    while True:
        worth = {}
        for n, m in np.argwhere(free).tolist():
            known = labels[m] + load[m]
            weight = credit / (credit + known) if credit else 0
            if load[m] < limit[m] and count[n] < 2 and price[m] <= left and (n, m) not in chosen:
                worth[n, m] = ((1 - weight) * gain[n, m] + weight * max(gain[n])) / price[m]
        if not worth:
            break
        chosen.append(max(worth, key=worth.get))
        load[chosen[-1][1]] += 1
        count[chosen[-1][0]] += 1
        left -= price[chosen[-1][1]]
    assert len(chosen) > 8
    assert _greedy(gain, free, labels, 11.0, 2, limit, price, credit) == chosen


def test_gain_per_cost_decides_and_the_budget_is_money(model, noisy):
    cost = {0: 3.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}
    many = {"per_annotator": 1000, "credit": 0}
    plain = annotmix.suggest(model, noisy.X, noisy.Z, 20, **many)
    assert "cost" not in plain
    assert (plain["annotator"] == 0).mean() > 0.5
    dear = annotmix.suggest(model, noisy.X, noisy.Z, 20, cost=cost, **many)
    assert (dear["annotator"] == 0).mean() < 0.2  # somewhat better than annotator 1, but not three times
    assert 19 < dear["cost"].sum() <= 20
    assert dear["cost"].tolist() == [cost[m] for m in dear["annotator"]]
    assert (dear["gain"] / dear["cost"]).is_monotonic_decreasing
    cents = annotmix.suggest(
        model, noisy.X, noisy.Z, 2000, cost={m: 100 * c for m, c in cost.items()}, **many
    )
    assert cents[["item", "annotator"]].equals(dear[["item", "annotator"]])


def test_loads_of_single_annotators(model, noisy):
    asked = annotmix.suggest(model, noisy.X, noisy.Z, 50, per_annotator={0: 3, 1: 0})
    load = asked["annotator"].value_counts()
    assert load[0] == 3
    assert 1 not in load
    assert load.max() <= 20  # the others: twice an equal share


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "numbers",
    [
        {"per_annotator": 10**30},
        {"per_annotator": {0: 10**30, 1: 0}},
        {"cost": dict.fromkeys(range(5), 1e-300)},
        {"budget": 1e300},
    ],
)
def test_numbers_beyond_every_integer_are_no_limit(model, noisy, numbers):
    table = annotmix.suggest(model, noisy.X, noisy.Z, **{"budget": 4, "per_item": 1} | numbers)
    assert len(table) >= 4
    if isinstance(numbers.get("per_annotator"), dict):
        assert 1 not in set(table["annotator"])


def test_the_little_known_are_tried(model, noisy):
    newcomers = {"newcomers": ["ann", "bob"], "per_annotator": 1000}
    asked = annotmix.suggest(model, noisy.X, noisy.Z, 60, **newcomers)
    tried = asked["annotator"].isin(["ann", "bob"])
    assert 1 < tried.sum() < 30  # a little
    assert asked.loc[tried, "performance"].between(0.2, 0.9).all()
    bold = annotmix.suggest(model, noisy.X, noisy.Z, 60, credit=50, **newcomers)
    assert bold["annotator"].isin(["ann", "bob"]).sum() > tried.sum()
    shy = annotmix.suggest(model, noisy.X, noisy.Z, 60, credit=0, **newcomers)
    assert not shy["annotator"].isin(["ann", "bob"]).any()
    only = annotmix.suggest(model, noisy.X, noisy.Z, 4, annotators=[], newcomers=["ann"])
    assert only["annotator"].tolist() == ["ann"] * 4


def test_annotators_without_labels_are_like_newcomers(noisy):
    Z = np.column_stack([noisy.Z, np.full(len(noisy.Z), -1)])
    clf = annotmix.AnnotMixClassifier(max_epochs=2, random_state=0, progress=False).fit(noisy.X, Z)
    posterior = clf.judge(noisy.X, Z)
    asked = suggest_from(posterior, 5, annotators=[5])
    new = suggest_from(posterior, 5, annotators=[], newcomers=["ann"])
    assert asked["item"].tolist() == new["item"].tolist()
    assert asked["gain"].tolist() == new["gain"].tolist()
    q, theta = posterior.answer.q[asked["item"]], posterior.confusion([5]).to_numpy()
    np.testing.assert_allclose(asked["performance"], q @ np.diag(theta))


def test_a_label_matrix_gives_pairs_of_indices(noisy):
    """What scikit-activeml's multi-annotator query strategies return."""
    y = np.where(noisy.Z < 0, np.nan, noisy.Z)
    clf = annotmix.AnnotMixClassifier(max_epochs=2, random_state=0, progress=False).fit(noisy.X, y)
    pairs = annotmix.suggest(clf, noisy.X, y, 7)[["item", "annotator"]].to_numpy()
    assert pairs.shape == (7, 2)
    assert pairs.dtype.kind == "i"
    assert np.isnan(y[tuple(pairs.T)]).all()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"budget": 0}, "budget must be a positive number, found 0"),
        ({"budget": float("nan")}, "budget must be a positive number, found nan"),
        ({"budget": "5"}, "budget must be a positive number, found '5'"),
        ({"per_item": 1.5}, "per_item must be a positive integer, found 1.5"),
        ({"per_annotator": 0}, "per_annotator must be a positive integer, found 0"),
        ({"per_annotator": {1: -1}}, "per_annotator of 1 must be 0 or a positive integer, found -1"),
        ({"cost": {0: 1.0}}, "cost must name every available annotator; missing: 1, 2, 4, 3"),
        ({"cost": dict.fromkeys(range(5), 0)}, "The cost of 0 must be a positive number, found 0"),
        ({"credit": -1}, "credit must be 0 or a positive number, found -1"),
        ({"annotators": [7]}, "Unknown annotators 7; .* newcomers"),
        ({"annotators": []}, "must name at least one annotator"),
        ({"newcomers": [3]}, "newcomers names 3, but the model knows them"),
        ({"newcomers": ["ann", "ann"]}, "repeated: 'ann'"),
    ],
)
def test_wrong_arguments_are_named(model, noisy, wrong, message):
    with pytest.raises(ValueError, match=message):
        annotmix.suggest(model, noisy.X, noisy.Z, **({"budget": 1} | wrong))


def test_newcomers_are_judged_by_the_annotators_of_their_kind():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    right = rng.random((300, 5)) < [0.95, 0.9, 0.65, 0.6, 0.65]
    table = [
        (n, name, y[n] if right[n, m] else 1 - y[n])
        for m, name in enumerate(["ann", "bob", "one", "two", "three"])
        for n in range(300)
        if rng.random() < 0.6
    ]
    result = annotmix.posterior(pd.DataFrame(table, columns=["item", "annotator", "label"]))
    kinds = {"ann": "people", "bob": "people", "one": "models", "two": "models", "three": "models"}
    kinds |= {"eve": "people", "four": "models", "rule": "rules"}
    new = {"newcomers": ["eve", "four", "rule", "who"], "annotators": [], "per_item": 4}
    new |= {"per_annotator": 10, "credit": 0}
    found = suggest_from(result, 40, kinds=kinds, **new).groupby("annotator")["performance"].mean()
    plain = suggest_from(result, 40, **new).groupby("annotator")["performance"].mean()
    assert plain.max() - plain.min() < 1e-9
    assert found["eve"] > plain["eve"] > found["four"]
    theta = result.counted.matrices(np.array([0, 1]))
    n = result.annotations.labels_per_annotator[:2]
    mean = sum(w * t for w, t in zip(n, theta, strict=True)) / n.sum()
    first = suggest_from(result, 1, kinds=kinds, **{**new, "newcomers": ["eve"]}).iloc[0]
    q = result.probabilities.loc[first["item"]].to_numpy()
    np.testing.assert_allclose(first["performance"], q @ np.diag(mean), rtol=1e-9)
