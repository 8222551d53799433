"""Labels that are held out, and scores by them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import annotmix
from annotmix import Annotations, hold_out

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
    log_p = np.log(clf.predict_annotator_proba(X).to_numpy().reshape(300, 5, 3))
    n, m = np.nonzero(Z >= 0)
    assert clf.score(X, Z) == pytest.approx(log_p[n, m, Z[n, m]].mean(), rel=1e-5)
    P = np.where(Z[..., None] < 0, np.nan, np.random.default_rng(0).dirichlet(np.ones(3), size=Z.shape))
    expected = np.nansum(P * log_p) / np.nansum(P)
    assert clf.score(X, P) == pytest.approx(expected, rel=1e-5)


def test_without_an_annotator_model_the_posterior_s_confusion_matrices_count(noisy):
    X, Z, _ = noisy
    clf = annotmix.make_classifier("mv-base", max_epochs=2, random_state=0, progress=False).fit(
        X[:200], Z[:200]
    )
    p, theta = clf.predict_proba(X[200:]), clf.posterior_.confusion().to_numpy().reshape(5, 3, 3)
    log_p = [np.log(p[n] @ theta[m, :, Z[200 + n, m]]) for n, m in np.argwhere(Z[200:] >= 0)]
    assert clf.score(X[200:], Z[200:]) == pytest.approx(np.mean(log_p))


# ---------------------------------------------------------------- scikit-learn's model selection


FOLDS = KFold(2, shuffle=True, random_state=0)


def search(clf, grid, X, y, cv=FOLDS):
    found = GridSearchCV(clf, grid, cv=cv, error_score="raise").fit(X, y)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    return found


def test_grid_search_by_labels_of_other_items(noisy):
    X, Z, _ = noisy
    found = search(make(classes=range(3)), {"lr": [1e-6, 1e-2]}, X, Z)
    assert found.best_params_ == {"lr": 1e-2}
    train, test = next(FOLDS.split(X))
    by_hand = make(classes=range(3), lr=1e-2).fit(X[train], Z[train])
    assert found.cv_results_["split0_test_score"][1] == by_hand.score(X[test], Z[test])
    assert search(make(classes=range(3)), {"lr": [1e-6, 1e-2]}, X, Z, cv=2).best_params_ == {"lr": 1e-2}
    values = cross_val_score(make(classes=range(3), lr=1e-2), X, Z, cv=FOLDS)
    np.testing.assert_array_equal(values, [found.cv_results_[f"split{k}_test_score"][1] for k in (0, 1)])


def test_grid_search_of_a_two_stage_approach(noisy):
    clf = annotmix.make_classifier("mv-base", hidden=(16,), max_epochs=2, random_state=0, progress=False)
    found = search(clf.set_params(classes=range(3)), {"lr": [1e-6, 1e-2]}, noisy.X[:120], noisy.Z[:120])
    assert found.best_params_ == {"lr": 1e-2}


def test_crowd_classifier_is_searched_by_labels(noisy):
    X, Z = noisy.X[:120], noisy.Z[:120]
    clf = annotmix.CrowdClassifier(
        LogisticRegression(), cv=2, rounds=1, classes=range(3), random_state=0, progress=False
    )
    found = search(clf, {"estimator__C": [1e-6, 1.0]}, X, Z)
    assert found.best_params_ == {"estimator__C": 1.0}
    train, test = next(FOLDS.split(X))
    one = found.best_estimator_.__sklearn_clone__().fit(X[train], Z[train])
    p, theta = one.predict_proba(X[test]), one.annotator_confusion().to_numpy().reshape(5, 3, 3)
    log_p = [np.log(p[n] @ theta[m, :, Z[test][n, m]]) for n, m in np.argwhere(Z[test] >= 0)]
    assert found.cv_results_["split0_test_score"][1] == pytest.approx(np.mean(log_p))


@pytest.mark.parametrize("cv", [2, FOLDS])
def test_annotations_are_split_by_items(noisy, cv):
    """Names as classes, and None where there is no label, which scikit-learn cannot split as a matrix."""
    X, Z, _ = noisy
    words = np.where(Z < 0, None, np.array(["ant", "bee", "cat"])[Z])
    labels = Annotations.from_matrix(words)
    found = search(make(), {"lr": [1e-6, 1e-2]}, X, labels, cv)
    assert found.best_params_ == {"lr": 1e-2}
    if cv == 2:
        return
    by_numbers = search(make(classes=range(3)), {"lr": [1e-6, 1e-2]}, X, Z, cv)
    np.testing.assert_array_equal(
        found.cv_results_["mean_test_score"], by_numbers.cv_results_["mean_test_score"]
    )


def test_a_pipeline_takes_names_where_its_steps_keep_them(noisy):
    X, Z, _ = noisy
    names = [f"item {n}" for n in range(len(X))]
    frame = pd.DataFrame(100 * X, index=names)
    long = (
        pd.DataFrame(Z, index=names)
        .rename_axis("item")
        .melt(ignore_index=False, var_name="annotator", value_name="label")
    )
    long = long[long["label"] >= 0].reset_index()
    pipeline = make_pipeline(StandardScaler(), make())
    with pytest.raises(ValueError, match=r'set_output\(transform="pandas"\)'):
        pipeline.fit(frame, long)
    by_items = pipeline.fit(frame, long, annotmixclassifier__items=names).predict_proba(frame)
    pipeline.set_output(transform="pandas")
    np.testing.assert_array_equal(pipeline.fit(frame, long).predict_proba(frame), by_items)
    assert np.isfinite(pipeline.score(frame, long))
    labels = Annotations.from_long(long, items=names)
    found = search(pipeline, {"annotmixclassifier__lr": [1e-6, 1e-2]}, frame, labels)
    assert found.best_params_ == {"annotmixclassifier__lr": 1e-2}
