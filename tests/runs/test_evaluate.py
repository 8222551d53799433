"""Scores on true labels: learnt and new items apart, beside other ways to find labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.some_findings import small

from annotmix.labels.annotations import Annotations
from annotmix.labels.dawid_skene import dawid_skene
from annotmix.runs.evaluate import score
from annotmix.runs.score_words import classifier_words, score_rows, verdict

FOLDS = {"posterior": {"likelihood without": -0.7, "likelihood with": -0.5}}


def drawn(found, seed=0, right=0.8):
    """True labels: the label found for a share of the items, else any class."""
    rng = np.random.default_rng(seed)
    other = rng.choice(found.classes, size=len(found.items))
    true = np.where(rng.random(len(found.items)) < right, found.items["label"], other)
    return dict(zip(found.items.index, true, strict=True))


@pytest.fixture
def found():
    """Findings in which the classifier often says something else than labels and classifier together."""
    findings = small()
    rng = np.random.default_rng(1)
    other = np.where(rng.random(200) < 0.5, findings.items["label"], rng.choice(findings.classes, size=200))
    return replace(findings, items=findings.items.assign(classifier=other))


def test_learnt_and_new_items_have_scores_of_their_own(found):
    truth = drawn(found)
    true, items = pd.Series(truth), found.items
    learnt = items["n_labels"] > 0
    assert 0 < learnt.sum() < 200
    scores = score(replace(found, settings=FOLDS), truth).scores
    assert (scores["n"], scores["learnt"], scores["new"]) == (200, learnt.sum(), (~learnt).sum())
    assert scores["consensus-acc"] == (items["label"] == true)[learnt].mean()
    assert scores["out-of-fold-acc"] == (items["classifier"] == true)[learnt].mean()
    assert scores["clf-acc"] == (items["classifier"] == true)[~learnt].mean()
    assert score(found, truth).calibration["count"].sum() == learnt.sum()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"posterior": {"likelihood without": -0.7, "likelihood with": -0.7}},
        {"posterior": {"likelihood without": -0.7, "likelihood with": None}},
        {"posterior": {"likelihood without": -0.7, "likelihood with": float("nan")}},
        {"posterior": {**FOLDS["posterior"], "out of fold": False}},
    ],
)
def test_without_folds_the_classifier_has_no_score_on_learnt_items(found, settings):
    scores = score(replace(found, settings=settings), drawn(found)).scores
    assert "out-of-fold-acc" not in scores
    assert "clf-acc" in scores
    (learnt, new) = classifier_words(scores)
    assert "no predictions by networks that have not seen them" in learnt
    assert f"right for {scores['clf-acc']:.1%}" in new


def test_where_all_items_are_learnt_or_all_are_new_the_others_have_no_scores(found):
    truth, learnt = drawn(found), found.items["n_labels"] > 0
    scores = score(found, {item: truth[item] for item in found.items.index[learnt]}).scores
    assert scores["new"] == 0
    assert "clf-acc" not in scores
    assert "No item with a known label is new" in classifier_words(scores)[-1]
    scores = score(found, {item: truth[item] for item in found.items.index[~learnt]}).scores
    assert scores["learnt"] == 0
    assert not {"consensus-acc", "majority-acc", "dawid-skene-acc", "out-of-fold-acc"} & set(scores)
    assert verdict(scores) == []
    assert len(classifier_words(scores)) == 1


def test_majority_and_dawid_skene_come_from_the_labels_of_the_run(found):
    truth = drawn(found)
    scores = score(found, truth).scores
    labels = Annotations.from_long(found.labels[["item", "annotator", "label"]])
    skene = dawid_skene(labels).labels
    hits, skene_hits, own_hits = [], [], []
    for item, rows in found.labels.groupby("item"):
        votes = rows["label"].value_counts()
        top = votes.index[votes == votes.max()]
        hits.append((truth[item] in top) / len(top))
        skene_hits.append(skene[item] == truth[item])
        own_hits.append(found.items.loc[item, "label"] == truth[item])
    assert scores["majority-acc"] == pytest.approx(np.mean(hits))
    assert scores["dawid-skene-acc"] == pytest.approx(np.mean(skene_hits))
    for name, rival in (("majority", hits), ("dawid-skene", skene_hits)):
        ahead = np.array(own_hits, dtype=float) - np.array(rival, dtype=float)
        assert scores[f"{name}-gap"] == pytest.approx(ahead.mean())
        assert scores[f"{name}-gap-se"] == pytest.approx(np.sqrt((ahead**2).sum()) / len(ahead))


def test_gold_is_left_out_and_helps_dawid_skene_too(found):
    truth = drawn(found)
    names = list(found.items.index)
    gold = [truth[item] if n < 50 else "" for n, item in enumerate(names)]
    labels = [truth[item] if n < 50 else found.items.loc[item, "label"] for n, item in enumerate(names)]
    scored = score(replace(found, items=found.items.assign(gold=gold, label=labels)), truth)
    assert scored.scores["n"] == 150
    assert any("leave out 50 of 200 items with a true label: gold" in note for note in scored.notes)
    learnt = [item for item in names[50:] if found.items.loc[item, "n_labels"] > 0]
    annotations = Annotations.from_long(found.labels[["item", "annotator", "label"]], items=names)
    skene = dawid_skene(annotations, gold={item: truth[item] for item in names[:50]}).labels
    assert scored.scores["dawid-skene-acc"] == pytest.approx(
        np.mean([skene[item] == truth[item] for item in learnt])
    )
    only_gold = score(replace(found, items=found.items.assign(gold=gold)), {names[0]: truth[names[0]]})
    assert only_gold.scores == {}
    assert "leave out 1 of 1 item with a true label: gold" in only_gold.notes[-1]


def test_the_verdict_names_the_best_and_tells_noise_from_difference():
    scores = {
        "n": 1000.0, "learnt": 1000.0, "consensus-acc": 0.9, "majority-acc": 0.8, "dawid-skene-acc": 0.905,
        "majority-gap": 0.1, "majority-gap-se": 0.01, "dawid-skene-gap": -0.005, "dawid-skene-gap-se": 0.01,
    }  # fmt: skip
    best, majority, skene = verdict(scores)
    assert (
        "Dawid–Skene is right most often, for 90.5%; this run for 90.0% and the majority vote for 80.0%"
        in best
    )
    assert "better than the majority vote by 10.0 ± 2.0 points, beyond the noise" in majority
    assert "worse than Dawid–Skene by 0.5 ± 2.0 points, within the noise" in skene
    same = scores | {"dawid-skene-acc": 0.9, "dawid-skene-gap": 0.0, "dawid-skene-gap-se": 0.0}
    assert "this run and Dawid–Skene are right most often" in verdict(same)[0]
    assert "right exactly where Dawid–Skene is" in verdict(same)[2]
    assert "equally often (0.0 ± 2.0 points)" in verdict(same | {"dawid-skene-gap-se": 0.01})[2]
    assert verdict({"n": 40, "consensus-acc": 0.65, "majority-acc": 0.6}) == []
    assert not any("gap" in words for words, _ in score_rows(scores))
    assert len(score_rows(scores)) == 5


def test_a_few_items_are_never_beyond_the_noise(found):
    learnt = found.items.index[found.items["n_labels"] > 0][:4]
    majority = found.items.loc[learnt, "majority"]
    other = [next(name for name in found.classes if name != own) for own in majority]
    changed = found.items.assign(differs=True)
    changed.loc[learnt, "label"] = other
    scores = score(replace(found, items=changed), dict(zip(learnt, other, strict=True))).scores
    assert scores["consensus-acc"] == 1
    assert "within the noise" in verdict(scores)[1]
