"""Simulated annotators against slow loops and statistics."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from annotmix.datasets.simulation import confuser, hammer, local_expert, simulate, spammer, specialist, thin

C = 5
CROWD = {
    "hammer": hammer(C, 0.8),
    "spammer": spammer(C),
    "always": spammer(C, always=2),
    "specialist": specialist(C, [0, 1], 0.9, 0.3),
    "confuser": confuser(C, [(0, 3)], chance=0.6, accuracy=0.9),
    "adversary": hammer(C, 0.05),
}


def full(n=400, seed=0):
    y = np.random.default_rng(seed + 100).integers(C, size=n)
    return y, simulate(y, CROWD, random_state=seed)


@pytest.mark.parametrize("name", CROWD)
def test_matrices_are_chances(name):
    assert CROWD[name].shape == (C, C)
    assert np.all(CROWD[name] >= 0)
    np.testing.assert_allclose(CROWD[name].sum(axis=1), 1)


def test_hammer_spreads_errors_evenly():
    matrix = hammer(3, 0.8)
    np.testing.assert_allclose(matrix, [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


def test_spammers_do_not_look():
    np.testing.assert_allclose(spammer(4), 0.25)
    np.testing.assert_array_equal(spammer(3, always=1), [[0, 1, 0]] * 3)


def test_specialist_is_good_at_some_classes_only():
    np.testing.assert_allclose(np.diag(specialist(4, [1, 3], 0.9, 0.4)), [0.4, 0.9, 0.4, 0.9])


def test_confuser_swaps_only_its_pairs():
    matrix = confuser(4, [(0, 2)], chance=0.7, accuracy=1.0)
    np.testing.assert_allclose(matrix, [[0.3, 0, 0.7, 0], [0, 1, 0, 0], [0.7, 0, 0.3, 0], [0, 0, 0, 1]])


def test_simulated_labels_follow_the_matrices():
    y, labels = full(n=20_000)
    for m, (name, chances) in enumerate(CROWD.items()):
        own = labels.annotator == m
        for c in range(C):
            given = labels.label[own][y[labels.item[own]] == c]
            share = np.bincount(given, minlength=C) / len(given)
            # five standard errors: one of the 150 cells fails about once in 10,000 seeds
            tolerance = 5 * np.sqrt(chances[c] * (1 - chances[c]) / len(given))
            assert np.all(np.abs(share - chances[c]) <= tolerance + 1e-12), (name, c)


def test_simulate_equals_the_obvious_loop():
    y, labels = full(n=50)
    draws = np.random.default_rng(0).random((50, len(CROWD)))
    expected = np.empty((50, len(CROWD)), dtype=int)
    for n in range(50):
        for m, chances in enumerate(CROWD.values()):
            left = draws[n, m]
            for k in range(C):
                expected[n, m] = k
                left -= chances[y[n], k]
                if left < 0:
                    break
    np.testing.assert_array_equal(labels.to_matrix().to_numpy(), expected)


def test_impossible_labels_are_never_drawn():
    _, labels = full(n=5000)
    assert set(labels.label[labels.annotator == list(CROWD).index("always")]) == {2}


def test_names_and_seeds():
    y = np.array([0, 1, 2, 1])
    crowd = {"a": hammer(3, 1.0), "b": spammer(3)}
    labels = simulate(y, crowd, classes=["x", "y", "z"], random_state=np.random.default_rng(1))
    assert list(labels.annotators) == ["a", "b"]
    assert list(labels.classes) == ["x", "y", "z"]
    assert list(labels.to_matrix()["a"]) == ["x", "y", "z", "y"]
    again = simulate(y, crowd, classes=["x", "y", "z"], random_state=np.random.default_rng(1))
    np.testing.assert_array_equal(labels.label, again.label)


def test_local_expert_changes_from_near_to_far():
    X = np.array([[0.0, 0.0], [3.0, 4.0], [60.0, 80.0]])
    near, far = hammer(3, 0.9), spammer(3, always=2)
    expert = local_expert(X, X[0], near, far, radius=5)
    np.testing.assert_allclose(expert.closeness, [1, 0.5, 0], atol=1e-12)
    np.testing.assert_allclose(local_expert(X, X[0], near, far).closeness, expert.closeness, atol=1e-12)
    # many items at the three places: what they are given follows the mix of the two matrices
    place, y = np.repeat(np.arange(3), 6000), np.tile(np.arange(3), 6000)
    many = local_expert(X[place], X[0], near, far, radius=5)
    given = simulate(y, {"local": many, "hammer": near}, random_state=0).to_matrix()["local"].to_numpy()
    for n, closeness in enumerate([1, 0.5, 0]):
        for c in range(3):
            share = np.bincount(given[(place == n) & (y == c)], minlength=3) / 2000
            np.testing.assert_allclose(share, closeness * near[c] + (1 - closeness) * far[c], atol=0.06)


def test_thin_keeps_a_subset_in_range():
    _, labels = full()
    few = thin(labels, (2, 4), random_state=3)
    assert set(few.labels_per_item) == {2, 3, 4}
    before = set(zip(labels.item, labels.annotator, labels.label, strict=True))
    assert set(zip(few.item, few.annotator, few.label, strict=True)) <= before
    assert few.n_items == labels.n_items
    assert list(few.annotators) == list(labels.annotators)


def test_thin_makes_loads_unequal():
    _, labels = full(n=4000)
    few = thin(labels, (1, 1), loads=[1, 1, 2, 4, 8, 16], random_state=0)
    expected = 4000 * np.array([1, 1, 2, 4, 8, 16]) / 32
    assert np.all(np.abs(few.labels_per_annotator - expected) < 5 * np.sqrt(expected))
    drawn = thin(labels, random_state=0).labels_per_annotator
    assert drawn.max() > 1.5 * drawn.min()


def slowly_thinned(labels, per_item, seed):
    """The pairs (item, annotator) that are kept, item by item, clock by clock."""
    rng = np.random.default_rng(seed)
    load = rng.beta(1, 3, size=labels.n_annotators)
    clock = rng.exponential(size=len(labels))
    wanted = rng.integers(per_item[0], per_item[1] + 1, size=labels.n_items)
    kept = []
    for n in range(labels.n_items):
        own = [p for p in range(len(labels)) if labels.item[p] == n]
        own.sort(key=lambda p: clock[p] / load[labels.annotator[p]])
        kept += [(n, labels.annotator[p]) for p in own[: wanted[n]]]
    return sorted(kept)


@pytest.mark.parametrize("per_item", [(2, 4), (1, 1), (3, 6)])
def test_thin_equals_the_obvious_loop(per_item):
    _, labels = full(n=60)
    few = thin(thin(labels, (4, 6), random_state=5), per_item, random_state=7)
    expected = slowly_thinned(thin(labels, (4, 6), random_state=5), per_item, 7)
    assert list(zip(few.item, few.annotator, strict=True)) == expected


def test_thin_draws_like_numpy_without_replacement():
    n, loads = 20_000, np.array([8, 4, 2, 2, 1, 1])
    _, labels = full(n=n)
    few = thin(labels, 3, loads=loads, random_state=0)
    rng = np.random.default_rng(1)
    chosen = [rng.choice(6, size=3, replace=False, p=loads / loads.sum()) for _ in range(n)]
    expected = np.bincount(np.concatenate(chosen), minlength=6)
    assert np.all(few.labels_per_item == 3)
    # both are draws: five standard errors of the difference of two counts
    assert np.all(np.abs(few.labels_per_annotator - expected) < 5 * np.sqrt(n / 2))


def test_thin_takes_each_number_of_labels_equally_often_and_loads_from_beta():
    _, labels = full(n=6000)
    few = thin(labels, (2, 4), random_state=0)
    counts = np.bincount(few.labels_per_item)[2:]
    assert np.all(np.abs(counts - 2000) < 5 * np.sqrt(2000 * 2 / 3))
    share = np.concatenate(
        [thin(labels, 1, random_state=seed).labels_per_annotator / 6000 for seed in range(60)]
    )
    rng = np.random.default_rng(0)
    load = rng.beta(1, 3, size=(5000, len(CROWD)))
    assert stats.ks_2samp(share, (load / load.sum(axis=1, keepdims=True)).ravel()).pvalue > 0.01


def test_thin_takes_a_fixed_number():
    _, labels = full(n=30)
    assert set(thin(labels, 1, random_state=0).labels_per_item) == {1}
    np.testing.assert_array_equal(
        thin(labels, 2, random_state=0).annotator, thin(labels, (2, 2), random_state=0).annotator
    )


def test_thin_keeps_all_labels_of_an_item_that_has_few():
    _, labels = full(n=20)
    assert len(thin(labels, (99, 99), random_state=0)) == len(labels)


def test_thin_is_repeatable():
    _, labels = full()
    one, two, other = (thin(labels, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.annotator, two.annotator)
    assert len(one) != len(other) or np.any(one.annotator != other.annotator)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hammer(3, 1.2), "accuracy"),
        (lambda: simulate([0, 1], {"a": np.ones((2, 2))}), "sum to 1"),
        (lambda: thin(full(5)[1], loads=[1, 2]), "loads must be 6"),
        (lambda: thin(full(5)[1], loads=[0, 1, 1, 1, 1, 1]), "positive"),
        (lambda: thin(full(5)[1], loads=[np.nan, 1, 1, 1, 1, 1]), "positive"),
        (lambda: thin(full(5)[1], 0), "per_item"),
        (lambda: thin(full(5)[1], (4, 2)), "per_item"),
        (lambda: local_expert(np.ones((3, 2)), [1, 1], hammer(3), spammer(3)), "radius"),
        (lambda: simulate([0], {"a": local_expert([[0], [1]], [0], hammer(3), spammer(3), 1)}), "2 items"),
        (lambda: simulate([0], {"a": np.ones((2, 3)) / 3}), "square"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_needs_no_torch():
    code = "import sys, annotmix.datasets.simulation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
