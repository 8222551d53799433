"""Labels that are held out, and scores by them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, KFold

import annotmix
from annotmix import Annotations, hold_out, label_scorer

quick = settings(deadline=None, max_examples=40, derandomize=True)


def entries(a):
    weight = np.ones(len(a)) if a.weight is None else a.weight
    return list(zip(a.item, a.annotator, a.label, weight, strict=True))


@quick
@given(st.integers(0, 1000), st.floats(0.01, 0.99), st.sampled_from(["item", "label"]), st.booleans())
def test_every_label_is_on_one_side(seed, share, by, soft):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=(8, 4)) if soft else np.eye(3)[rng.integers(3, size=(8, 4))]
    P[rng.random((8, 4)) < 0.5] = np.nan
    P[:2, 0] = [1, 0, 0]
    annotations = Annotations.from_soft(P)
    kept, held = hold_out(annotations, share, by=by, rng=seed)
    assert sorted(entries(kept) + entries(held)) == sorted(entries(annotations))
    for part in (kept, held):
        assert part.items.tolist() == annotations.items.tolist()
        assert part.classes.tolist() == annotations.classes.tolist()
    units = [
        {n if by == "item" else (n, m) for n, m, *_ in entries(part)} for part in (annotations, kept, held)
    ]
    assert not units[1] & units[2]
    assert len(units[2]) == min(max(round(share * len(units[0])), 1), len(units[0]) - 1)
    again = hold_out(annotations, share, by=by, rng=seed)
    assert entries(again[1]) == entries(held)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 0}, "between 0 and 1, found 0"),
        ({"share": 1.0}, "between 0 and 1, found 1.0"),
        ({"by": "annotator"}, '"item" or "label", found \'annotator\''),
        ({}, "two items with labels or more, found 1"),
    ],
)
def test_what_cannot_be_held_out(arguments, message):
    with pytest.raises(ValueError, match=message):
        hold_out(Annotations.from_matrix([[0, 1], [-1, -1]]), **arguments)


def make(**params):
    return annotmix.AnnotMixClassifier(hidden=(16,), max_epochs=2, random_state=0, progress=False, **params)


def test_the_score_is_the_mean_log_probability_of_the_labels(noisy):
    X, Z, _ = noisy
    clf = make().fit(X, Z)
    log_p = np.log(clf.predict_annotator_proba(X))
    n, m = np.nonzero(Z >= 0)
    assert label_scorer(clf, X, Z) == pytest.approx(log_p[n, m, Z[n, m]].mean(), rel=1e-5)
    P = np.where(Z[..., None] < 0, np.nan, np.random.default_rng(0).dirichlet(np.ones(3), size=Z.shape))
    expected = np.nansum(P * log_p) / np.nansum(P)
    assert label_scorer(clf, X, P) == pytest.approx(expected, rel=1e-5)


def test_grid_search_by_labels(noisy):
    X, Z, _ = noisy
    search = GridSearchCV(
        make(classes=range(3)),
        {"lr": [1e-6, 1e-2]},
        scoring=label_scorer,
        cv=KFold(2, shuffle=True, random_state=0),
    ).fit(X, Z)
    assert search.best_params_ == {"lr": 1e-2}
    train, test = next(KFold(2, shuffle=True, random_state=0).split(X))
    by_hand = make(classes=range(3), lr=1e-2).fit(X[train], Z[train])
    assert search.cv_results_["split0_test_score"][1] == label_scorer(by_hand, X[test], Z[test])


def test_without_an_annotator_model_the_error_says_who_has_one(noisy):
    X, Z, _ = noisy
    clf = annotmix.make_classifier("mv-base", max_epochs=1, progress=False).fit(X, Z)
    with pytest.raises(AttributeError, match=r"mv-base has no annotator model.*annot-mix"):
        label_scorer(clf, X, Z)
