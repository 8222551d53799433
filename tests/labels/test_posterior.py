"""`annotmix.posterior`: its input, its tables, and how good it is on simulated crowds."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers.crowds import crowd, dawid_skene_classes, distributions, gain, out_of_fold, vote
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import annotmix
from annotmix.labels.annotations import Annotations
from annotmix.labels.evidence import Evidence

seeded = settings(deadline=None, derandomize=True, max_examples=40)
few = settings(seeded, max_examples=4)


@pytest.fixture(scope="module")
def simulated():
    return crowd(0, n_items=300)


# ---------------------------------------------------------------- input


def test_pred_probs_of_another_shape_are_refused(simulated):
    with pytest.raises(ValueError, match=r"shape \(300, 3\), found \(300, 2\)"):
        annotmix.posterior(simulated.annotations, distributions(0, 300, 2))


@pytest.mark.parametrize("wrong", [np.nan, -0.5, 0.9])
def test_pred_probs_that_are_no_probabilities_are_refused(simulated, wrong):
    p = np.full((300, 3), 1 / 3)
    p[7, 1] = wrong
    with pytest.raises(ValueError, match=r"sum to 1 in every row; row 7 is"):
        annotmix.posterior(simulated.annotations, p)


@pytest.mark.parametrize(("gold", "message"), [({999: 0}, "gold: item"), ({0: "cat"}, "gold: class")])
def test_unknown_gold_is_refused(simulated, gold, message):
    with pytest.raises(ValueError, match=message):
        annotmix.posterior(simulated.annotations, gold=gold)


def test_pred_probs_in_a_table_are_matched_by_name(simulated):
    p = pd.DataFrame(out_of_fold(simulated.X, np.eye(3)[simulated.y]), columns=[0, 1, 2])
    expected = annotmix.posterior(simulated.annotations, p.to_numpy()).probabilities
    shuffled = p.sample(frac=1, random_state=0)[[2, 0, 1]]
    pd.testing.assert_frame_equal(annotmix.posterior(simulated.annotations, shuffled).probabilities, expected)
    with pytest.raises(ValueError, match=r"no row for items .*0"):
        annotmix.posterior(simulated.annotations, p.drop(index=0))
    with pytest.raises(ValueError, match=r"no column for classes .*2"):
        annotmix.posterior(simulated.annotations, p[[0, 1]])


def test_items_without_labels_come_from_a_table_of_pred_probs():
    long = pd.DataFrame({"item": ["x", "y"], "annotator": ["ann", "bob"], "label": ["cat", "dog"]})
    p = pd.DataFrame({"cat": [0.5, 0.5, 0.9], "dog": [0.5, 0.5, 0.1]}, index=["x", "y", "z"])
    result = annotmix.posterior(long, p)
    assert result.consensus.index.tolist() == ["x", "y", "z"]
    assert result.consensus.loc["z", "n_labels"] == 0


def test_labels_are_accepted_in_every_form():
    Z = [["cat", "cat", "dog"], ["dog", "dog", "dog"], ["cat", "cat", None]]
    a = Annotations.from_matrix(Z)
    expected = annotmix.posterior(Z).probabilities.to_numpy()
    for labels in (a, a.to_long(), pd.DataFrame(Z)):
        np.testing.assert_array_equal(annotmix.posterior(labels).probabilities.to_numpy(), expected)


def test_unknown_annotators_have_no_confusion_matrix(simulated):
    result = annotmix.posterior(simulated.annotations)
    with pytest.raises(ValueError, match=r'Unknown annotators: .*"?zoe'):
        result.confusion(iter(["zoe"]))
    assert result.confusion([3, 1]).index.tolist() == [(m, c) for m in (3, 1) for c in range(3)]
    pd.testing.assert_frame_equal(result.confusion([3]), result.confusion().loc[[3]])


# ---------------------------------------------------------------- tables


def check(result):
    """Probabilities are finite and sum to one; intervals contain their accuracies."""
    q, table = result.probabilities.to_numpy(), result.annotators
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=1e-9)
    assert (table["low"] >= 0).all()
    assert (table["low"] <= table["accuracy"]).all()
    assert (table["accuracy"] <= table["high"]).all()
    assert (table["high"] <= 1).all()
    assert result.label_quality["probability"].between(0, 1).all()
    np.testing.assert_allclose(result.confusion().sum(axis=1), 1, rtol=1e-9)


@seeded
@given(arrays(np.int64, st.tuples(st.integers(1, 8), st.integers(1, 4)), elements=st.integers(-1, 2)))
def test_any_labels_have_probabilities(Z):
    check(annotmix.posterior(Annotations.from_matrix(Z, classes=range(3))))


@few
@given(st.integers(0, 1000), st.booleans())
def test_any_soft_labels_have_probabilities(seed, with_classifier):
    P = np.random.default_rng(seed).dirichlet(np.full(3, 0.3), size=(70, 3))
    P[::7] = np.nan
    p = distributions(seed, 70, 3) if with_classifier else None
    check(annotmix.posterior(Annotations.from_soft(P), p))


def test_no_labels_and_no_items():
    check(annotmix.posterior(Annotations.from_matrix(np.full((3, 2), -1), classes=[0, 1])))
    nothing = Annotations([], [], [], [], [], ["a", "b"])
    assert annotmix.posterior(nothing).consensus.empty


def test_one_annotator_is_believed():
    y = np.random.default_rng(0).integers(3, size=200)
    result = annotmix.posterior(y)
    check(result)
    assert (result.consensus["label"] == y).all()


def test_a_class_that_nobody_says_is_improbable(simulated):
    a = simulated.annotations.align(classes=[0, 1, 2, "never"])
    result = annotmix.posterior(a)
    check(result)
    assert result.probabilities["never"].max() < 0.1


def test_tables_name_items_annotators_and_labels():
    result = annotmix.posterior([["cat", "cat", "dog"], ["dog", "dog", "dog"], ["cat", None, None]])
    assert result.consensus["n_labels"].tolist() == [3, 3, 1]
    np.testing.assert_allclose(result.consensus["agreement"], [2 / 3, 1, 1])
    assert result.label_quality.columns.tolist() == ["item", "annotator", "label", "probability"]
    assert len(result.label_quality) == 7
    assert result.annotators["n_labels"].sum() == 7
    assert result.n_wrong == 1
    assert "probability" in result._repr_html_()


def test_the_same_input_gives_the_same_bits(simulated):
    p = out_of_fold(simulated.X, np.eye(3)[vote(simulated.annotations)])
    one, same = (annotmix.posterior(simulated.annotations, p) for _ in range(2))
    np.testing.assert_array_equal(one.answer.q, same.answer.q)
    pd.testing.assert_frame_equal(one.annotators, same.annotators)


def test_torch_is_not_imported():
    script = "import sys, annotmix; annotmix.posterior([[0, 1], [1, 1]]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


# ---------------------------------------------------------------- simulated crowds


def no_worse(chosen, c, margin=0.0):
    """Check an answer against vote and Dawid–Skene, by two standard errors of the paired difference."""
    for other in (vote(c.annotations), dawid_skene_classes(c.annotations)):
        rise, error = gain(chosen, other, c.y)
        assert rise >= -2 * error - 0.002 + margin


def joined(c):
    evidence = Evidence(c.annotations)
    p = out_of_fold(c.X, evidence.alone.q)
    return evidence.combine(p), evidence, p


CROWDS = {
    "2 labels per item": {"per_item": 2},
    "3 labels per item": {"per_item": 3},
    "5 labels per item": {"per_item": 5},
    "7 labels per item": {"per_item": 7, "n_items": 600},
    "spammers": {"spammers": 0.4, "per_item": 5, "n_items": 600},
    "confusion by class": {"one_sided": 0.8, "per_item": 4},
    "hard items": {"difficulty": 0.2, "per_item": 5, "n_items": 600},
    "10 classes": {"n_classes": 10},
    "a rare class": {"n_classes": 2, "shares": (0.95, 0.05), "skill": (0.6, 0.95)},
    "2 % of labels wrong": {"skill": (0.97, 0.99)},
    "60 % of labels wrong": {"skill": (0.38, 0.42), "per_item": 5},
    "one label per item": {"per_item": 1},
    "one label per annotator": {"per_item": 3, "n_annotators": 1500, "n_items": 500},
}


@pytest.mark.parametrize("name", CROWDS)
def test_labels_alone_are_no_worse_than_vote_and_dawid_skene(name):
    c = crowd(11, **CROWDS[name])
    q = Evidence(c.annotations).combine().q
    no_worse(q.round(9).argmax(axis=1), c)  # among equals the first class, as a vote has it


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_useless_features_change_nothing(seed):
    answer, evidence, _ = joined(crowd(seed, distance=0.0, n_items=600))
    assert not answer.helps
    np.testing.assert_array_equal(answer.q, evidence.combine().q)


@pytest.mark.parametrize("name", ["3 labels per item", "a rare class", "2 % of labels wrong"])
def test_weak_features_do_no_harm(name):
    c = crowd(12, distance=1.0, **CROWDS[name])
    answer, evidence, _ = joined(c)
    chosen = answer.q.argmax(axis=1)
    no_worse(chosen, c)
    rise, error = gain(chosen, evidence.combine().q.argmax(axis=1), c.y)
    assert rise >= -2 * error - 0.002


def test_features_that_are_the_class_are_believed():
    c = crowd(0, distance=12.0)
    answer, *_ = joined(c)
    assert answer.helps
    assert (answer.q.argmax(axis=1) == c.y).mean() > 0.99


@pytest.mark.parametrize(
    "kind",
    [
        {"distance": 3.0, "per_item": 1},
        {"distance": 3.0, "skill": (0.35, 0.7), "per_item": 3, "n_items": 2000},
        {"distance": 3.0, "n_annotators": 3000},
    ],
)
def test_good_features_help_poor_labels(kind):
    c = crowd(13, **kind)
    answer, *_ = joined(c)
    assert answer.helps
    no_worse(answer.q.argmax(axis=1), c, margin=0.05)


@pytest.mark.parametrize("with_classifier", [False, True])
def test_probabilities_are_calibrated(with_classifier):
    errors = []
    for seed in range(3):
        c = crowd(seed, n_items=1500, per_item=3)
        q = joined(c)[0].q if with_classifier else Evidence(c.annotations).combine().q
        errors.append(calibration_error(q, c.y))
    assert np.mean(errors) < 0.05


def calibration_error(q, y, bins=10):
    """Mean distance of probability and share of right classes in bins of the same size."""
    sure, right = q.max(axis=1), q.argmax(axis=1) == y
    parts = np.array_split(np.argsort(sure, kind="stable"), bins)
    return np.mean([abs(sure[part].mean() - right[part].mean()) for part in parts])


def test_intervals_cover_the_accuracies_of_annotators():
    covered = []
    for seed, per_item in [(0, 3), (1, 5), (2, 3)]:
        c = crowd(seed, per_item=per_item)
        table = annotmix.posterior(c.annotations).annotators.sort_index()
        covered.append((table["low"] <= c.accuracy) & (c.accuracy <= table["high"]))
    assert 0.88 <= np.mean(covered) <= 1
