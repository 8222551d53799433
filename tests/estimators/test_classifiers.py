import inspect
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import annotmix
from annotmix import Annotations, AnnotMixClassifier
from annotmix.training import tensor_files
from annotmix.training.tensor_files import ModelFileError


def classifier(**params):
    """A small annot-mix."""
    defaults = {"hidden": (64, 32), "dropout": 0.0, "max_epochs": 10, "batch_size": 32, "random_state": 0}
    return AnnotMixClassifier(**({"progress": False} | defaults | params))


@pytest.fixture(scope="module")
def crowd():
    """X, Z, y: 1000 instances, three labels each, by eight annotators and two who know nothing.

    Enough for annot-mix to tell them apart with any seed, which 300 instances and five annotators are not.
    """
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=1000)
    X = rng.normal(scale=3, size=(3, 5))[y] + rng.normal(size=(1000, 5))
    accuracy = np.array([0.95, 0.95, 0.9, 0.8, 0.8, 0.7, 0.6, 0.6, 1 / 3])
    wrong = (y[:, None] + rng.integers(1, 3, size=(1000, 9))) % 3
    Z = np.where(rng.random((1000, 9)) < accuracy, y[:, None], wrong)
    Z = np.c_[Z, np.zeros(1000, dtype=int)]  # always says class 0
    Z[np.argsort(rng.random(Z.shape), axis=1) >= 3] = -1
    return X, Z, y


@pytest.fixture
def fitted(noisy):
    return classifier().fit(noisy.X, noisy.Z)


@parametrize_with_checks([AnnotMixClassifier(max_epochs=20, random_state=0, progress=False)])
def test_scikit_learn_s_own_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------ parameters


def test_signature_is_explicit_and_documented():
    parameters = inspect.signature(AnnotMixClassifier).parameters
    defaults = {name: p.default for name, p in parameters.items()}
    expected = {
        "backbone": "mlp",
        "hidden": "auto",
        "dropout": "auto",
        "alpha": 1.0,
        "eta": 0.9,
        "max_epochs": 50,
        "batch_size": 64,
        "lr": 1e-2,
        "weight_decay": "auto",
        "select": "last",
        "random_state": None,
        "device": "auto",
    }
    assert expected.items() <= defaults.items()
    for name in parameters:
        assert f"\n{name} : " in AnnotMixClassifier.__doc__, name


def test_unknown_parameter_is_refused():
    with pytest.raises(TypeError, match="aplha"):
        AnnotMixClassifier(aplha=1.0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"eta": 0.2}, "eta"),
        ({"eta": 1.0}, "eta"),
        ({"pairing": "around"}, "pairing"),
        ({"coefficient": "epoch"}, "coefficient"),
        ({"max_epochs": 0}, "max_epochs"),
        ({"max_epochs": 10**30}, "max_epochs must be an integer from 1 to"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"batch_size": 10**30}, "batch_size must be an integer from 1 to"),
        ({"lr": 0}, "lr"),
        ({"weight_decay": -1}, "weight_decay"),
        ({"weight_decay": "some"}, 'weight_decay must be a value or "auto"'),
        ({"dropout": 1.0}, "dropout"),
        ({"dropout": "some"}, 'dropout must be a value or "auto"'),
        ({"select": "first"}, "select"),
        ({"backbone": "vgg"}, "backbone"),
        ({"hidden": ()}, "hidden"),
        ({"hidden": "large"}, 'hidden must be a value or "auto"'),
        ({"random_state": "seed"}, "random_state"),
        ({"random_state": -1}, "random_state"),
        ({"device": "abacus"}, "device"),
    ],
)
def test_a_wrong_parameter_is_named(noisy, params, message):
    with pytest.raises(ValueError, match=message):
        classifier(**params).fit(noisy.X, noisy.Z)


@pytest.mark.parametrize(
    "params", [{"alpha": 0}, {"pairing": "within"}, {"coefficient": "batch"}, {"alpha": 0.2, "eta": 0.7}]
)
def test_options_learn(crowd, params):
    X, Z, y = crowd
    assert classifier(**params).fit(X, Z).score(X, y) > 0.9


# ------------------------------------------------------------------ labels in


def test_all_forms_of_labels_give_the_same_model(noisy):
    X, Z, _ = noisy
    floats = np.where(Z < 0, np.nan, Z)
    annotations = Annotations.from_matrix(Z)
    names = [f"item {n}" for n in range(len(X))]
    long = annotations.to_long()
    long["item"] = [names[n] for n in long["item"]]
    frame = pd.DataFrame(X, index=names)
    reference = classifier().fit(X, Z).predict_proba(X)
    shuffled = long.sample(frac=1, random_state=0)
    for fitted in (
        classifier().fit(X, floats),
        classifier().fit(X, annotations),
        classifier().fit(frame, shuffled),
        classifier().fit(X, shuffled, items=names),
        classifier().fit(frame, pd.DataFrame(Z, index=names).sample(frac=1, random_state=0)),
        classifier(missing_label="?").fit(X, np.where(Z < 0, "?", Z.astype(str)).astype(object)),
    ):
        np.testing.assert_array_equal(fitted.predict_proba(X), reference)


def test_names_come_back(noisy):
    X, Z, y = noisy
    kinds = np.array(["ant", "bee", "cat"])
    words = pd.DataFrame(np.where(Z < 0, None, kinds[Z]), columns=["w0", "w1", "w2", "w3", "w4"])
    clf = classifier().fit(X, words)
    assert clf.classes_.tolist() == ["ant", "bee", "cat"]
    assert clf.annotators_.tolist() == ["w0", "w1", "w2", "w3", "w4"]
    assert set(clf.predict(X)) <= set(kinds)
    assert clf.score(X, kinds[y]) > 0.85
    quality = clf.label_quality(X, words)
    assert set(quality["annotator"]) == set(words.columns)
    assert set(quality["label"]) <= set(kinds)
    perf = clf.predict_annotator_perf(X)
    pd.testing.assert_frame_equal(clf.predict_annotator_perf(X, ["w3", "w0"]), perf[["w3", "w0"]])


def test_every_table_carries_names(noisy):
    names = [f"item {n}" for n in range(len(noisy.X))]
    frame = pd.DataFrame(noisy.X, index=names)
    kinds, who = np.array(["ant", "bee", "cat"]), ["ada", "bo", "cem", "dot", "eva"]
    words = pd.DataFrame(np.where(noisy.Z < 0, None, kinds[noisy.Z]), index=names, columns=who)
    clf = classifier(max_epochs=2).fit(frame, words)
    perf, proba, confusion = (
        clf.predict_annotator_perf(frame[:4]),
        clf.predict_annotator_proba(frame[:4], ["eva", "bo"]),
        clf.annotator_confusion(),
    )
    assert (perf.index.tolist(), perf.columns.tolist()) == (names[:4], who)
    assert proba.index.tolist() == [(item, m) for item in names[:4] for m in ("eva", "bo")]
    assert proba.columns.tolist() == confusion.columns.tolist() == kinds.tolist()
    assert confusion.index.tolist() == [(m, c) for m in who for c in kinds]
    assert (proba.index.names, proba.columns.name) == (["item", "annotator"], "label")
    assert (confusion.index.names, confusion.columns.name) == (["annotator", "class"], "label")
    named = clf.predict_annotator_perf(noisy.X[:4], items=names[:4])
    pd.testing.assert_frame_equal(named, perf)
    assert clf.predict_annotator_perf(noisy.X[:4]).index.tolist() == [0, 1, 2, 3]
    assert clf.judge().confusion().index.tolist() == confusion.index.tolist()
    assert clf.posterior_.probabilities.columns.tolist() == kinds.tolist()
    assert isinstance(clf.predict_proba(frame), np.ndarray)  # as everywhere in scikit-learn


def test_a_vector_is_one_annotator(noisy):
    clf = classifier().fit(noisy.X, noisy.y)
    assert clf.annotators_.tolist() == [0]
    assert clf.score(noisy.X, noisy.y) > 0.9


def test_classes_that_no_label_has(noisy):
    clf = classifier(classes=[0, 1, 2, 3]).fit(noisy.X, noisy.Z)
    assert clf.classes_.tolist() == [0, 1, 2, 3]
    assert clf.predict_proba(noisy.X).shape == (len(noisy.X), 4)


def test_annotators_without_labels_are_allowed(noisy):
    Z = np.column_stack([noisy.Z, np.full(len(noisy.Z), -1)])
    clf = classifier().fit(noisy.X, Z)
    assert clf.predict_annotator_perf(noisy.X[:4]).shape == (4, 6)


def test_items_without_labels_are_counted_in_one_warning(noisy):
    Z = noisy.Z.copy()
    Z[:10] = -1
    empty = int((Z < 0).all(axis=1).sum())
    with pytest.warns(UserWarning, match=f"{empty} of 300 items") as caught:
        classifier(max_epochs=1).fit(noisy.X, Z)
    assert len(caught) == 1


# ------------------------------------------------------------------ bad input


def test_bad_input_gets_a_clear_error(noisy):
    X, Z, _ = noisy
    bad = X.copy()
    bad[3, 1] = np.inf
    one = np.where(Z < 0, -1, 0)
    for error, call in {
        "10 rows": lambda: classifier().fit(X[:10], Z),
        "infinity": lambda: classifier().fit(bad, Z),
        "classes that are not known: 2. Known classes are 0, 1": lambda: classifier(classes=[0, 1]).fit(X, Z),
        "no labels": lambda: classifier(classes=[0, 1]).fit(X, np.full_like(Z, -1)),
        "one class": lambda: classifier().fit(X, one),
        "items must name": lambda: classifier().fit(X, Annotations.from_matrix(Z).to_long(), items=[1, 2]),
        "DataFrame indexed by item": lambda: classifier().fit(X, Annotations.from_matrix(Z).to_long()),
    }.items():
        with pytest.raises(ValueError, match=error):
            call()


def test_an_error_at_prediction_names_what_is_wrong(fitted, noisy):
    with pytest.raises(ValueError, match="features"):
        fitted.predict(noisy.X[:, :3])
    with pytest.raises(ValueError, match="Unknown annotators 'w9'"):
        fitted.predict_annotator_perf(noisy.X, annotators=["w9"])
    with pytest.raises(ValueError, match="5 annotators"):
        fitted.consensus(noisy.X, noisy.Z[:, :3])
    with pytest.raises(ValueError, match="one true class per row"):
        fitted.score(noisy.X)
    with pytest.raises(ValueError, match="labels of annotators go in as y"):
        fitted.score(noisy.X, y_true=noisy.Z)
    with pytest.raises(ValueError, match="sample_weight is for true classes"):
        fitted.score(noisy.X, noisy.Z, sample_weight=np.ones(300))
    with pytest.raises(ValueError, match="no labels to score"):
        fitted.score(noisy.X, np.full_like(noisy.Z, -1))
    with pytest.raises(ValueError, match="NaN"):
        fitted.predict(np.full_like(noisy.X, np.nan))


def test_not_fitted_says_so(noisy):
    for call in (
        lambda c: c.predict(noisy.X),
        lambda c: c.consensus(noisy.X, noisy.Z),
        lambda c: c.annotator_confusion(),
        lambda c: c.save("anywhere"),
    ):
        with pytest.raises(sklearn.exceptions.NotFittedError):
            call(classifier())


# ------------------------------------------------------------------ what the model says


def slow_confusion(clf, x, m):
    """P(label k | x, annotator m, true class c) of one instance, by hand."""
    module = clf.module_
    with torch.no_grad():
        h = module.classifier.features(torch.as_tensor(x)[None])
        e_a = module.annotator_model.embed_annotator.weight[m] + module.annotator_model.embed_annotator.bias
        logits = module.annotator_model.head(module.annotator_model(h, e_a[None]))[0].double().numpy()
    return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))


def test_annotator_predictions_against_a_loop(fitted, noisy):
    X = noisy.X[:7]
    p = fitted.predict_proba(X)
    proba = fitted.predict_annotator_proba(X).to_numpy().reshape(7, 5, 3)
    perf = fitted.predict_annotator_perf(X).to_numpy()
    confusion = fitted.annotator_confusion(X).to_numpy().reshape(5, 3, 3)
    np.testing.assert_allclose(proba.sum(axis=-1), 1, atol=1e-12)
    for m in range(5):
        mean = np.zeros((3, 3))
        for n in range(7):
            matrix = slow_confusion(fitted, X[n], m)
            np.testing.assert_allclose(proba[n, m], p[n] @ matrix, atol=1e-6)
            np.testing.assert_allclose(perf[n, m], p[n] @ np.diag(matrix), atol=1e-6)
            mean += p[n][:, None] * matrix
        np.testing.assert_allclose(confusion[m], mean / p.sum(axis=0)[:, None], atol=1e-6)


def test_chunks_do_not_change_the_answer(fitted, noisy, monkeypatch):
    before = fitted.predict_annotator_perf(noisy.X), fitted.annotator_confusion(noisy.X)
    monkeypatch.setattr("annotmix.training.inference.PAIR_BUDGET", 100)
    monkeypatch.setattr("annotmix.networks.features.ROW_BUDGET", 60)
    # products of other sizes round differently, by a few units of single precision
    np.testing.assert_allclose(fitted.predict_annotator_perf(noisy.X), before[0], atol=5e-6)
    np.testing.assert_allclose(fitted.annotator_confusion(noisy.X), before[1], atol=5e-6)


def test_consensus_and_label_quality_against_a_loop(fitted, noisy):
    """annot-mix has learnt the items: labels alone count, and the classifier for items without labels."""
    X, Z = noisy.X[:40], noisy.Z[:40]
    by_labels, by_classifier = fitted.posterior_.answer.q, fitted.predict_proba(X)
    consensus, quality = fitted.consensus(X, Z), fitted.label_quality(X, Z)
    row = 0
    for n in range(40):
        given = [(m, Z[n, m]) for m in range(5) if Z[n, m] >= 0]
        q = by_labels[n] if given else by_classifier[n]
        best = int(q.argmax())
        assert consensus["label"].iloc[n] == best
        np.testing.assert_allclose(consensus["probability"].iloc[n], q.max(), atol=1e-9)
        assert consensus["n_labels"].iloc[n] == len(given)
        agreement = np.mean([k == best for _, k in given]) if given else np.nan
        np.testing.assert_equal(consensus["agreement"].iloc[n], agreement)
        for m, k in given:
            found = quality.iloc[row]
            assert (found["item"], found["annotator"], found["label"]) == (n, m, k)
            np.testing.assert_allclose(found["probability"], q[k], atol=1e-9)
            row += 1
    assert row == len(quality)


def test_consensus_is_better_than_the_vote_and_quality_finds_wrong_labels(crowd):
    X, Z, y = crowd
    right, gap = [], []
    for seed in range(2):
        clf = annotmix.AnnotMixPlusClassifier(max_epochs=20, random_state=seed, progress=False).fit(X, Z)
        assert clf.posterior_.helps
        right.append(np.mean(clf.consensus()["label"].to_numpy() == y))
        quality = clf.label_quality()
        correct = quality["label"].to_numpy() == y[quality["item"]]
        gap.append(quality["probability"][correct].mean() - quality["probability"][~correct].mean())
    vote = annotmix.majority_vote(Annotations.from_matrix(Z), random_state=0)
    assert np.mean(right) > np.mean(vote.to_numpy() == y[vote.index]) + 0.04
    assert np.mean(gap) > 0.6


def test_annotators_are_ranked_above_those_who_know_nothing(crowd):
    X, Z, _ = crowd
    clf = classifier(max_epochs=20).fit(X, Z)
    perf = clf.predict_annotator_perf(X).mean(axis=0)
    assert perf[:8].min() > perf[8:].max() + 0.1
    confusion = clf.annotator_confusion().to_numpy().reshape(10, 3, 3)
    diagonal = np.trace(confusion, axis1=1, axis2=2) / 3
    assert diagonal[:8].min() > diagonal[8:].max()
    assert confusion[9, :, 0].min() > 0.8  # always says class 0


# ------------------------------------------------------------------ backbones


def test_resnet_takes_images():
    rng = np.random.default_rng(0)
    X = rng.random((12, 3, 8, 8), dtype=np.float32)
    Z = rng.integers(0, 2, (12, 2))
    clf = classifier(backbone="resnet18", max_epochs=1, batch_size=6).fit(X, Z)
    assert clf.predict_proba(X).shape == (12, 2)
    with pytest.raises(ValueError, match="shape"):
        clf.predict(X[:, :, :4])
    with pytest.raises(ValueError, match="images"):
        classifier(backbone="resnet18").fit(X.reshape(12, -1), Z)


def test_a_backbone_of_one_s_own_is_copied_not_trained(noisy):
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(5, 64), nn.BatchNorm1d(64), nn.ReLU())
    before = {k: v.clone() for k, v in backbone.state_dict().items()}
    clf = classifier(backbone=backbone).fit(noisy.X, noisy.y)
    assert clf.score(noisy.X, noisy.y) > 0.9
    assert all(torch.equal(before[k], v) for k, v in backbone.state_dict().items())


# ------------------------------------------------------------------ files


def test_save_and_load(fitted, noisy, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = annotmix.load(tmp_path / "model")
    assert type(loaded) is AnnotMixClassifier
    X, Z, _ = noisy
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict_annotator_perf(X), fitted.predict_annotator_perf(X))
    np.testing.assert_array_equal(loaded.annotator_confusion(), fitted.annotator_confusion())
    pd.testing.assert_frame_equal(loaded.consensus(X, Z), fitted.consensus(X, Z))
    pd.testing.assert_frame_equal(loaded.history_, fitted.history_)
    assert loaded.get_params()["hidden"] == (64, 32)
    loaded.save(tmp_path / "again")
    np.testing.assert_array_equal(annotmix.load(tmp_path / "again").predict_proba(X), fitted.predict_proba(X))


def test_saved_model_holds_no_training_instances(fitted, noisy, tmp_path):
    fitted.save(tmp_path)
    tensors, _ = tensor_files.load_model(tmp_path)
    assert all(noisy.X.shape[1] not in t.shape[:1] or t.shape != noisy.X.shape for t in tensors.values())
    assert tensors["reference"].shape == (256, 32)  # penultimate features


def test_load_in_another_process_gives_the_same_predictions(fitted, noisy, tmp_path):
    fitted.save(tmp_path / "model")
    np.save(tmp_path / "X.npy", noisy.X)
    script = (
        "import sys, numpy as np, torch, annotmix; torch.set_num_threads(1);"
        "np.save(sys.argv[3], annotmix.load(sys.argv[1]).predict_proba(np.load(sys.argv[2])))"
    )
    paths = [str(tmp_path / name) for name in ("model", "X.npy", "p.npy")]
    subprocess.run([sys.executable, "-c", script, *paths], check=True)
    np.testing.assert_array_equal(np.load(paths[2]), fitted.predict_proba(noisy.X))


def test_a_failed_save_keeps_the_old_model(fitted, noisy, tmp_path, monkeypatch):
    fitted.save(tmp_path)
    old = fitted.predict_proba(noisy.X)
    other = classifier(random_state=9).fit(noisy.X, noisy.Z)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensor_files, "save_file", full)
    with pytest.raises(OSError, match="untouched"):
        other.save(tmp_path)
    np.testing.assert_array_equal(annotmix.load(tmp_path).predict_proba(noisy.X), old)


def test_a_folder_of_another_kind_is_refused(fitted, tmp_path):
    with pytest.raises(ModelFileError, match="no saved model"):
        annotmix.load(tmp_path / "nowhere")
    fitted.save(tmp_path)
    text = (tmp_path / "model.json").read_text()
    for wrong in (text.replace("annot-mix", "annot-max"), text.replace('"hidden"', '"hiden"'), text[:-40]):
        (tmp_path / "model.json").write_text(wrong)
        with pytest.raises(ModelFileError):
            annotmix.load(tmp_path)


def test_a_custom_backbone_is_asked_for_at_load(noisy, tmp_path):
    backbone = nn.Linear(5, 8)
    clf = classifier(backbone=backbone).fit(noisy.X, noisy.Z)
    clf.save(tmp_path)
    with pytest.raises(ModelFileError, match="backbone="):
        annotmix.load(tmp_path)
    loaded = annotmix.load(tmp_path, backbone=nn.Linear(5, 8))
    np.testing.assert_array_equal(loaded.predict_proba(noisy.X), clf.predict_proba(noisy.X))


def test_pickling(fitted, noisy):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(noisy.X), fitted.predict_proba(noisy.X))


# ------------------------------------------------------------------ scikit-learn


def test_clone_keeps_parameters_and_drops_the_fit(fitted):
    copy = clone(fitted.set_params(alpha=0.5))
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "module_")


def test_pipeline(noisy):
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(noisy.X * 100, noisy.Z)
    assert pipeline.score(noisy.X * 100, noisy.y) > 0.85


def test_grid_search_and_cross_validation_are_scored_on_true_labels(crowd):
    X, Z, y = crowd
    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier().set_score_request(y_true=True)
        search = GridSearchCV(clf, {"lr": [1e-6, 1e-2]}, cv=2).fit(X, Z, y_true=y)
        assert search.best_params_ == {"lr": 1e-2}
        assert search.best_score_ > 0.9
        values = cross_val_score(clf, X, Z, cv=2, params={"y_true": y})
        assert values.mean() == pytest.approx(search.best_score_)


def test_registry():
    assert "annot-mix" in annotmix.list_approaches()
    clf = annotmix.make_classifier("annot-mix", alpha=0.3)
    assert isinstance(clf, AnnotMixClassifier)
    assert clf.alpha == 0.3
    with pytest.raises(ValueError, match="Did you mean 'annot-mix'"):
        annotmix.make_classifier("anot-mix")
    with pytest.raises(AttributeError):
        annotmix.NoSuchClassifier  # noqa: B018
