from __future__ import annotations

import doctest
import math
import os
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotmix.labels import aggregation
from annotmix.labels.aggregation import aggregate, aggregated, majority_vote
from annotmix.labels.annotations import Annotations
from annotmix.labels.dawid_skene import dawid_skene

SETS = ("bluebird", "dog", "web", "zencrowd_us")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:crowdkit")
seeded = settings(deadline=None, derandomize=True)


def as_crowd_kit(a):
    return a.to_long().rename(columns={"item": "task", "annotator": "worker"})


@pytest.fixture
def data_dir() -> Path:
    folder = Path(os.environ.get("ANNOTMIX_DATA") or Path(__file__).parents[3] / "shared" / "data")
    if not (folder / "aggregation").is_dir():
        pytest.skip(f"no folder {folder / 'aggregation'}; set ANNOTMIX_DATA to the folder of the data")
    return folder


@st.composite
def random_annotations(
    draw: st.DrawFn, one_label: bool = False, min_labels: int = 1, weighted: bool = False
) -> Annotations:
    """Few items, annotators and classes, some of them without labels."""
    n_items, n_annotators, n_classes = (draw(st.integers(1, most)) for most in (12, 5, 4))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    share = draw(st.sampled_from([0.2, 0.6, 1.0]))
    class_shares = rng.dirichlet(np.full(n_classes, draw(st.sampled_from([0.2, 5.0]))))
    labelled = rng.random((n_items, n_annotators)) < share
    if one_label:
        labelled = rng.integers(n_annotators, size=n_items)[:, None] == np.arange(n_annotators)
    if labelled.sum() < min_labels:
        labelled[0, 0] = True
    item, annotator = np.nonzero(labelled)
    label = rng.choice(n_classes, size=len(item), p=class_shares)
    if weighted:  # every label twice; of the copies those of another class are kept
        other = rng.choice(n_classes, size=len(item))
        twice = np.r_[np.arange(len(item)), np.flatnonzero(other != label)]
        label = np.r_[label, other[other != label]]
        item, annotator = item[twice], annotator[twice]
    return Annotations(
        item,
        annotator,
        label,
        np.array([f"item {n}" for n in range(n_items)], dtype=object),
        np.array([f"annotator {m}" for m in range(n_annotators)], dtype=object),
        np.array(list("dbca")[:n_classes], dtype=object),
        rng.integers(1, 5, size=len(item)) / 4 if weighted else None,
    )


def noisy(seed: int = 0, n_items: int = 60, n_annotators: int = 8, n_classes: int = 3) -> Annotations:
    """Annotators of different quality; every second label is missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_items)
    right = rng.random((n_items, n_annotators)) < np.linspace(0.4, 0.95, n_annotators)
    Z = np.where(right, y[:, None], rng.integers(n_classes, size=(n_items, n_annotators)))
    Z[rng.random(Z.shape) < 0.5] = -1
    return Annotations.from_matrix(Z, classes=range(n_classes))


# ---------------------------------------------------------------- slow, obvious references


def entries(a: Annotations) -> list[tuple[int, int, int, float]]:
    weight = [1] * len(a) if a.weight is None else a.weight.tolist()
    return list(zip(a.item.tolist(), a.annotator.tolist(), a.label.tolist(), weight, strict=True))


def telling_entries(a: Annotations) -> list[tuple[int, int, int, float]]:
    """`entries`, without what a distribution over all classes gives to every one."""
    if a.weight is None:
        return entries(a)
    weights: dict[tuple[int, int], list[float]] = {}
    for n, m, _, w in entries(a):
        weights.setdefault((n, m), []).append(w)
    flat = {pair: min(found) if len(found) == a.n_classes else 0 for pair, found in weights.items()}
    return [(n, m, k, w - flat[n, m]) for n, m, k, w in entries(a)]


def votes_by_loop(a: Annotations) -> dict[int, Counter[int]]:
    votes: dict[int, Counter[int]] = {}
    for n, _, k, w in entries(a):
        votes.setdefault(n, Counter())[k] += w
    return votes


def m_step_by_loop(a, q, smoothing, known):
    C = a.n_classes
    prior = [sum(q[n][c] for n in known) / len(known) if known else 1 / C for c in range(C)]
    theta = [
        [[smoothing * (1.0 if c == k else 1e-30) for k in range(C)] for c in range(C)]
        for _ in range(a.n_annotators)
    ]
    for n, m, k, w in telling_entries(a):
        for c in range(C):
            theta[m][c][k] += w * q[n][c]
    return prior, [[[value / sum(row) for value in row] for row in matrix] for matrix in theta]


def e_step_by_loop(a, prior, theta, gold):
    labels = telling_entries(a)
    q, log_likelihood = [], 0.0
    for n in range(a.n_items):
        log_joint = []
        for c in range(a.n_classes):
            value = math.log(max(prior[c], 1e-300))
            value += sum(w * math.log(max(theta[m][c][k], 1e-300)) for i, m, k, w in labels if i == n)
            log_joint.append(value if gold.get(n, c) == c else -math.inf)
        top = max(log_joint)
        total = sum(math.exp(value - top) for value in log_joint)
        log_likelihood += top + math.log(total)
        q.append([math.exp(value - top) / total for value in log_joint])
    return q, log_likelihood


def dawid_skene_by_loop(a, n_iter, smoothing, gold):
    votes = votes_by_loop(a)
    known = sorted({n for n, _, _, w in telling_entries(a) if w > 0} | set(gold))
    q = []
    for n in range(a.n_items):
        count = Counter({gold[n]: 1}) if n in gold else votes.get(n, Counter())
        q.append([count[c] / (sum(count.values()) or 1) for c in range(a.n_classes)])
    for _ in range(n_iter):
        prior, theta = m_step_by_loop(a, q, smoothing, known)
        q, log_likelihood = e_step_by_loop(a, prior, theta, gold)
    return q, prior, theta, log_likelihood


# ---------------------------------------------------------------- majority vote


@seeded
@given(random_annotations(min_labels=0) | random_annotations(weighted=True), st.integers(0, 1000))
def test_majority_vote_equals_counting(a: Annotations, seed: int) -> None:
    votes = votes_by_loop(a)
    winners = {n: {k for k in c if c[k] == max(c.values())} for n, c in votes.items()}
    voted = majority_vote(a, random_state=seed)
    assert voted.index.tolist() == [a.items[n] for n in sorted(votes)]
    assert (voted.index.name, voted.name) == ("item", "label")
    assert all(voted[a.items[n]] in a.classes[list(w)] for n, w in winners.items())
    every = majority_vote(a, ties="all")
    assert every.index.tolist() == voted.index.tolist()
    assert every.columns.tolist() == a.classes.tolist()
    for n, w in winners.items():
        assert set(np.flatnonzero(every.loc[a.items[n]])) == w


def test_ties_are_broken_uniformly() -> None:
    n = 6000
    a = Annotations.from_matrix(np.tile([0, 1, 2, 2, 1, 0, 3], (n, 1)))
    share = majority_vote(a, random_state=0).value_counts(normalize=True)
    assert set(share.index) == {0, 1, 2}
    assert np.abs(share - 1 / 3).max() < 4 * math.sqrt(2 / 9 / n)


def test_weighted_votes_are_tied_within_rounding() -> None:
    a = Annotations([0, 0, 0], [0, 1, 2], [0, 0, 1], ["x"], range(3), range(2), [0.1, 0.2, 0.3])
    assert majority_vote(a, ties="all").loc["x"].all()  # although 0.1 + 0.2 is not 0.3


def test_crowd_kit_refuses_weights() -> None:
    a = Annotations([0, 1], [0, 0], [0, 1], ["x", "y"], ["ann"], range(2), [0.5, 1])
    with pytest.raises(ValueError, match=r'take no weights.*"mv" or "ds"'):
        aggregate(a, "crowd-kit:Wawa")


def test_ties_follow_the_seed() -> None:
    a = Annotations.from_matrix(np.tile([0, 1], (50, 1)))
    one, same, other = (majority_vote(a, random_state=s) for s in (1, np.random.default_rng(1), 2))
    pd.testing.assert_series_equal(one, same)
    assert not one.equals(other)
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    majority_vote(a)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002


def test_majority_vote_of_nothing_is_empty() -> None:
    nothing = Annotations.from_matrix(np.full((3, 2), -1))
    assert majority_vote(nothing).empty
    assert majority_vote(nothing, ties="all").shape == (0, 0)


def test_majority_vote_refuses_other_ties() -> None:
    with pytest.raises(ValueError, match="ties must be"):
        majority_vote(noisy(), ties="first")  # type: ignore[call-overload]


# ---------------------------------------------------------------- Dawid–Skene


def test_flat_labels_tell_dawid_skene_nothing() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    P = np.where(rng.random((200, 6, 1)) < 0.5, np.eye(3)[y][:, None], 1 / 3)  # half of them have no idea
    P[rng.random((200, 6)) < 0.3] = np.nan
    sure = (P.max(axis=2) == 1).any(axis=1)
    found = dawid_skene(Annotations.from_soft(P)).labels
    assert len(found) > 150
    assert found.index.tolist() == np.flatnonzero(sure).tolist()
    assert (found == y[sure]).all()


@seeded
@given(
    random_annotations(min_labels=0) | random_annotations(weighted=True),
    st.integers(1, 4),
    st.sampled_from([1e-10, 0.01, 1.0]),
    st.dictionaries(st.integers(0, 11), st.integers(0, 3), max_size=3),
)
def test_dawid_skene_equals_loops(a: Annotations, rounds: int, smoothing: float, gold: dict) -> None:
    gold = {n: k for n, k in gold.items() if n < a.n_items and k < a.n_classes}
    if not len(a) and not gold:
        return
    named = {a.items[n]: a.classes[k] for n, k in gold.items()}
    result = dawid_skene(a, max_iter=rounds, tol=0, smoothing=smoothing, gold=named)
    q, prior, theta, log_likelihood = dawid_skene_by_loop(a, result.n_iter, smoothing, gold)
    np.testing.assert_allclose(result.probabilities, q, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result.prior, prior, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(result.confusion, np.concatenate(theta), rtol=1e-8, atol=1e-10)
    assert result.log_likelihood == pytest.approx(log_likelihood, rel=1e-8, abs=1e-8)
    assert len(result.history) == result.n_iter <= rounds


@seeded
@given(random_annotations())
def test_dawid_skene_is_sane(a: Annotations) -> None:
    result = dawid_skene(a, tol=0)
    assert (np.diff(result.history) > -1e-7).all()
    assert (result.confusion > 0).all(axis=None)
    np.testing.assert_allclose(result.confusion.sum(axis=1), 1)
    np.testing.assert_allclose(result.probabilities.sum(axis=1), 1)
    assert result.prior.sum() == pytest.approx(1)
    labelled = a.labels_per_item > 0
    assert result.labels.index.tolist() == a.items[labelled].tolist()
    assert result.labels.tolist() == result.probabilities[labelled].idxmax(axis=1).tolist()
    for probabilities in result.probabilities[~labelled].to_numpy():
        np.testing.assert_allclose(probabilities, result.prior, atol=1e-12)
    for m in np.flatnonzero(a.labels_per_annotator == 0):
        own = result.confusion.loc[a.annotators[m]]
        np.testing.assert_allclose(own, np.eye(a.n_classes), atol=1e-12)


def test_log_likelihood_rises_until_it_converges() -> None:
    a = noisy()
    result = dawid_skene(a)
    rise = np.diff(result.history) / len(a)
    assert result.converged
    assert (rise[:-1] > 1e-5).all()
    assert 0 <= rise[-1] <= 1e-5
    assert result.n_iter == len(result.history) < 100
    cut = dawid_skene(a, max_iter=2)
    assert (cut.n_iter, cut.converged) == (2, False)


@seeded
@given(random_annotations(one_label=True), st.sampled_from([1e-5, 0.0]), st.sampled_from([1e-10, 1.0]))
def test_one_label_an_item_is_majority_vote(a: Annotations, tol: float, smoothing: float) -> None:
    result = dawid_skene(a, tol=tol, smoothing=smoothing)
    pd.testing.assert_series_equal(result.labels, majority_vote(a))


def test_one_rare_label_an_item_is_majority_vote() -> None:
    """Annotator 1 never says 0, the frequent class: smoothing to uniform would turn these labels into it."""
    n = 20_000
    item = np.arange(n)
    rare = item < 3
    a = Annotations(item, rare.astype(int), rare.astype(int), item, np.arange(2), np.arange(2))
    pd.testing.assert_series_equal(dawid_skene(a).labels, majority_vote(a))


def test_a_consistent_liar_is_understood() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    Z = np.stack([np.where(rng.random(200) < 0.85, y, 1 - y) for _ in range(4)] + [1 - y] * 2, axis=1)
    result = dawid_skene(Annotations.from_matrix(Z))
    assert (result.labels.to_numpy() == y).mean() > 0.98
    assert result.confusion.loc[(5, 0), 1] > 0.97
    assert result.confusion.loc[(0, 0), 0] > 0.8


def test_names_and_gaps() -> None:
    a = Annotations.from_matrix(
        [["yes", "yes"], ["no", None], [None, None]], items=["x", "y", "z"], annotators=["w0", "w1"]
    ).align(annotators=["w0", "w2", "w1"], classes=["maybe", "no", "yes"])
    result = dawid_skene(a)
    assert result.labels.to_dict() == {"x": "yes", "y": "no"}
    assert (result.labels.index.name, result.labels.name) == ("item", "label")
    assert result.probabilities.columns.tolist() == ["maybe", "no", "yes"]
    assert result.probabilities.loc["z"].tolist() == pytest.approx(result.prior.tolist())
    assert result.prior.to_dict() == pytest.approx({"maybe": 0, "no": 0.5, "yes": 0.5})
    assert result.confusion.index.names == ["annotator", "class"]
    assert result.confusion.index.levels[0].tolist() == ["w0", "w1", "w2"]
    assert result.confusion.loc["w0"].index.tolist() == ["maybe", "no", "yes"]
    assert result.confusion.loc[("w1", "yes"), "yes"] == pytest.approx(1)
    np.testing.assert_allclose(result.confusion.loc["w2"], np.eye(3), atol=1e-12)


def test_without_labels_the_prior_is_uniform() -> None:
    result = dawid_skene(Annotations.from_matrix(np.full((3, 2), -1), classes=["a", "b"]))
    assert result.labels.empty
    assert (result.probabilities == 0.5).all(axis=None)
    assert result.log_likelihood == pytest.approx(0)
    assert result.converged


def test_gold_is_kept_and_teaches() -> None:
    a = Annotations.from_matrix(np.tile([0, 1], (20, 1)))
    for truth, trusted in ((0, 0), (1, 1)):
        gold = pd.Series(truth, index=range(10))
        result = dawid_skene(a, gold=gold)
        assert (result.probabilities.loc[:9, truth] == 1).all()
        assert (result.labels == truth).all()
        assert result.confusion.loc[(trusted, truth), truth] == pytest.approx(1)
        pd.testing.assert_series_equal(result.labels, dawid_skene(a, gold=gold.to_dict()).labels)


def test_gold_may_name_what_nobody_labelled_or_chose() -> None:
    a = Annotations.from_matrix([["a", "b"], [None, None]], classes=["a", "b", "c"])
    result = dawid_skene(a, gold={1: "c"}, confusion=np.tile(np.eye(3), (2, 1, 1)))
    assert result.labels[1] == "c"
    assert result.prior["c"] == pytest.approx(0.5)
    assert np.isfinite(result.log_likelihood)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ({99: 0}, "gold: item 99 is unknown"),
        ({0: 7}, "gold: class 7 is unknown"),
        ({0: None}, "gold: class .* is unknown"),
        (pd.Series([0, 1], index=[3, 3]), "gold: repeated items 3"),
    ],
)
def test_gold_errors(gold: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dawid_skene(noisy(), gold=gold)  # type: ignore[arg-type]


def test_warm_start_from_the_solution_stops_at_once() -> None:
    a = noisy()
    first = dawid_skene(a, tol=1e-13, max_iter=5000)
    assert first.converged
    again = dawid_skene(a, confusion=first.confusion, prior=first.prior)
    assert (again.n_iter, again.converged) == (1, True)
    assert again.history[0] == pytest.approx(first.log_likelihood, rel=1e-12)
    assert again.log_likelihood == pytest.approx(first.log_likelihood, rel=1e-10)
    np.testing.assert_allclose(again.confusion, first.confusion, atol=1e-5)
    np.testing.assert_allclose(again.probabilities, first.probabilities, atol=1e-5)
    shuffled = first.confusion.sample(frac=1, random_state=0)  # a table is matched by its names
    pd.testing.assert_frame_equal(
        dawid_skene(a, confusion=shuffled, prior=first.prior).confusion, again.confusion
    )
    without_prior = dawid_skene(a, confusion=first.confusion, tol=1e-13, max_iter=5000)
    np.testing.assert_allclose(without_prior.probabilities, first.probabilities, atol=1e-3)


def test_warm_start_decides_what_the_votes_leave_open() -> None:
    a = Annotations.from_matrix(np.tile([0, 1], (20, 1)))
    good, bad = [[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]
    assert (dawid_skene(a, confusion=[good, bad]).labels == 0).all()
    assert (dawid_skene(a, confusion=[bad, good]).labels == 1).all()
    zeros = dawid_skene(a, confusion=np.tile(np.eye(2), (2, 1, 1)))
    assert np.isfinite(zeros.probabilities).all(axis=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confusion": np.eye(3)}, r"confusion must have shape \(8, 3, 3\), found \(3, 3\)"),
        ({"confusion": np.full((8, 3, 3), np.nan)}, "confusion must hold probabilities, found nan"),
        (
            {"confusion": np.tile(2 * np.eye(3) - 1 / 3, (8, 1, 1))},
            "confusion must hold probabilities, found -0.3",
        ),
        ({"confusion": np.ones((8, 3, 3))}, "confusion must sum to 1 over its last axis, found a sum of 3"),
        ({"confusion": np.tile(np.eye(3), (8, 1, 1)), "prior": [1, 0]}, r"prior must have shape \(3,\)"),
        ({"prior": [1, 0, 0]}, "pass confusion"),
        ({"smoothing": 0}, "smoothing must be above 0"),
        ({"tol": float("nan")}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be 1"),
    ],
)
def test_dawid_skene_errors(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dawid_skene(noisy(), **change)


def test_dawid_skene_needs_classes() -> None:
    with pytest.raises(ValueError, match="no classes"):
        dawid_skene(Annotations.from_matrix(np.full((3, 2), -1)))


def test_many_annotators_need_no_dense_matrix() -> None:
    """10^5 items × 10^5 annotators would be 10^10 cells."""
    rng = np.random.default_rng(0)
    n = 100_000
    y = rng.integers(3, size=n)
    item = np.repeat(np.arange(n), 3)
    annotator = (item + np.tile([0, 1, 2], n)) % n
    label = np.where(rng.random(3 * n) < 0.9, y[item], rng.integers(3, size=3 * n))
    a = Annotations(item, annotator, label, np.arange(n), np.arange(n), np.arange(3))
    assert (dawid_skene(a, max_iter=2).labels.to_numpy() == y).mean() > 0.9


# ---------------------------------------------------------------- by name, and crowd-kit


def test_aggregate_by_name() -> None:
    a = noisy()
    pd.testing.assert_series_equal(aggregate(a, random_state=3), majority_vote(a, random_state=3))
    pd.testing.assert_series_equal(aggregate(a, "ds", smoothing=0.1), dawid_skene(a, smoothing=0.1).labels)
    with pytest.raises(ValueError, match='"mv", "ds" or "crowd-kit:NAME", found \'mean\''):
        aggregate(a, "mean")


@pytest.mark.parametrize("classes", [[0, 1], ["no", "yes"], [False, True], [0.5, 1.5]])
@pytest.mark.parametrize("name", ["DawidSkene", "KOS", "MACE", "MajorityVote", "OneCoinDawidSkene"])
def test_crowd_kit_called_directly_agrees(name: str, classes: list) -> None:
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    coded = noisy(n_classes=2).align(items=range(62))
    items = np.array([f"item {n:03}" for n in coded.items], dtype=object)
    a = Annotations(coded.item, coded.annotator, coded.label, items, coded.annotators, np.array(classes))
    params = {} if name == "MajorityVote" else {"n_iter": 5}
    params |= {"n_restarts": 1} if name == "MACE" else {}
    direct = getattr(crowdkit, name)(**params).fit_predict(as_crowd_kit(a))
    bridged = aggregate(a, f"crowd-kit:{name}", **params)
    assert bridged.index.tolist() == items[a.labels_per_item > 0].tolist()
    assert bridged.tolist() == direct.reindex(bridged.index).tolist()
    assert (bridged.index.name, bridged.name) == ("item", "label")
    assert bridged.dtype == majority_vote(a).dtype


@pytest.mark.parametrize("name", ["GLAD", "MMSR", "Wawa", "ZeroBasedSkill"])
def test_other_aggregators_of_crowd_kit_run(name: str) -> None:
    pytest.importorskip("crowdkit.aggregation")
    a = noisy()
    bridged = aggregate(a, f"crowd-kit:{name}")
    assert (bridged == majority_vote(a, random_state=0)).mean() > 0.7
    assert len(bridged) == (a.labels_per_item > 0).sum()


def test_crowd_kit_parameters_reach_class_and_call() -> None:
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    a = noisy()
    truth = majority_vote(a, random_state=0)
    bridged = aggregate(a, "crowd-kit:DawidSkene", n_iter=1, true_labels=truth[:20])
    direct = crowdkit.DawidSkene(n_iter=1).fit_predict(as_crowd_kit(a), true_labels=truth[:20])
    assert bridged.tolist() == direct.reindex(bridged.index).tolist()
    assert (aggregate(a, "crowd-kit:GoldMajorityVote", true_labels=truth) == truth).mean() > 0.8


def test_crowd_kit_is_seeded_and_leaves_no_trace() -> None:
    crowdkit = pytest.importorskip("crowdkit.aggregation")
    a = noisy(n_classes=2)
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    bridged = aggregate(a, "crowd-kit:KOS", random_state=5)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    direct = crowdkit.KOS(random_state=5).fit_predict(as_crowd_kit(a))
    assert bridged.tolist() == direct.reindex(bridged.index).tolist()
    one, same = (aggregate(a, "crowd-kit:KOS", random_state=np.random.default_rng(7)) for _ in range(2))
    pd.testing.assert_series_equal(one, same)


def test_crowd_kit_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("crowdkit.aggregation")
    for name in ("Nope", "ROVER", "BradleyTerry", "BinaryRelevance"):
        with pytest.raises(ValueError, match=f"no aggregator {name!r}.* DawidSkene, GLAD, .*ZeroBasedSkill"):
            aggregate(noisy(), f"crowd-kit:{name}")
    assert aggregate(Annotations.from_matrix(np.full((3, 2), -1)), "crowd-kit:GLAD").empty
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", None)
    with pytest.raises(ImportError, match=r'pip install "annotmix\[aggregation\]"'):
        aggregate(noisy(), "crowd-kit:GLAD")


def test_aggregated_is_one_annotator() -> None:
    a = Annotations.from_matrix([["x", "x"], ["y", "x"], [None, None]], items=["p", "q", "r"])
    one = aggregated(a, pd.Series({"q": "y", "p": "x"}))
    assert one.to_long().to_dict("list") == {
        "item": ["p", "q"],
        "annotator": ["aggregated", "aggregated"],
        "label": ["x", "y"],
    }
    assert one.items.tolist() == ["p", "q", "r"]
    with pytest.raises(ValueError, match="class 'z' is unknown"):
        aggregated(a, pd.Series({"q": "z"}))
    with pytest.raises(ValueError, match="item 's' is unknown"):
        aggregated(a, pd.Series({"s": "x"}))


# ---------------------------------------------------------------- real data, examples


@pytest.mark.parametrize("name", SETS)
def test_real_crowds(data_dir: Path, name: str) -> None:
    """Least accuracies a little below those of the day they were measured."""
    folder = data_dir / "aggregation" / name
    a = Annotations.from_long(pd.read_csv(folder / "label.csv"), duplicates="last")
    truth = pd.read_csv(folder / "truth.csv").set_index("item")["truth"]
    least = {"bluebird": 0.88, "dog": 0.83, "web": 0.81, "zencrowd_us": 0.81}
    result = dawid_skene(a)
    assert (result.labels.reindex(truth.index) == truth).mean() > least[name]
    assert result.converged
    assert (np.diff(result.history) > 0).all()
    assert (majority_vote(a, random_state=0).reindex(truth.index) == truth).mean() > 0.65


def test_examples_run() -> None:
    assert doctest.testmod(aggregation).failed == 0


def test_dawid_skene_makes_no_matrix_before_somebody_wants_it():
    """Matrices of 500 annotators and 200 classes would have 160 MB."""
    rng, M, C = np.random.default_rng(0), 500, 200
    a = Annotations(np.arange(M), rng.permutation(M), rng.integers(C, size=M), range(M), range(M), range(C))
    tracemalloc.start()
    try:
        result = dawid_skene(a, max_iter=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6
    np.testing.assert_allclose(result.confusion.loc[:2].sum(axis=1), 1)
