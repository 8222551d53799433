"""Items that were learnt are recognised, and judged by networks that have not seen them; gold is learnt."""

import numpy as np
import pandas as pd
import pytest

import annotmix
from annotmix.estimators.learnt_items import LearntItems, row_marks, with_gold
from annotmix.labels.annotations import Annotations

NOBODY = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def fit(X, Z, approach="annot-mix-plus", **params):
    clf = annotmix.make_classifier(
        approach, hidden=(16,), dropout=0.0, max_epochs=10, random_state=0, progress=False
    )
    return clf.fit(X, Z, **params)


@pytest.fixture
def plus(noisy):
    return fit(noisy.X, noisy.Z)


def test_rows_are_recognised_in_any_order_and_precision(noisy):
    X = noisy.X
    learnt = LearntItems(Annotations.from_matrix(noisy.Z, -1), NOBODY, row_marks(X))
    assert learnt.find(X[[5, 2]].astype(np.float64)).tolist() == [5, 2]
    assert learnt.find(X[[5]] + 1).tolist() == [-1]
    assert LearntItems(Annotations.from_matrix([[0]]), NOBODY, np.zeros(0, int)).find(X[:1]).tolist() == [-1]


def test_the_training_items_by_name_or_by_content_are_the_same(plus, noisy):
    pd.testing.assert_frame_equal(plus.consensus(), plus.consensus(noisy.X, noisy.Z))
    pd.testing.assert_frame_equal(plus.label_quality(), plus.label_quality(noisy.X, noisy.Z))
    some = [7, 3, 30]
    found = plus.consensus(noisy.X[some], noisy.Z[some])["probability"].to_numpy()
    np.testing.assert_allclose(found, plus.consensus()["probability"].iloc[some])


def test_new_items_are_judged_by_the_final_classifier(plus, noisy):
    moved = noisy.X + 1e-4
    found = plus.judge(moved, noisy.Z).answer.q
    expected = plus.posterior_.answer.judge(
        Annotations.from_matrix(noisy.Z, -1, annotators=plus.annotators_).align(classes=plus.classes_),
        plus.predict_proba(moved),
        np.full(len(moved), -1),
    )
    np.testing.assert_allclose(found, expected)
    assert not np.allclose(found, plus.posterior_.answer.q)


def test_without_folds_labels_alone_count_and_items_without_labels_are_the_classifiers(noisy):
    Z = np.array(noisy.Z)
    Z[:3] = -1
    with pytest.warns(UserWarning, match="no labels"):
        clf = fit(noisy.X, Z, "annot-mix")
    learnt = (Z >= 0).any(axis=1)
    assert (np.isnan(clf.unseen_proba_).all(axis=1) == learnt).all()
    assert not clf.posterior_.helps
    found = clf.judge(noisy.X, Z).answer.q
    np.testing.assert_allclose(found[~learnt], clf.predict_proba(noisy.X[~learnt]))
    alone = annotmix.posterior(Annotations.from_matrix(Z, -1)).answer.q
    np.testing.assert_allclose(found[learnt], alone[learnt])
    np.testing.assert_allclose(found, clf.posterior_.answer.q, atol=1e-6)


def test_a_loaded_model_gives_the_same_answer(plus, noisy, tmp_path):
    plus.save(tmp_path)
    loaded = annotmix.load(tmp_path)
    pd.testing.assert_frame_equal(loaded.consensus(), plus.consensus())
    pd.testing.assert_frame_equal(loaded.posterior_.annotators, plus.posterior_.annotators)
    np.testing.assert_array_equal(loaded.unseen_proba_, plus.unseen_proba_)


def test_names_of_items_survive_saving_where_they_can(noisy, tmp_path):
    names = [f"item {n}" for n in range(len(noisy.X))]
    clf = fit(noisy.X, noisy.Z, items=names)
    clf.save(tmp_path)
    assert annotmix.load(tmp_path).consensus().index.tolist() == names
    days = list(pd.date_range("2020-01-01", periods=len(noisy.X)))
    clf = fit(noisy.X, noisy.Z, items=days)
    clf.save(tmp_path)
    assert annotmix.load(tmp_path).consensus().index.tolist() == list(range(len(days)))


@pytest.mark.parametrize("approach", ["annot-mix-plus", "annot-mix", "mv-base"])
def test_gold_is_fixed_and_learnt(noisy, approach):
    wrong = {n: int((noisy.y[n] + 1) % 3) for n in range(0, len(noisy.y), 2)}
    clf = fit(noisy.X, noisy.Z, approach, gold=wrong)
    consensus = clf.consensus()
    assert (consensus["label"].loc[list(wrong)] == pd.Series(wrong)).all()
    assert (consensus["probability"].loc[list(wrong)] == 1).all()
    pd.testing.assert_frame_equal(consensus, clf.consensus(noisy.X, noisy.Z), atol=1e-6)
    plain = fit(noisy.X, noisy.Z, approach)
    given = list(wrong)
    assert (clf.predict(noisy.X[given]) == list(wrong.values())).mean() > (
        plain.predict(noisy.X[given]) == list(wrong.values())
    ).mean() + 0.1
    assert clf.annotators_.tolist() == plain.annotators_.tolist()


def test_an_item_may_have_a_true_class_and_no_label(noisy):
    Z = np.array(noisy.Z)
    Z[4] = -1
    clf = fit(noisy.X, Z, gold={4: int(noisy.y[4])})
    assert clf.consensus().loc[4, "label"] == noisy.y[4]
    with pytest.raises(ValueError, match="gold: item"):
        fit(noisy.X, Z, gold={"nobody": 1})


def test_true_classes_beside_labels_or_in_their_place():
    a = Annotations.from_matrix([["a", "b"], ["b", "b"]], annotators=["gold", "x"])
    gold = (np.array([0]), np.array([1]))
    beside = with_gold(a, gold, replaces=False)
    assert beside.to_long().values.tolist() == [
        [0, "gold", "a"],
        [0, "x", "b"],
        [0, "true class", "b"],
        [1, "gold", "b"],
        [1, "x", "b"],
    ]
    assert with_gold(a, gold, replaces=True).to_long().values.tolist() == [
        [0, "gold", "b"],
        [1, "gold", "b"],
        [1, "x", "b"],
    ]
    assert with_gold(a, NOBODY, replaces=True) is a
