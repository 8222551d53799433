import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import annotmix
from annotmix import Annotations, CrowdClassifier
from annotmix.datasets import load_dataset
from annotmix.datasets.simulation import hammer, simulate, spammer, thin
from annotmix.estimators.crowd import STRENGTHS


def classifier(estimator=None, **params):
    """A quick classifier: naive Bayes, two folds, two rounds."""
    estimator = GaussianNB() if estimator is None else estimator
    return CrowdClassifier(
        estimator, **({"cv": 2, "rounds": 2, "random_state": 0, "progress": False} | params)
    )


def accuracy(consensus, y):
    return np.mean(consensus["label"].to_numpy() == y)


@pytest.fixture(scope="module")
def crowd():
    """X, Z, y: 400 items of three classes, about three labels each, by six annotators of different skill."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = rng.normal(scale=2, size=(3, 4))[y] + rng.normal(size=(400, 4))
    wrong = (y[:, None] + rng.integers(1, 3, size=(400, 6))) % 3
    Z = np.where(rng.random((400, 6)) < [0.9, 0.8, 0.7, 0.6, 0.5, 1 / 3], y[:, None], wrong)
    Z[rng.random(Z.shape) < 0.5] = -1
    return X, Z, y


@pytest.fixture(scope="module")
def fitted(crowd):
    return classifier().fit(crowd[0], crowd[1])


@parametrize_with_checks([CrowdClassifier(cv=2, rounds=1, random_state=0, progress=False)])
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------ real data


def test_digits_are_labelled_better_than_by_dawid_skene():
    X, y = load_digits(return_X_y=True)
    kinds = {f"fair {m}": hammer(10, 0.6) for m in range(8)} | {"spam": spammer(10), "spam 2": spammer(10)}
    labels = thin(simulate(y, kinds, random_state=0), 3, random_state=0)
    clf = CrowdClassifier(random_state=0, progress=False).fit(X, labels)
    alone = annotmix.dawid_skene(labels).labels
    assert accuracy(clf.consensus(), y) > np.mean(alone.to_numpy() == y[alone.index]) + 0.1
    assert accuracy(clf.consensus(), y) > 0.95
    assert clf.posterior_.helps
    worst = clf.posterior_.annotators.index[-2:]
    assert set(worst) == {"spam", "spam 2"}


def test_labelme(data_dir, data_file):
    data_file("labelme/answers.txt")
    data = load_dataset("labelme-vgg16", data_dir, download=False)
    clf = CrowdClassifier(cv=2, rounds=1, random_state=0, progress=False).fit(data.X, data.labels)
    alone = annotmix.posterior(data.labels).consensus
    assert accuracy(clf.consensus(), data.y) > accuracy(alone, data.y) + 0.01
    assert clf.score(data.X_test, data.y_test) > 0.78


# ------------------------------------------------------------------ what it says


def test_the_answer_is_the_posterior_of_unseen_probabilities(crowd, fitted):
    X, Z, y = crowd
    expected = annotmix.posterior(Z, fitted.unseen_proba_)
    pd.testing.assert_frame_equal(fitted.consensus(), expected.consensus)
    pd.testing.assert_frame_equal(fitted.label_quality(), expected.label_quality)
    np.testing.assert_array_equal(fitted.annotator_confusion(), expected.confusion())
    np.testing.assert_array_equal(fitted.annotator_confusion([5, 0]), expected.confusion([5, 0]))
    assert accuracy(fitted.consensus(), y) > accuracy(annotmix.posterior(Z).consensus, y) + 0.03
    assert fitted.n_rounds_ >= 1
    assert fitted.n_features_in_ == 4
    assert fitted.score(X, y) > 0.9


def test_other_items_are_judged_by_classifier_and_labels(crowd):
    X, Z, y = crowd
    clf = classifier().fit(X[:300], Z[:300])
    consensus, quality = clf.consensus(X[300:], Z[300:]), clf.label_quality(X[300:], Z[300:])
    assert accuracy(consensus, y[300:]) > 0.9
    assert len(quality) == (Z[300:] >= 0).sum()
    q = clf.posterior_.answer.judge(
        Annotations.from_matrix(Z[300:], classes=[0, 1, 2]), clf.predict_proba(X[300:]), np.full(100, -1)
    )
    np.testing.assert_array_equal(consensus["probability"], q.max(axis=1))
    np.testing.assert_array_equal(clf.judge(X[300:], Z[300:]).probabilities, q)
    with pytest.warns(UserWarning, match="without X and y"):
        clf.consensus(X[:300], Z[:300])


def test_features_of_noise_leave_the_labels_alone(crowd):
    _, Z, _ = crowd
    noise = np.random.default_rng(1).normal(size=(400, 4))
    clf = classifier().fit(noise, Z)
    assert not clf.posterior_.helps
    assert clf.n_rounds_ == 1
    pd.testing.assert_frame_equal(clf.consensus(), annotmix.posterior(Z).consensus)
    assert clf.predict_proba(noise).shape == (400, 3)


def test_gold_is_used(crowd):
    X, Z, y = crowd
    Z = Z.copy()
    Z[:5] = -1  # gold without labels is learnt from, too
    wrong = {n: int((y[n] + 1) % 3) for n in range(10)}
    clf = classifier(KNeighborsClassifier(1), rounds=1).fit(X, Z, gold=wrong)
    assert clf.consensus()["label"].iloc[:10].tolist() == list(wrong.values())
    assert (clf.consensus()["probability"].iloc[:10] == 1).all()
    np.testing.assert_array_equal(clf.predict(X[:10]), list(wrong.values()))
    names = [f"item {n}" for n in range(400)]
    named = classifier(KNeighborsClassifier(1), rounds=1).fit(
        X, Z, items=names, gold=pd.Series({f"item {n}": c for n, c in wrong.items()})
    )
    np.testing.assert_array_equal(named.unseen_proba_, clf.unseen_proba_)
    with pytest.raises(ValueError, match="gold: item 'nobody' is unknown"):
        classifier().fit(X, Z, items=names, gold={"nobody": 0})


def test_items_without_labels_are_predicted_and_not_learnt(crowd):
    X, Z, y = crowd
    Z = Z.copy()
    Z[:100] = -1
    with pytest.warns(UserWarning, match="items have no labels"):
        clf = classifier().fit(X, Z)
    assert accuracy(clf.consensus().iloc[:100], y[:100]) > 0.9
    far = X.copy()
    far[:100] += 1000
    np.testing.assert_array_equal(clf.predict_proba(X), classifier().fit(far, Z).predict_proba(X))


def test_a_vector_is_one_annotator(crowd):
    X, _, y = crowd
    noisy = np.where(np.arange(400) % 5 == 0, (y + 1) % 3, y)
    clf = classifier().fit(X, noisy)
    assert clf.annotators_.tolist() == [0]
    assert clf.score(X, y) > 0.9


def test_all_forms_of_labels_give_the_same_answer(crowd, fitted):
    X, Z, _ = crowd
    names = [f"item {n}" for n in range(len(X))]
    long = Annotations.from_matrix(Z, items=names).to_long().sample(frac=1, random_state=0)
    for one in (
        classifier().fit(X, np.where(Z < 0, np.nan, Z)),
        classifier().fit(X, Annotations.from_matrix(Z)),
        classifier().fit(pd.DataFrame(X, index=names), long),
        classifier().fit(X, long, items=names),
        classifier(missing_label="?").fit(X, np.where(Z < 0, "?", Z.astype(str)).astype(object)),
    ):
        np.testing.assert_array_equal(one.predict_proba(X), fitted.predict_proba(X))


def test_soft_labels(crowd):
    X, Z, y = crowd
    P = np.where(Z[..., None] >= 0, np.eye(3)[Z], np.nan)
    assert accuracy(classifier().fit(X, P).consensus(), y) > 0.9


def test_names_and_classes_that_no_label_has(crowd):
    X, Z, y = crowd
    kinds = np.array(["cat", "bee", "ant"])
    words = pd.DataFrame(np.where(Z < 0, None, kinds[Z]), columns=list("uvwxyz"))
    clf = classifier(classes=["dog", "cat", "bee", "ant"]).fit(X, words)
    assert clf.classes_.tolist() == ["dog", "cat", "bee", "ant"]
    assert clf.annotators_.tolist() == list("uvwxyz")
    assert clf.score(X, kinds[y]) > 0.9
    assert clf.predict_proba(X).shape == clf.unseen_proba_.shape == (400, 4)
    np.testing.assert_allclose(clf.unseen_proba_.sum(axis=1), 1)
    assert set(clf.estimator_.classes_) == set(kinds)


# ------------------------------------------------------------------ items of any kind


def test_texts(crowd):
    _, Z, y = crowd
    rng = np.random.default_rng(0)
    words = np.array([["goal", "match", "team"], ["vote", "law", "party"], ["star", "moon", "orbit"]])
    texts = [" ".join(["the", *rng.choice(words[c], 2), rng.choice(words.ravel())]) for c in y]
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    clf = classifier(pipeline).fit(texts, Z)
    assert accuracy(clf.consensus(), y) > accuracy(annotmix.posterior(Z).consensus, y) + 0.03
    assert clf.predict(["the moon and a star"]).tolist() == [2]
    series = pd.Series(texts, index=[f"text {n}" for n in range(400)])
    long = Annotations.from_matrix(Z, items=series.index).to_long()
    np.testing.assert_array_equal(classifier(pipeline).fit(series, long).unseen_proba_, clf.unseen_proba_)


def test_tables_with_categories(crowd):
    X, Z, y = crowd
    rng = np.random.default_rng(0)
    colour = np.where(rng.random(400) < 0.8, np.array(["red", "green", "blue"])[y], "grey")
    table = pd.DataFrame({"width": X[:, 0], "colour": colour})
    columns = make_column_transformer((StandardScaler(), ["width"]), (OneHotEncoder(), ["colour"]))
    clf = classifier(make_pipeline(columns, LogisticRegression())).fit(table, Z)
    assert accuracy(clf.consensus(), y) > accuracy(annotmix.posterior(Z).consensus, y) + 0.03
    assert clf.feature_names_in_.tolist() == ["width", "colour"]


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.coo_matrix])
def test_sparse_items(crowd, form):
    X, Z, y = crowd
    X = form(np.where(np.abs(X) < 0.5, 0, X))
    clf = CrowdClassifier(random_state=0, progress=False).fit(X, Z)
    assert accuracy(clf.consensus(), y) > 0.9
    assert clf.score(X, y) > 0.85
    assert sklearn.utils.get_tags(clf).input_tags.sparse
    assert not sklearn.utils.get_tags(classifier()).input_tags.sparse


# ------------------------------------------------------------------ scikit-learn


def test_the_same_seed_gives_the_same_answer(crowd):
    X, Z, _ = crowd
    forest = RandomForestClassifier(5, max_depth=3)  # its random_state is None
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, two, other = (classifier(forest, rounds=1, random_state=s).fit(X, Z) for s in (1, 1, 2))
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(one.unseen_proba_, two.unseen_proba_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert (one.unseen_proba_ != other.unseen_proba_).any()
    assert forest.random_state is None
    assert not hasattr(forest, "estimators_")


def test_clone_pickle_and_pipeline(crowd, fitted):
    X, Z, y = crowd
    copy = clone(fitted)
    assert copy.get_params().keys() == fitted.get_params().keys()
    assert not hasattr(copy, "estimator_")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    pd.testing.assert_frame_equal(again.consensus(), fitted.consensus())
    pipeline = make_pipeline(StandardScaler(), classifier(LogisticRegression())).fit(X, Z)
    assert pipeline.score(X, y) > 0.9
    assert copy.set_params(estimator__var_smoothing=0.5).estimator.var_smoothing == 0.5


def test_grid_search_is_scored_on_true_classes(crowd):
    X, Z, y = crowd
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), LogisticRegression())
        clf = classifier(pipeline, rounds=1).set_score_request(y_true=True)
        grid = {"estimator__logisticregression__C": [1e-8, 1.0]}
        search = GridSearchCV(clf, grid, cv=2).fit(X, Z, y_true=y)
    assert search.best_params_ == {"estimator__logisticregression__C": 1.0}


def test_boosting_takes_missing_values(crowd):
    X, Z, y = crowd
    missing = X[:, :2].copy()
    missing[::10, 0] = np.nan
    boosting = annotmix.CrowdClassifier("boosting", rounds=1, cv=2, random_state=0, progress=False)
    assert accuracy(boosting.fit(missing, Z).consensus(), y) > accuracy(annotmix.posterior(Z).consensus, y)
    with pytest.raises(ValueError, match="found 'forest'"):
        annotmix.CrowdClassifier("forest").fit(X, Z)


def test_the_penalty_is_the_one_that_makes_labels_most_likely(crowd):
    X, Z, _ = crowd
    chosen = annotmix.CrowdClassifier(random_state=0, rounds=1, progress=False).fit(X, Z)
    likelihood = {}
    for strength in STRENGTHS:
        pipeline = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))
        clf = annotmix.CrowdClassifier(pipeline, random_state=0, rounds=1, progress=False).fit(X, Z)
        likelihood[strength] = clf.posterior_.answer.likelihood
    assert max(likelihood, key=likelihood.get) == chosen.estimator_[-1].C


@pytest.mark.parametrize("kind", ["logistic", "boosting"])
def test_a_saved_classifier_is_the_same(crowd, tmp_path, kind):
    X, Z, y = crowd
    names = [f"item {n}" for n in range(len(X))]
    clf = annotmix.CrowdClassifier(kind, rounds=1, cv=2, random_state=0, progress=False)
    clf.fit(X, Z, items=names, gold={"item 3": int(y[3])}).save(tmp_path)
    loaded = annotmix.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    pd.testing.assert_frame_equal(loaded.consensus(), clf.consensus())
    assert loaded.get_params()["random_state"] == 0
    assert loaded.estimator == kind
    loaded.save(tmp_path)
    np.testing.assert_array_equal(annotmix.load(tmp_path).predict_proba(X), clf.predict_proba(X))


def test_an_estimator_of_ones_own_is_not_saved(crowd, tmp_path):
    X, Z, _ = crowd
    clf = annotmix.CrowdClassifier(LogisticRegression(), rounds=1, cv=2, progress=False).fit(X, Z)
    with pytest.raises(TypeError, match="joblib or skops"):
        clf.save(tmp_path)


def test_torch_is_never_imported():
    script = """
import sys, numpy as np, annotmix
y = np.arange(60) % 2
X = y[:, None] + 0.1 * np.arange(60)[:, None]
clf = annotmix.CrowdClassifier(random_state=0).fit(X, np.c_[y, y, 1 - y])
clf.predict([[0.0]]), clf.consensus(), clf.consensus([[0.0]], [[0, 0, 1]]), clf.label_quality()
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


# ------------------------------------------------------------------ bad input


def test_few_items_are_split_into_fewer_folds():
    clf = classifier(LogisticRegression()).fit([[0.0], [1.0], [5.0]], [[0, 0], [0, -1], [1, 1]])
    assert clf.consensus()["label"].tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="at least two labelled items"):
        classifier(classes=[0, 1]).fit([[0.0], [1.0]], [[0, 0], [-1, -1]])


def test_bad_input_gets_a_clear_error(crowd, fitted):
    X, Z, _ = crowd
    long = Annotations.from_matrix(Z).to_long()
    stranger = pd.DataFrame([(0, "eve", 1)], columns=["item", "annotator", "label"])
    for error, call in {
        "cv must be an integer of 2 or more, found 1": lambda: classifier(cv=1).fit(X, Z),
        "rounds must be an integer of 1 or more, found 0": lambda: classifier(rounds=0).fit(X, Z),
        "CalibratedClassifierCV": lambda: classifier(LinearSVC()).fit(X, Z),
        "random_state must not be negative": lambda: classifier(random_state=-1).fit(X, Z),
        "10 rows": lambda: classifier().fit(X[:10], Z),
        "no labels at all": lambda: classifier(classes=[0, 1]).fit(X, np.full_like(Z, -1)),
        "items must name": lambda: classifier().fit(X, long, items=[1, 2]),
        "DataFrame indexed by item": lambda: classifier().fit(X, long),
        "features": lambda: fitted.predict(X[:, :2]),
        "one true class per row, or labels": lambda: fitted.score(X),
        "no labels to score": lambda: fitted.score(X, np.full_like(Z, -1)),
        "Pass both X and y": lambda: fitted.consensus(X),
        "6 annotators": lambda: fitted.consensus(X, Z[:, :3]),
        "annotators that are not known: 'eve'": lambda: fitted.consensus(X[:1], stranger, items=[0]),
        "Unknown annotators": lambda: fitted.annotator_confusion(["eve"]),
    }.items():
        with pytest.raises(ValueError, match=error):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.predict([[0.0]]),
        lambda c: c.consensus(),
        lambda c: c.label_quality(),
        lambda c: c.annotator_confusion(),
    ],
)
def test_not_fitted_says_so(call):
    with pytest.raises(sklearn.exceptions.NotFittedError):
        call(classifier())
