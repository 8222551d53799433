import numpy as np
import pandas as pd
import pytest
from helpers.set_crowds import CLASSES, set_crowd
from sklearn.metrics import f1_score, hamming_loss

from annotmix.labels import LabelSets, posterior
from annotmix.labels.confusion import Confusion
from annotmix.labels.metrics import set_scores
from annotmix.labels.set_evidence import Skills
from annotmix.labels.set_posterior import vote_by_class


@pytest.fixture(scope="module")
def judged():
    true, sets = set_crowd()
    return true, sets, posterior(sets)


def test_annotators_are_shared_between_classes(judged):
    """One round over all classes against a slow loop."""
    _, sets, result = judged
    confusions = [own.answer.confusion for own in result.by_class]
    skills = Skills.of([Confusion(own.labelled, own.q, own.shrinkage) for own in confusions])
    Z, q = sets.to_array(), np.stack([own.q[:, 1] for own in confusions], axis=1)
    for m in (0, 5):
        found = asked = expected = 0.0
        for n, c in zip(*np.nonzero(~np.isnan(Z[:, m])), strict=True):
            asked += q[n, c]
            found += q[n, c] * Z[n, m, c]
            expected += q[n, c] * confusions[c].right_common[1]
        assert skills.right[m, 1] == pytest.approx(found)
        assert skills.n[m, 1] == pytest.approx(asked)
        assert skills.expected[m, 1] == pytest.approx(expected)
        np.testing.assert_allclose(confusions[0].skills.right[m, 1], found)


def test_one_class_is_nearly_the_posterior_of_its_labels():
    _, sets = set_crowd()
    one = LabelSets.from_array(sets.to_array()[:, :, [3]])
    shared, alone = posterior(one).probabilities[0], posterior(sets.binary("rock")).probabilities[True]
    assert np.mean((shared.to_numpy() > 0.5) == (alone.to_numpy() > 0.5)) > 0.9


def test_consensus_beats_the_vote_by_class(judged):
    true, sets, result = judged
    voted, found = set_scores(true, vote_by_class(sets)), set_scores(true, result.members)
    assert found["subset-acc"] > voted["subset-acc"]
    assert found["macro-f1"] > voted["macro-f1"]
    assert found["hamming"] < voted["hamming"]


def test_tables_against_loops(judged):
    _, sets, result = judged
    q, Z = result.q, sets.to_array()
    consensus = result.consensus
    for n in (0, 7, 42):
        chosen = [c for c in range(len(CLASSES)) if q[n, c] >= 0.5]
        assert consensus["labels"].iloc[n] == tuple(CLASSES[c] for c in chosen)
        chance = np.prod([q[n, c] if c in chosen else 1 - q[n, c] for c in range(len(CLASSES))])
        assert consensus["probability"].iloc[n] == pytest.approx(chance)
        own = [Z[n, m] for m in range(Z.shape[1]) if not np.isnan(Z[n, m, 0])]
        same = [np.flatnonzero(z).tolist() == chosen for z in own]
        assert consensus["agreement"].iloc[n] == pytest.approx(np.mean(same))
    m, c = 3, 2
    asked = ~np.isnan(Z[:, m, c])
    found = (q[asked, c] * Z[asked, m, c]).sum() / q[asked, c].sum()
    row = result.annotators_by_class.loc[(sets.annotators[m], CLASSES[c])]
    assert row["sensitivity"] == pytest.approx(found)
    assert row["n_chosen"] == Z[asked, m, c].sum()
    right = np.where(Z[asked, m] == 1, q[asked], 1 - q[asked])
    expected = (right.mean(axis=1).sum() + 0.5) / (asked.sum() + 1)
    assert result.annotators.loc[sets.annotators[m], "accuracy"] == pytest.approx(expected)
    quality = result.label_quality
    first = quality.iloc[0]
    assert first["probability"] == pytest.approx(np.prod([first[("right", name)] for name in CLASSES]))


def test_an_unlabelled_item_is_not_an_item_without_classes():
    table = pd.DataFrame({
        "item": np.repeat([f"i{n}" for n in range(12)], 3), "annotator": ["a", "b", "c"] * 12,
        "labels": [["x"] if n % 2 else [] for n in range(12) for _ in range(3)],
    })  # fmt: skip
    sets = LabelSets.from_long(table, items=[*table["item"].unique(), "never"])
    result = posterior(sets)
    assert result.consensus.loc["i0", "labels"] == ()
    assert result.consensus.loc["i0", "probability"] > 0.9
    assert result.consensus.loc["never", "n_labels"] == 0
    assert 0.3 < result.probabilities.loc["never", "x"] < 0.7


def test_a_classifier_and_gold_count(judged):
    true, sets, alone = judged
    rng = np.random.default_rng(0)
    p = np.clip(np.where(true, 0.8, 0.2) + rng.normal(0, 0.1, true.shape), 0.01, 0.99)
    with_p = posterior(sets, pd.DataFrame(p[::-1], index=sets.items[::-1], columns=sets.classes))
    assert with_p.helps
    assert set_scores(true, with_p.members)["hamming"] < set_scores(true, alone.members)["hamming"]
    gold = {sets.items[0]: [], sets.items[1]: ["rock", "sad"]}
    known = posterior(sets, gold=gold)
    assert known.consensus["labels"].iloc[:2].tolist() == [(), ("rock", "sad")]
    with pytest.raises(ValueError, match="jazz"):
        posterior(sets, gold={sets.items[0]: ["jazz"]})
    with pytest.raises(ValueError, match="row 0"):
        posterior(sets, p + 1)


def test_scores_against_scikit_learn():
    rng = np.random.default_rng(1)
    true, chosen = rng.random((2, 40, 4)) < 0.4
    scores = set_scores(true, chosen)
    assert scores["macro-f1"] == pytest.approx(f1_score(true, chosen, average="macro"))
    assert scores["micro-f1"] == pytest.approx(f1_score(true, chosen, average="micro"))
    assert scores["hamming"] == pytest.approx(hamming_loss(true, chosen))
    assert scores["subset-acc"] == pytest.approx((true == chosen).all(axis=1).mean())
    with pytest.raises(ValueError, match="one row per item"):
        set_scores(true, chosen[:3])
