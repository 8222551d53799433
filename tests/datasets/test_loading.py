"""Datasets as the paper splits them, from the real files; and the table of datasets itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import annotmix
from annotmix.datasets import DatasetFileError, DatasetMissingError, list_datasets, load_dataset
from annotmix.datasets.catalogue import SPECS
from annotmix.datasets.fetch import find, matches
from annotmix.datasets.loading import get_spec
from annotmix.datasets.spec import Simulation


@pytest.fixture
def quick(monkeypatch):
    """Networks that are simulated in a moment."""

    def make(name):
        spec = SPECS[name]
        small = replace(
            spec,
            settings={**spec.settings, "hidden": (4,), "batch_size": 1024},
            simulation=replace(spec.simulation, max_epochs=1),
        )
        monkeypatch.setitem(SPECS, name, small)

    return make


def hashed(texts):
    """A stand-in for an encoder: a few features of every text."""
    return np.array([np.frombuffer(zlib.crc32(t.encode()).to_bytes(4, "big"), np.uint8) for t in texts]) / 255


# -------------------------------------------------------------------- the table


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_specifications_are_consistent(spec):
    sizes = dict(spec.sizes)
    for into, out_of, count in spec.draws:
        assert spec.simulation is not None or out_of != "train", (
            "labels of people belong to all training items"
        )
        sizes[out_of] -= count
        sizes[into] = sizes.get(into, 0) + count
    if spec.paper is not None:
        for part, size in sizes.items():
            assert size == getattr(spec.paper, part), part
        assert spec.classes is None or len(spec.classes) == spec.paper.classes
    annotmix.make_classifier("annot-mix", **spec.settings)
    assert all((spec.description, spec.citation, spec.licence))
    for file in (*spec.files.values(), *spec.item_files.values()):
        assert not os.path.isabs(file.path)
        assert file.checksum is None or file.checksum.split(":")[0] in ("sha256", "md5")
        assert file.url is not None or spec.name == "labelme-vgg16"


def test_checksums_are_those_of_the_files_at_hand(data_dir):
    files = [
        file for spec in SPECS.values() for file in spec.files.values() if file.checksum and not file.inside
    ]
    found = [(file, path) for file in files if (path := find(file, [data_dir]))]
    for file, path in found:
        assert matches(path, file.checksum), file.path
    assert len(found) >= 10


def test_unknown_names_get_a_hint():
    with pytest.raises(ValueError, match=r"no dataset 'cifar10'\. Did you mean 'cifar10"):
        load_dataset("cifar10")
    assert {"mgc", "cifar10h-40", "labelme-vgg16", "digits"} <= set(list_datasets())


def test_the_table_needs_no_torch():
    code = "import sys, annotmix.datasets; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


# -------------------------------------------------------------------- people


def test_mgc_is_split_and_standardised_like_the_paper(data_file):
    gold = pd.read_csv(data_file("mgc/music_genre_gold.csv"))
    other = pd.read_csv(data_file("mgc/music_genre_test.csv"))
    valid, test = train_test_split(other, train_size=100, random_state=0, stratify=other["class"])
    data = load_dataset("mgc", data_file("mgc/music_genre_gold.csv").parents[1], download=False)
    assert repr(data) == "Dataset('mgc', tabular, 700 / 100 / 200 items, 44 annotators)"
    scaler = StandardScaler().fit(gold.iloc[:, 1:-1].to_numpy())
    for X, y, rows in (
        (data.X, data.y, gold),
        (data.X_valid, data.y_valid, valid.sort_index()),
        (data.X_test, data.y_test, test.sort_index()),
    ):
        np.testing.assert_allclose(X, scaler.transform(rows.iloc[:, 1:-1].to_numpy()), atol=1e-5)
        assert X.dtype == np.float32
        assert list(y) == list(rows["class"])
    assert list(data.labels.items) == list(gold["id"])
    assert data.labels.annotators[0] == "w00"
    assert data.test_labels is None
    assert data.settings["dropout"] == 0.5


def test_labelme_photos_and_features(data_dir, data_file):
    data_file("labelme/answers.txt")
    photos, features = (load_dataset(name, data_dir, download=False) for name in ("labelme", "labelme-vgg16"))
    for X, y in ((photos.X, photos.y), (photos.X_valid, photos.y_valid), (photos.X_test, photos.y_test)):
        assert all(
            os.path.isfile(path) and os.path.basename(path).startswith(c)
            for path, c in zip(X, y, strict=True)
        )
    assert photos.labels.n_annotators == 59
    assert features.X.shape == (1000, 512)
    np.testing.assert_allclose(features.X.mean(axis=0), 0, atol=1e-4)
    assert features.labels.to_long().equals(photos.labels.to_long())
    assert (photos.kind, features.kind) == ("image", "tabular")


def test_labels_are_there_but_no_images(data_dir, data_file):
    data_file("cifar100n/CIFAR-100_human.pt")
    with pytest.raises(DatasetMissingError, match=r"cifar-100-python.tar.gz.*Downloads are switched off"):
        load_dataset("cifar100n", data_dir, download=False)


def test_a_file_cut_off_at_a_line_is_noticed(data_file, tmp_path):
    lines = data_file("letter/letter-recognition.data").read_text().splitlines(keepends=True)
    (tmp_path / "letter").mkdir()
    (tmp_path / "letter" / "letter-recognition.data").write_text("".join(lines[:-10]))
    with pytest.raises(DatasetFileError, match="19990 items where letter has 20000"):
        load_dataset("letter", tmp_path, download=False)


# -------------------------------------------------------------------- simulated annotators


def test_digits_need_nothing():
    data, again, other = (load_dataset("digits", random_state=seed) for seed in (0, 0, 1))
    assert repr(data) == "Dataset('digits', tabular, 1197 / 100 / 500 items, 20 annotators)"
    assert set(data.labels.labels_per_item) == {3}
    assert set(data.test_labels.labels_per_item) == {20}
    false = np.mean(data.labels.classes[data.labels.label] != data.y[data.labels.item])
    assert 0.3 < false < 0.5
    skill = [np.mean(data.test_labels.label[own] == data.y_test[data.test_labels.item[own]])
             for own in (data.test_labels.annotator == m for m in range(20))]  # fmt: skip
    assert max(skill) - min(skill) > 0.5
    assert data.labels.to_long().equals(again.labels.to_long())
    assert not data.labels.to_long().equals(other.labels.to_long())
    np.testing.assert_array_equal(data.X, again.X)
    assert len(set(data.labels.items) | set(data.test_labels.items)) == 1697


def test_digits_as_images_have_the_same_labels():
    vectors, images = load_dataset("digits"), load_dataset("digits-images")
    assert (images.X.shape, images.X.dtype, images.kind) == ((1197, 1, 8, 8), np.uint8, "image")
    assert images.X.max() == 255
    assert images.labels.to_long().equals(vectors.labels.to_long())
    assert images.test_labels.to_long().equals(vectors.test_labels.to_long())
    np.testing.assert_array_equal(images.y_test, vectors.y_test)
    pixel = np.corrcoef(images.X_test.reshape(500, 64)[:, 20], vectors.X_test[:, 20])[0, 1]
    assert pixel > 0.999  # the same rows and columns


def test_simulated_labels_of_tables(data_dir, data_file, quick):
    data_file("letter/letter-recognition.data")
    quick("letter")
    data = load_dataset("letter", data_dir, download=False, progress=False)
    assert repr(data) == "Dataset('letter', tabular, 15500 / 500 / 4000 items, 20 annotators)"
    assert set(data.labels.labels_per_item) == {2, 3, 4}
    assert len(data.test_labels) == 20 * 4000
    np.testing.assert_allclose(data.X.std(axis=0), 1, atol=1e-4)
    counts = [np.unique(y, return_counts=True)[1] / len(y) for y in (data.y, data.y_test)]
    np.testing.assert_allclose(*counts, atol=1e-3)  # stratified
    assert list(data.classes[:3]) == ["A", "B", "C"]


def test_simulated_labels_of_texts_come_from_the_cache_the_second_time(
    data_dir, data_file, quick, monkeypatch, own_cache
):
    data_file("trec6/train_5500.label")
    quick("trec6")
    data = load_dataset("trec6", data_dir, download=False, encoder=hashed, progress=False)
    assert repr(data) == "Dataset('trec6', text, 4952 / 500 / 500 items, 20 annotators)"
    assert all(isinstance(text, str) for text in data.X)
    assert data.X_test[0] == "How far is it from Denver to Aspen ?"
    assert data.y_test[0] == "NUM"
    assert list(own_cache.rglob("*.rows"))

    class Encoder:
        transform = staticmethod(hashed)

    monkeypatch.setattr("annotmix.datasets.simulation.trained._labels", None)
    again = load_dataset("trec6", data_dir, download=False, encoder=Encoder(), progress=False)
    assert again.labels.to_long().equals(data.labels.to_long())
    assert again.test_labels.to_long().equals(data.test_labels.to_long())


def test_texts_need_an_encoder(data_dir, data_file):
    with pytest.raises(ValueError, match="pass encoder=, which makes them of texts"):
        load_dataset("trec6", data_dir)
    data_file("trec6/train_5500.label")
    with pytest.raises(ValueError, match=r"4952 rows of features, one per text, found shape \(4952,\)"):
        load_dataset("trec6", data_dir, download=False, encoder=lambda X: [len(x) for x in X])


def test_published_reaches_the_simulation(data_dir, data_file, monkeypatch):
    data_file("letter/letter-recognition.data")
    seen = {}

    def fake(X, y, further, **settings):
        seen.update(settings)
        raise RuntimeError("stop here")

    monkeypatch.setattr("annotmix.datasets.simulation.trained.simulate_annotators", fake)
    with pytest.raises(RuntimeError, match="stop here"):
        load_dataset("letter", data_dir, download=False, published=True, random_state=3, n_jobs=2)
    assert (seen["published"], seen["random_state"], seen["n_jobs"], seen["max_epochs"]) == (True, 3, 2, 20)
    assert (seen["hidden"], seen["dropout"]) == ((256, 128), 0.0)


def test_simulations_are_those_of_the_paper():
    found = {name: spec.simulation for name, spec in SPECS.items() if spec.simulation and spec.paper}
    usual = {"a": (0, 1), "b": (0.5, 2)}
    assert found == {
        "letter": Simulation((2, 4), 20, **usual),
        "trec6": Simulation((2, 4), 20, **usual),
        "aloi": Simulation((1, 1), 20, **usual),
        "dtd": Simulation((1, 1), 10, **usual),
        "flowers102": Simulation((2, 4), 5, a=(0, 1.5), b=(1, 2)),
        "agnews": Simulation((1, 1), 10, a=(0, 0.5), b=(0, 2)),
    }


def test_a_folder_in_pieces(data_file, tmp_path, monkeypatch):
    """Files may lie in several folders."""
    (tmp_path / "mgc").mkdir()
    shutil.copy(data_file("mgc/music_genre_test.csv"), tmp_path / "mgc")
    monkeypatch.setenv("ANNOTMIX_DATA", str(data_file("mgc/music_genre_gold.csv").parents[1]))
    assert len(load_dataset("mgc", tmp_path, download=False).y_test) == 200
    assert get_spec("mgc").paper.train == 700
