"""Annotators who err together are found, copies count once, and nobody else counts less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers.dependent_crowds import alone, copied, families

import annotmix
from annotmix.labels import dependence as dependence_module
from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import Labelled, Shrinkage
from annotmix.labels.dependence import COMMON, _Pairs, find_dependence
from annotmix.labels.evidence import Evidence
from annotmix.labels.groups import Groups
from annotmix.labels.shrunken import Shrunken, shrunken_dawid_skene

NO_GOLD = np.zeros(0, np.int64), np.zeros(0, np.int64)


def members(groups):
    return [group.tolist() for group in groups.members]


def group_of_copies(crowd):
    return [np.flatnonzero(crowd.group == 0).tolist()]


def shrunken_few(annotations):
    """An answer of labels alone, in a moment."""
    return Shrunken(Labelled(annotations).votes(), Shrinkage(20, 10, 10), 0.0, {})


# ---------------------------------------------------------------- copies


@pytest.fixture(scope="module")
def ten():
    crowd = copied(0, 10)
    return crowd, annotmix.posterior(crowd.annotations)


def test_an_annotator_copied_ten_times_does_not_decide(ten):
    crowd, posterior = ten
    assert (posterior.answer.q.argmax(axis=1) == crowd.y).mean() > 0.93
    Z = np.asarray(crowd.annotations)
    assert (Z[:, 0] == crowd.y).mean() < 0.75  # the copies would have decided
    assert (Z[:, :8] == crowd.y[:, None]).mean(axis=0).max() < 0.93  # nobody is as good alone


def test_copies_are_one_vote_and_one_group_of_the_answer(ten):
    _, posterior = ten
    found = posterior.dependence
    assert found.used
    assert found.groups["annotators"].tolist() == [[0, *range(8, 18)]]
    assert found.groups["votes"].iloc[0] == pytest.approx(1, abs=0.02)
    assert found.n_votes == pytest.approx(8, abs=0.02)
    assert found.groups["decides"].iloc[0] > 0.1
    assert "11 in all) err together" in found.warnings[0]
    assert (found.pairs["group"] == 0).sum() == 55
    pair = found.pairs.iloc[0]
    assert pair["together"] > 2 * pair["expected"]
    assert pair["excess"] > 0.99
    accuracies = posterior.annotators["accuracy"]
    assert accuracies[[0, 8, 17]].max() < 0.75
    assert "they count less" in repr(found)
    assert "ErrTogether" in found._repr_html_()


@pytest.mark.parametrize("times", [2, 5])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_copies_are_found(times, noise, n_classes):
    crowd = copied(2, times, noise, n_classes=n_classes)
    found = find_dependence(crowd.annotations, NO_GOLD)
    assert members(found.groups) == group_of_copies(crowd)
    assert found.used


def test_copies_of_whom_an_item_has_a_few_are_found():
    crowd = copied(1, 10, per_item=6, n_items=1200)
    found = find_dependence(crowd.annotations, NO_GOLD)
    assert members(found.groups) == group_of_copies(crowd)


def test_new_items_are_judged_with_copies_as_one(ten):
    crowd, posterior = ten
    a, answer = crowd.annotations, posterior.answer
    q = answer.judge(a, None, np.full(a.n_items, -1))
    assert (q.argmax(axis=1) == crowd.y).mean() > 0.93
    again = answer.judge(a, None, np.arange(a.n_items))
    np.testing.assert_allclose(again, answer.q, atol=1e-9)


def test_the_likelihood_of_a_label_leaves_out_its_group(ten):
    crowd, posterior = ten
    alone = replace(shrunken_few(crowd.annotations), dependence=posterior.answer.dependence)
    evidence = Evidence(crowd.annotations, alone=alone)
    learnt, likelihood = evidence.learn(None)
    copy = crowd.annotations.annotator >= 8
    # a copy is no surer than the other annotators make it
    assert likelihood[copy].mean() < -0.5
    assert learnt.correlation < 1


# ---------------------------------------------------------------- nobody else


@pytest.mark.parametrize(
    "crowd",
    [
        alone(1),
        alone(1, n_classes=4),
        alone(1, experts=3),
        alone(1, skill=(0.95, 0.99)),
        alone(1, difficulty=0.3),
        alone(1, n_annotators=30, n_items=1000, per_item=5),
    ],
    ids=["independent", "four classes", "experts", "all good", "hard items", "five labels per item"],
)
def test_annotators_who_agree_as_both_are_right_are_no_copies(crowd):
    found = find_dependence(crowd.annotations, NO_GOLD)
    assert len(found.first)
    assert members(found.groups) == []
    assert not found.used


def test_without_copies_the_answer_is_the_same_to_the_bit():
    crowd = alone(2, n_items=100)
    plain = shrunken_dawid_skene(crowd.annotations, NO_GOLD)
    np.testing.assert_array_equal(Evidence(crowd.annotations).alone.q, plain.q)


def test_pairs_with_few_common_items_are_not_judged():
    crowd = alone(0, n_items=900, n_annotators=300, per_item=3)
    found = find_dependence(crowd.annotations, NO_GOLD)
    assert len(found.first) == 0
    assert found.used_groups is None
    result = annotmix.posterior([["a", "a", "b"], ["b", "b", "b"]]).dependence
    assert result.pairs.empty
    assert result.groups.empty
    assert result.n_votes == 3
    assert result.warnings == []


# ---------------------------------------------------------------- families


def test_families_are_shown():
    crowd = families(0, (4, 4, 4), 0.8)
    found = find_dependence(crowd.annotations, NO_GOLD)
    assert sorted(members(found.groups)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


# ---------------------------------------------------------------- pairs, against loops


@pytest.mark.parametrize("soft", [False, True])
def test_pairs_and_their_probability_of_copying(soft):
    crowd = copied(0, 1, n_items=60, n_annotators=4, per_item=4)
    a = crowd.annotations
    if soft:
        P = np.eye(2)[np.asarray(a)] * 0.8 + 0.1
        P[np.asarray(a) < 0] = np.nan
        a = dependence_module._hard(Annotations.from_soft(P))
    Z, pairs = np.asarray(a), _Pairs(a)
    both = {(m, k): ((Z[:, m] >= 0) & (Z[:, k] >= 0)).sum() for m in range(5) for k in range(m + 1, 5)}
    expected = {pair: n for pair, n in both.items() if n >= COMMON}
    assert dict(zip(zip(pairs.first, pairs.second, strict=True), pairs.common, strict=True)) == expected

    groups = Groups.of_pairs(5, *(np.array([k]) for k in (0, 4)), np.array([0.7]))
    ratio, (labelled, said, joint) = pairs._ratios(groups, NO_GOLD), pairs._fit(groups, NO_GOLD)
    said = labelled.evidence[:, None] * said, np.exp(said)
    at = np.flatnonzero(pairs.agree)
    for row in range(0, len(at), 7):
        one, other, n = pairs.one[at[row]], pairs.other[at[row]], a.item[pairs.one[at[row]]]
        out = {groups.group[a.annotator[p]] for p in (one, other)}
        log_q = joint[n].copy()
        for p in np.flatnonzero(a.item == n):
            if groups.group[a.annotator[p]] in out:
                log_q -= said[0][p]
        q = np.exp(log_q - log_q.max())
        q /= q.sum()
        copies = (q * (said[1][one] + said[1][other]) / 2).sum()
        assert ratio[row] == pytest.approx(copies / (q * said[1][one] * said[1][other]).sum())

    r = pairs._most_likely(ratio)
    grid = np.linspace(0, 0.999, 500)
    values = np.stack([pairs._likelihood(ratio, np.full(len(r), value)) for value in grid])
    np.testing.assert_allclose(r, grid[values.argmax(axis=0)], atol=0.005)
    for k in range(len(r)):
        mine = pairs.pair == k
        agree = ratio[np.searchsorted(at, np.flatnonzero(mine & pairs.agree))]
        by_hand = np.log(1 - r[k] + r[k] * agree).sum()
        by_hand += (mine & ~pairs.agree).sum() * np.log(max(1 - r[k], 1e-12))
        assert pairs._likelihood(ratio, r)[k] == pytest.approx(by_hand)


def test_the_sample_bounds_pairs_and_keeps_gold(monkeypatch):
    crowd = alone(0, n_items=200)
    monkeypatch.setattr(dependence_module, "MOST_ROWS", 66 * 50)
    gold = np.arange(0, 200, 2), crowd.y[::2]
    part, (item, label) = dependence_module._sampled(crowd.annotations, gold)
    assert part.n_items == 50
    np.testing.assert_array_equal(part.items[item] % 2, 0)
    np.testing.assert_array_equal(label, crowd.y[part.items[item].astype(int)])
