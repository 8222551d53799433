import json
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import annotmix
from annotmix._common.progress import Progress
from annotmix.encoders import ImageEncoder, TextEncoder
from annotmix.networks.features import Features
from annotmix.training.loop import Labels, randomness

N = 60


@pytest.fixture
def crowd():
    """Texts about cats and dogs, and what three people say they are about."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=N)
    words = ["sat", "ran", "on", "mat", "rug", "big", "red"]
    animals = [("cat", "dog")[c] for c in y]
    texts = [f"the {a} {a} {rng.choice(words)} {a} {rng.choice(words)}" for a in animals]
    wrong = rng.random((N, 3)) < [0.05, 0.2, 0.4]
    return texts, np.where(wrong, 1 - y[:, None], y[:, None]), y


def classifier(encoder, approach="annot-mix", **params):
    settings = {"hidden": (16,), "dropout": 0.0, "max_epochs": 5, "batch_size": 16, "random_state": 0}
    return annotmix.make_classifier(approach, encoder=encoder, **(settings | params), progress=False)


def test_texts_go_in(bert, crowd, forward_calls):
    texts, Z, y = crowd
    clf = classifier(f"text:{bert}").fit(texts, Z, validation=(texts, y))
    assert clf.predict_proba(np.array(texts)).shape == (N, 2)
    assert clf.predict_annotator_perf(pd.Series(texts)).shape == (N, 3)
    assert clf.n_features_in_ == 16
    assert sum(forward_calls) == len(set(texts))
    features = TextEncoder(bert).encode(texts)
    plain = classifier(None).fit(features, Z, validation=(features, y))
    np.testing.assert_array_equal(clf.predict_proba(texts), plain.predict_proba(features))


def test_the_index_of_a_series_names_the_rows(bert, crowd):
    texts, Z, _ = crowd
    series = pd.Series(texts, index=[f"q{n}" for n in range(N)])
    long = annotmix.Annotations.from_matrix(Z).to_long()
    long["item"] = [f"q{n}" for n in long["item"]]
    clf = classifier(TextEncoder(bert)).fit(series, long.sample(frac=1, random_state=0))
    expected = classifier(TextEncoder(bert)).fit(texts, Z)
    np.testing.assert_array_equal(clf.predict_proba(texts), expected.predict_proba(texts))
    assert clf.consensus(series, long).index.tolist() == series.index.tolist()


def test_scikit_learn_clones_searches_and_pickles(bert, crowd):
    texts, Z, y = crowd
    clf = classifier(TextEncoder(bert, batch_size=8, cache=False))
    copy = clone(clf)
    assert copy.encoder is not clf.encoder
    assert copy.get_params()["encoder__batch_size"] == 8
    assert copy.set_params(encoder__pooling="cls").encoder.pooling == "cls"
    learning = classifier(TextEncoder(bert), "mv-base", max_epochs=20, batch_size=4)
    assert cross_val_score(learning, texts, y, cv=3).mean() > 0.8
    clf.fit(texts, Z)
    assert clf.encoder._network is not None
    unpickled = pickle.loads(pickle.dumps(clf))
    assert unpickled.encoder._network is None
    np.testing.assert_array_equal(unpickled.predict(texts), clf.predict(texts))
    pipeline = make_pipeline(TextEncoder(bert), StandardScaler(), learning.set_params(encoder=None))
    assert pipeline.fit(texts, y).score(texts, y) > 0.8


def test_saved_and_loaded_in_another_process(bert, crowd, tmp_path):
    texts, Z, _ = crowd
    clf = classifier(TextEncoder(bert, cache=False, batch_size=8)).fit(texts, Z)
    clf.save(tmp_path / "model")
    facts = json.loads((tmp_path / "model" / "model.json").read_text())["model"]["encoder"]
    assert facts["kind"] == "text"
    assert facts["params"]["model"] == bert
    program = (
        "import sys, numpy as np, annotmix\n"
        f"clf = annotmix.load({str(tmp_path / 'model')!r})\n"
        "assert 'transformers' not in sys.modules\n"
        "clf.encoder.batch_size = 8\n"
        f"np.save({str(tmp_path / 'p.npy')!r}, clf.predict_proba({texts!r}))\n"
        f"clf.save({str(tmp_path / 'again')!r})\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), clf.predict_proba(texts), atol=1e-5)
    assert annotmix.load(tmp_path / "again").encoder.to_dict() == clf.encoder_.to_dict()


def test_a_loaded_model_whose_encoder_has_moved(bert, other_bert, crowd, tmp_path):
    texts, Z, _ = crowd
    folder = tmp_path / "bert"
    shutil.copytree(bert, folder)
    clf = classifier(f"text:{folder}").fit(texts, Z)
    clf.save(tmp_path / "model")
    shutil.rmtree(folder)
    loaded = annotmix.load(tmp_path / "model")  # without weights: nothing is looked for yet
    assert loaded.annotator_confusion().shape == (3 * 2, 2)
    with pytest.raises(FileNotFoundError, match="bert"):
        loaded.predict(texts)
    moved = annotmix.load(tmp_path / "model", encoder=f"text:{bert}")
    np.testing.assert_array_equal(moved.predict_proba(texts), clf.predict_proba(texts))
    shutil.copytree(other_bert, folder)
    with pytest.raises(ValueError, match="not the one"):
        annotmix.load(tmp_path / "model").predict(texts)


def test_an_encoder_for_a_model_without_one_is_refused(noisy, tmp_path):
    clf = classifier(None, max_epochs=1).fit(noisy.X, noisy.Z)
    clf.save(tmp_path)
    with pytest.raises(annotmix.training.tensor_files.ModelFileError, match="without one"):
        annotmix.load(tmp_path, encoder="text:minilm")


def test_wrong_parameters_are_found_before_anything_is_encoded(bert, crowd, forward_calls):
    texts, Z, _ = crowd
    with pytest.raises(ValueError, match="lr"):
        classifier(f"text:{bert}", lr=0).fit(texts, Z)
    with pytest.raises(ValueError, match="encoder"):
        classifier("minilm").fit(texts, Z)
    assert not forward_calls


# ------------------------------------------------------------------ views


def test_one_view_per_item_and_epoch(noisy):
    _, Z, _ = noisy
    n, n_views = len(Z), 3
    X = np.stack(np.broadcast_arrays(np.arange(n)[:, None], np.arange(n_views)), axis=-1).astype(np.float32)
    features = Features(X, "cpu", views=True)
    assert features.shape == (n, 2)
    assert len(features) == n
    for rows, x in features.chunks():  # evaluation: the first view
        np.testing.assert_array_equal(x.numpy(), X[rows, 0])
    labels = Labels(annotmix.Annotations.from_matrix(Z), "cpu")

    def epoch(number):
        with randomness(0, 2, number) as rng:
            x = np.concatenate(
                [
                    batch.x.numpy()
                    for batch in labels.batches(features, rng.permutation(labels.labelled), 32, rng)
                ]
            )
        return dict(x.astype(int).tolist())

    first, second = epoch(0), epoch(1)
    assert first == epoch(0)
    assert len(first) == len(labels.labelled)
    assert all(len(set(drawn.values())) == n_views for drawn in (first, second))
    assert 0.2 < np.mean([first[item] == second[item] for item in first]) < 0.5


def test_views_in_training_and_resuming(dino, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=40)
    images = [np.clip(rng.normal((90, 160)[c], 40, size=(32, 32, 3)), 0, 255).astype(np.uint8) for c in y]
    encoder = ImageEncoder(dino, pooling="mean", views=2)
    params = {"approach": "mv-base", "max_epochs": 10, "batch_size": 4}
    clf = classifier(encoder, **params).fit(images, y, validation=(images, y))
    assert clf.score(images, y) > 0.9
    assert clf._shape == (24,)
    plain = classifier(ImageEncoder(dino, pooling="mean"), **params).fit(images, y)
    assert not np.array_equal(plain.predict_proba(images), clf.predict_proba(images))
    again = classifier(encoder, **params).fit(images, y, validation=(images, y))
    np.testing.assert_array_equal(again.predict_proba(images), clf.predict_proba(images))
    stopping = classifier(encoder, **params, checkpoint=tmp_path / "a", checkpoint_every=1)
    advance = Progress.advance

    def dying(self, note=""):
        advance(self, note)
        if self.title == "mv-base" and self.done == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advance", dying)
        with pytest.raises(KeyboardInterrupt):
            stopping.fit(images, y, validation=(images, y))
    resumed = stopping.fit(images, y, validation=(images, y))
    np.testing.assert_array_equal(resumed.predict_proba(images), clf.predict_proba(images))
    clf.save(tmp_path / "model")
    loaded = annotmix.load(tmp_path / "model")
    assert loaded.encoder.views == 2
    np.testing.assert_array_equal(loaded.predict_proba(images), clf.predict_proba(images))


def test_views_with_every_approach(dino, images):
    encoder = ImageEncoder(dino, views=1)
    y = np.arange(8) % 2
    for approach in annotmix.list_approaches():
        clf = classifier(encoder, approach, max_epochs=1).fit(images, y)
        assert np.isfinite(clf.predict_proba(images)).all()
