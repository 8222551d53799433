"""Annotators known by features, and those who were not there in training."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import annotmix
from annotmix._common.schema import decode
from annotmix.approaches import get_approach
from annotmix.approaches.annot_mix import AnnotMix
from annotmix.approaches.base import DescribedAnnotators
from annotmix.estimators import unseen_annotators
from annotmix.estimators.preparation import Preparation, SavedPreparation
from annotmix.estimators.unseen_annotators import prepare_features
from annotmix.networks import AnnotatorEmbedding, DescribedEmbedding, mixup

NAMES = [f"w{m}" for m in range(12)]
TABLE = pd.DataFrame(
    {"kind": ["good", "good", "bad"] * 4, "years": [5.0, 6.0, 1.0, np.nan, 6.0, 1.0] * 2, "same": 1},
    index=NAMES,
)
NEW = pd.DataFrame({"kind": ["bad", "good"], "years": [1.0, np.nan], "same": 1}, index=["new", "other"])


def problem(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = (2.5 * np.eye(3, 8)[y] + rng.normal(size=(n, 8))).astype(np.float32)
    right = rng.random((n, 12)) < np.where(TABLE["kind"] == "good", 0.95, 0.4)
    Z = np.where(right, y[:, None], (y[:, None] + rng.integers(1, 3, size=(n, 12))) % 3)
    Z[rng.random((n, 12)) > np.linspace(0.1, 0.4, 12)] = -1
    return X, pd.DataFrame(Z, columns=NAMES), y


def fitted(**params):
    X, Z, _ = problem()
    features = params.pop("annotator_features", TABLE)
    clf = annotmix.AnnotMixClassifier(
        **{"hidden": (64, 32), "dropout": 0.0, "max_epochs": 20, "batch_size": 32, "random_state": 0}
        | {"progress": False}
        | params
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # items without labels
        return clf.fit(X, Z, annotator_features=features), X


@pytest.fixture(scope="module")
def both():
    return fitted()


# ---------------------------------------------------------------- networks


@pytest.mark.parametrize("identity", [True, False])
def test_the_embedding_is_a_linear_layer_of_one_hot_rows_and_features(identity):
    torch.manual_seed(0)
    features, table = torch.randn(5, 3), AnnotatorEmbedding(5, 4)
    embedding = DescribedEmbedding(features, 4, table if identity else None)
    who, partner, lam = torch.tensor([4, 0, 2]), torch.tensor([1, 2, 0]), torch.tensor([0.2, 0.7, 1.0])
    one_hot = nn.functional.one_hot(who, 5).float()

    def slow(a):  # of rows of one-hot vectors, or mixes of them
        own = a @ table.weight + table.bias if identity else embedding.description.bias
        return a @ features @ embedding.description.weight.T + own

    torch.testing.assert_close(embedding(who), slow(one_hot))
    torch.testing.assert_close(
        mixup.mix(embedding(who), partner, lam), slow(mixup.mix(one_hot, partner, lam))
    )
    weight, new = torch.tensor([1.0, 0, 0, 3, 0]), torch.randn(2, 3)
    expected = new @ embedding.description.weight.T
    expected += (
        0.25 * table.weight[0] + 0.75 * table.weight[3] + table.bias
        if identity
        else embedding.description.bias
    )
    before = {key: value.clone() for key, value in embedding.state_dict().items()}
    torch.testing.assert_close(embedding.of_unseen(new, weight)(torch.tensor([1, 0])), expected[[1, 0]])
    assert all(torch.equal(value, before[key]) for key, value in embedding.state_dict().items())


def test_every_parameter_moves():
    for identity in (True, False):
        clf, _ = fitted(max_epochs=1, annotator_identity=identity)
        start, _ = fitted(max_epochs=1, annotator_identity=identity, lr=1e-30)
        other = dict(start.module_.named_parameters())
        names = [name for name, p in clf.module_.named_parameters() if not torch.equal(p, other[name])]
        assert names == list(other)
        assert any("description" in name for name in names)
        assert any("identity" in name for name in names) == identity


# ---------------------------------------------------------------- what is known


def test_features_are_prepared_and_missing_ones_indicated():
    preparation, matrix = prepare_features(AnnotMix, TABLE, np.array(NAMES, dtype=object))
    assert preparation.feature_names == ["years", "years is missing", "kind=bad", "kind=good"]
    years = TABLE["years"].fillna(TABLE["years"].median())
    np.testing.assert_allclose(matrix[:, 0], (years - years.mean()) / years.std(ddof=0), rtol=1e-6)
    np.testing.assert_array_equal(matrix[:, 1], TABLE["years"].isna())
    np.testing.assert_array_equal(matrix[:, 3], TABLE["kind"] == "good")
    again = Preparation.from_file(decode(json.loads(json.dumps(preparation.to_dict())), SavedPreparation))
    odd = pd.DataFrame({"kind": ["ugly", None], "years": ["?", 2.0]})
    found = again.transform(odd)
    np.testing.assert_array_equal(found, preparation.transform(odd))
    np.testing.assert_array_equal(found[:, 1:], [[1, 0, 0], [0, 0, 0]])  # an unknown category is zeros


def test_an_annotator_without_a_row_has_nothing_but_missing_values():
    with pytest.warns(UserWarning, match="1 of 12 annotators have no row in annotator_features: 'w0'"):
        _, matrix = prepare_features(AnnotMix, TABLE.iloc[1:], np.array(NAMES, dtype=object))
    assert matrix.shape == (12, 4)
    np.testing.assert_array_equal(matrix[0, 1:], [1, 0, 0])


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (TABLE.to_numpy(), TypeError, "must be a DataFrame .* found ndarray"),
        (pd.concat([TABLE, TABLE[:1]]), ValueError, "several rows of 'w0'; keep one"),
        (TABLE.reset_index(), ValueError, r"such as 'w0', .* found 0, 1, .*set_index"),
        (TABLE[["same"]], ValueError, "constant"),
    ],
)
def test_tables_that_are_refused(table, error, message):
    with pytest.raises(error, match=message):
        fitted(annotator_features=table)


def test_nothing_to_tell_annotators_apart_by():
    with pytest.raises(ValueError, match=r"annotator_identity=False leaves nothing .* annotator_features="):
        fitted(annotator_features=None, annotator_identity=False)


@pytest.mark.parametrize("name", annotmix.list_approaches())
def test_every_approach_takes_features_or_says_that_it_cannot(name):
    X, Z, y = problem(60)
    clf = annotmix.make_classifier(name, max_epochs=1, hidden=(8,), random_state=0, progress=False)
    labels = y if name == "true-base" else Z
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if not issubclass(get_approach(name), DescribedAnnotators):
            with pytest.raises(ValueError, match=f"{name} knows annotators by their labels alone"):
                clf.fit(X, labels, annotator_features=TABLE)
        else:
            assert np.isfinite(clf.fit(X, labels, annotator_features=TABLE).predict_annotator_perf(X)).all(
                axis=None
            )


def test_with_features_alone_equal_features_are_equal_annotators():
    clf, X = fitted(annotator_identity=False)
    perf = clf.predict_annotator_perf(X).to_numpy()
    np.testing.assert_allclose(perf[:, 1], perf[:, 4], rtol=1e-6)
    assert perf[:, [1, 4]].mean() > perf[:, [2, 5]].mean() + 0.2
    stranger = TABLE.iloc[[1]].set_axis(["new"])
    np.testing.assert_allclose(
        clf.predict_annotator_perf(X, annotator_features=stranger)["new"], perf[:, 1], rtol=1e-6
    )


# ---------------------------------------------------------------- annotators who were not there


def test_somebody_new_is_judged_by_features(both):
    clf, X = both
    perf = clf.predict_annotator_perf(X, annotator_features=NEW)
    assert perf.shape == (300, 2)
    assert perf["other"].mean() > perf["new"].mean() + 0.2
    proba = clf.predict_annotator_proba(X, ["new"], annotator_features=NEW)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    # by hand: the mean row of the table by labels, and the features
    embedding = clf.module_.annotator_model.embed_annotator
    weight = torch.tensor(clf.labels_per_annotator_ / clf.labels_per_annotator_.sum(), dtype=torch.float32)
    features = torch.from_numpy(clf.annotator_preparation_.transform(NEW))
    with torch.no_grad():
        e_a = (
            embedding.description(features[:1]) + weight @ embedding.identity.weight + embedding.identity.bias
        )
        h = clf.module_.classifier.features(torch.from_numpy(X))
        u = clf.module_.annotator_model(h, e_a.expand(len(h), -1))
        confusion = clf.module_.annotator_model.head.log_confusion(u).exp()
        expected = torch.einsum("nc,nck->nk", clf.module_.classifier.log_proba(h).exp(), confusion)
    np.testing.assert_allclose(proba.xs("new", level="annotator"), expected.numpy(), atol=1e-5)


def test_the_population_is_the_mean_of_the_answers_by_labels(both):
    clf, X = both
    share = clf.labels_per_annotator_ / clf.labels_per_annotator_.sum()
    assert share.max() > 2 * share.min()
    n, C = len(X), len(clf.classes_)
    for ask, axis, shape in (
        (clf.predict_annotator_proba, 1, (n, -1, C)),
        (clf.predict_annotator_perf, 1, (n, -1)),
        (clf.annotator_confusion, 0, (-1, C, C)),
    ):
        expected = np.average(ask(X).to_numpy().reshape(shape), axis=axis, weights=share)
        table = ask(X, ["nobody", "w3", "nobody else"], unseen="population")
        found, known = table.to_numpy().reshape(shape), ask(X, ["w3"]).to_numpy().reshape(shape)
        np.testing.assert_allclose(found.take(0, axis), expected, atol=1e-9)
        np.testing.assert_array_equal(found.take(2, axis), found.take(0, axis))
        np.testing.assert_allclose(found.take(1, axis), known.take(0, axis), atol=1e-7)


def test_known_described_and_unknown_in_the_order_asked(both):
    clf, X = both
    asked = ["nobody", "new", "w5", "other", "w0"]
    found = clf.predict_annotator_perf(X, asked, annotator_features=NEW, unseen="population")
    assert found.columns.tolist() == asked
    for name in asked:
        one = clf.predict_annotator_perf(X, [name], annotator_features=NEW, unseen="population")
        np.testing.assert_allclose(found[name], one[name], atol=1e-6)
    # whom training knew keeps what training knew
    lie = NEW.iloc[:1].set_axis(["w0"])
    np.testing.assert_array_equal(
        clf.predict_annotator_perf(X, ["w0"], annotator_features=lie), clf.predict_annotator_perf(X, ["w0"])
    )


def test_any_approach_knows_the_population():
    X, Z, _ = problem(80)
    clf = annotmix.make_classifier("crowd-layer", max_epochs=2, hidden=(8,), random_state=0, progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf.fit(X, Z)
    share = clf.labels_per_annotator_ / clf.labels_per_annotator_.sum()
    found = clf.predict_annotator_perf(X, ["nobody"], unseen="population")["nobody"]
    np.testing.assert_allclose(found, clf.predict_annotator_perf(X).to_numpy() @ share, atol=1e-9)


def test_a_large_crowd_is_a_sample_by_labels(monkeypatch):
    labels = np.r_[np.zeros(50, dtype=np.int64), np.arange(1, 401)]
    crowd = dict(unseen_annotators._population(labels, 0))
    assert (
        crowd
        == dict(unseen_annotators._population(labels, 0))
        != dict(unseen_annotators._population(labels, 1))
    )
    assert len(crowd) <= unseen_annotators.POPULATION_SIZE
    assert sum(crowd.values()) == pytest.approx(1)
    assert min(crowd) >= 50  # nobody without labels
    mean = sum(who * share for who, share in crowd.items()) - 49
    assert mean == pytest.approx((labels**2).sum() / labels.sum(), rel=0.1)
    monkeypatch.setattr(unseen_annotators, "POPULATION_SIZE", 400)
    assert unseen_annotators._population(labels, 0) == [
        (49 + k, pytest.approx(k / 80200)) for k in range(1, 401)
    ]


def test_unknown_names_are_refused_unless_one_says_so(both):
    clf, X = both
    with pytest.raises(
        ValueError, match=r"Unknown annotators 'x'; the model knows 'w0', .*unseen=\"population\""
    ):
        clf.predict_annotator_perf(X, ["w0", "x"])
    with pytest.raises(ValueError, match=r"'x'; .* and annotator_features has no row of them"):
        clf.predict_annotator_perf(X, ["new", "x"], annotator_features=NEW)
    with pytest.raises(ValueError, match='unseen must be "error" or "population", found \'mean\''):
        clf.predict_annotator_perf(X, unseen="mean")
    with pytest.raises(ValueError, match=r"'annotator_features' lacks 1 column .* 'years'"):
        clf.predict_annotator_perf(X, annotator_features=NEW.drop(columns="years"))
    plain, _ = fitted(annotator_features=None, max_epochs=1)
    with pytest.raises(ValueError, match="trained without it: pass it to fit"):
        plain.predict_annotator_perf(X, annotator_features=NEW)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("identity", [True, False])
def test_features_are_saved(tmp_path, identity):
    clf, X = fitted(max_epochs=2, annotator_identity=identity)
    clf.save(tmp_path)
    loaded = annotmix.load(tmp_path)
    ask = {"annotators": ["w1", "new", "nobody"], "annotator_features": NEW, "unseen": "population"}
    np.testing.assert_array_equal(
        loaded.predict_annotator_proba(X, **ask), clf.predict_annotator_proba(X, **ask)
    )


def test_other_features_are_another_run(tmp_path):
    fitted(max_epochs=1, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="another run"):
        fitted(max_epochs=1, checkpoint=tmp_path, annotator_features=TABLE.assign(years=range(12)))
