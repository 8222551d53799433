"""The alternative annotator test, against the definitions written out."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import annotmix
from annotmix import Annotations, alternative_test
from annotmix.labels.replacement import benjamini_yekutieli


def crowd(seed, n_items, accuracies, share, n_classes=3):
    """A table of labels; each annotator labels each item with a probability."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    rows = [
        (n, m, truth[n] if rng.random() < accuracy else rng.integers(n_classes))
        for m, accuracy in accuracies.items()
        for n in np.flatnonzero(rng.random(n_items) < share)
    ]
    return pd.DataFrame(rows, columns=["item", "annotator", "label"])


@np.errstate(invalid="ignore")
def slow(table, model, people, epsilon):
    """Every step of the paper with dictionaries and loops."""
    given = {(n, m): z for n, m, z in table.itertuples(index=False)}
    items = sorted({n for n, _ in given})
    rows = {}
    for j in people:
        wins = []
        for n in items:
            others = [given[n, m] for m in people if m != j and (n, m) in given]
            if (n, j) in given and (n, model) in given and others:
                for_person = sum(z == given[n, j] for z in others) / len(others)
                for_model = sum(z == given[n, model] for z in others) / len(others)
                wins.append((for_model >= for_person, for_person >= for_model))
        f, h = np.array(wins, dtype=float).T
        d = h - f
        if len(d) >= 30:
            t = (d.mean() - epsilon) / (d.std(ddof=1) / math.sqrt(len(d)))
            p = stats.t.cdf(t, len(d) - 1)
        else:
            p = stats.wilcoxon(d, np.full(len(d), epsilon), alternative="less").pvalue
        rows[j] = (len(d), f.mean(), h.mean(), p)
    p = {j: row[3] for j, row in rows.items()}
    harmonic = sum(1 / k for k in range(1, len(p) + 1))
    last = 0
    ordered = sorted(p, key=p.get)
    for k, j in enumerate(ordered, 1):
        if p[j] <= k * 0.05 / (len(p) * harmonic):
            last = k
    return rows, set(ordered[:last])


@pytest.mark.parametrize(("n_items", "share"), [(300, 0.5), (40, 0.6)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equals_a_slow_version(seed, n_items, share):
    accuracies = {"model": 0.8, "a": 0.9, "b": 0.75, "c": 0.7, "d": 0.5, "other model": 0.3}
    table = crowd(seed, n_items, accuracies, share)
    people = ["a", "b", "c", "d"]
    for epsilon in (0.0, 0.1, 0.2):
        found = alternative_test(table, "model", people, epsilon)
        rows, replaced = slow(table, "model", people, epsilon)
        expected = pd.DataFrame.from_dict(rows, orient="index")
        columns = ["n_items", "model_wins", "person_wins", "p_value"]
        np.testing.assert_allclose(found.people.loc[people, columns].astype(float), expected.astype(float))
        assert set(found.people.index[found.people["replace"]]) == replaced
        assert found.winning_rate == len(replaced) / 4
        assert found.passes == (len(replaced) >= 2)
        assert found.advantage == pytest.approx(np.mean([row[1] for row in rows.values()]))


def test_benjamini_yekutieli_equals_scipy():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 40):
        p = rng.random(n) ** 6
        expected = stats.false_discovery_control(p, method="by") <= 0.05
        np.testing.assert_array_equal(benjamini_yekutieli(p, 0.05), expected)
    assert benjamini_yekutieli(np.array([np.nan, 0.001]), 0.05).tolist() == [False, True]


def test_a_good_model_passes_and_a_bad_one_does_not():
    people = {"a": 0.8, "b": 0.8, "c": 0.8}
    table = crowd(3, 400, people | {"good": 0.95, "bad": 0.4}, 1.0)
    assert alternative_test(table, "good", people).passes
    assert not alternative_test(table, "bad", people).passes
    assert "good passes: winning rate 1.00 over 3 people" in repr(alternative_test(table, "good", people))


def test_perfect_agreement_and_soft_labels():
    same = Annotations.from_matrix([[0, 0, 0], [1, 1, 1]] * 20)
    assert alternative_test(same, 2).people["p_value"].tolist() == [0.0, 0.0]
    assert alternative_test(same, 2, epsilon=0.0).people["p_value"].tolist() == [1.0, 1.0]
    long = same.to_long()
    soft = pd.concat([long.assign(weight=0.6), long.assign(label=1 - long["label"], weight=0.4)])
    found = alternative_test(Annotations.from_long(soft), 2)
    pd.testing.assert_frame_equal(found.people, alternative_test(same, 2).people)


def test_a_person_without_items_to_compare_is_left_out():
    table = crowd(0, 60, {"m": 0.9, "a": 0.8, "b": 0.8}, 1.0)
    table = pd.concat([table, pd.DataFrame([("alone", "c", 0)], columns=table.columns)]).astype({"item": str})
    found = alternative_test(table, "m")
    assert found.people["n_items"].to_dict() == {"a": 60, "b": 60, "c": 0}
    assert found.n_people == 2
    assert found.winning_rate == found.people["replace"].sum() / 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "x"}, "model 'x' is no annotator"),
        ({"model": "m", "people": ["a", "x"]}, "unknown annotators 'x'"),
        ({"model": "m", "people": ["a"]}, "needs two people or more, found 1"),
        ({"model": "m", "people": ["a", "m"]}, "people names the model itself"),
        ({"model": "m", "epsilon": 1.5}, "epsilon must be a number from 0 to below 1"),
    ],
)
def test_errors_name_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        annotmix.alternative_test(crowd(0, 20, {"m": 0.9, "a": 0.8, "b": 0.8}, 1.0), **arguments)
