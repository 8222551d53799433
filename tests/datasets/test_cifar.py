"""CIFAR images and labels: whom a label belongs to, and that pickles cannot do anything else."""

from __future__ import annotations

import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from helpers import small_files

from annotmix.datasets import DatasetFileError
from annotmix.datasets.cifar import CIFAR10_CLASSES, CIFAR100_CLASSES, read_images, read_torch


def test_least_accurate_people_and_their_images(tmp_path):
    raw = small_files.cifar_h(tmp_path).read()
    assert raw.labels.annotators.tolist() == [2, 5]
    assert raw.labels.items.tolist() == [0, 3, 4]
    assert raw.labels.to_long().to_numpy().tolist() == [[0, 5, "dog"], [3, 2, "cat"], [4, 2, "cat"]]
    assert raw.parts["train"].y.tolist() == [0, 2, 1]
    X, _ = read_images(tmp_path / "images", ["test_batch"], 3)
    np.testing.assert_array_equal(raw.parts["train"].X, X[[0, 3, 4]])
    assert raw.parts["test"].X.shape == (10, 3, 32, 32)
    assert raw.parts["test"].y.tolist() == [1, 0, 2, 0, 0, 0, 1, 0, 2, 0]


def test_more_people_than_there_are(tmp_path):
    small = small_files.cifar_h(tmp_path)
    with pytest.raises(DatasetFileError, match="labels of 4 annotators; 9 were expected"):
        small.reader(small.paths, small.classes, n_annotators=9)


def test_a_label_belongs_to_the_first_who_gave_it(tmp_path):
    raw = small_files.cifar_n(tmp_path).read()
    # image 0 and 1 are of the first batch (7, 9), 2 and 3 of the second (9, 7)
    assert raw.labels.to_long().to_numpy().tolist() == [
        [0, 9, "dog"],
        [1, 7, "frog"],
        [2, 9, "frog"],
        [3, 9, "cat"],
    ]
    assert raw.parts["train"].X.dtype == np.uint8
    assert raw.parts["train"].X[0].ravel().tolist() == (np.arange(3072) % 256).tolist()


@pytest.mark.parametrize("make", [small_files.cifar_h, small_files.cifar_n])
def test_labels_without_images(make, tmp_path):
    small = make(tmp_path)
    whole = small.read()
    del small.paths["images"]
    alone = small.read()
    assert list(alone.parts) == ["train"]
    assert alone.parts["train"].X is None
    assert alone.labels.to_long().equals(whole.labels.to_long())


@pytest.mark.parametrize(
    ("make", "name", "key"),
    [(small_files.cifar_h, "test_batch", b"labels"), (small_files.cifar_n, "train", b"fine_labels")],
)
def test_images_in_another_order_are_noticed(make, name, key, tmp_path):
    small = make(tmp_path)
    small_files.batch(tmp_path / "images" / name, [0, 0, 1, 1, 2][: 5 if key == b"labels" else 4], key)
    with pytest.raises(DatasetFileError, match="true classes differ from those of the images"):
        small.read()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"worse_label": [1, 1, 1, 1]}, "given by none of the annotators"),
        ({"worse_label": [1, 2, 2, 3]}, "'worse_label' must lie from 0 to 2"),
        ({"worse_label": [1, 2, 2]}, "not of one length"),
        ({"worse_label": None}, "no list 'worse_label' of class numbers"),
        ({"worse_label": [[1], [2, 3]]}, "no list 'worse_label' of class numbers"),
        ({"clean_label": ["a", "b", "c", "d"]}, "no list 'clean_label' of class numbers"),
    ],
)
def test_labels_that_make_no_sense(change, message, tmp_path):
    small = small_files.cifar_n(tmp_path)
    saved = {**read_torch(small.paths["labels"]), **change}
    torch.save(saved, small.paths["labels"])
    with pytest.raises(DatasetFileError) as error:
        small.read()
    assert message in str(error.value)


def test_too_few_rows_of_people(tmp_path):
    small = small_files.cifar_n(tmp_path)
    small.paths["people"].write_text("Image-batch,Worker1-id,Worker2-id\n0--1,7,9\n")
    with pytest.raises(DatasetFileError, match="1 rows; 2 were expected"):
        small.read()


class Harmful:
    """Runs a command when it is unpickled freely."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickles_run_nothing(protocol, tmp_path):
    harm = {b"data": Harmful(tmp_path / "harm"), b"labels": [0]}
    (tmp_path / "bad").write_bytes(pickle.dumps(harm, protocol=protocol))
    with pytest.raises(DatasetFileError, match=r"it asks for (posix|nt|os)\.mkdir"):
        read_images(tmp_path, ["bad"], 3)
    with zipfile.ZipFile(tmp_path / "bad.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(harm, protocol=protocol))
    with pytest.raises(DatasetFileError, match=r"it asks for (posix|nt|os)\.mkdir"):
        read_torch(tmp_path / "bad.pt")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("what", [np.matrix([[1]]), np.array([Harmful("x")], dtype=object), {1}.__class__])
def test_only_plain_arrays_are_made(what, tmp_path):
    (tmp_path / "bad").write_bytes(pickle.dumps({b"data": what, b"labels": [0]}, protocol=2))
    with pytest.raises(DatasetFileError):
        read_images(tmp_path, ["bad"], 3)


def test_python_2_files_are_read(tmp_path):
    """The official files were written by Python 2: its strings are bytes."""
    row = bytes(range(256)) * 12
    text = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b"
        b"\x87Rq\x05(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff"
        b"\xffJ\xff\xff\xff\xffK\x00tb\x89T\x00\x0c\x00\x00" + row + b"tbU\x06labelsq\x08]q\tK\x02au."
    )
    (tmp_path / "old").write_bytes(text)
    X, y = read_images(tmp_path, ["old"], 3)
    assert X.tobytes() == row
    assert y.tolist() == [2]


def test_a_missing_file_of_the_folder_is_named(tmp_path):
    with pytest.raises(DatasetFileError, match=r"data_batch_1': there is no such file"):
        read_images(tmp_path, ["data_batch_1"], 3)


def test_real_labels(data_file):
    found = read_torch(data_file("cifar100n/CIFAR-100_human.pt"))
    assert found["noisy_label"].shape == (50_000,)
    assert (len(CIFAR10_CLASSES), len(CIFAR100_CLASSES)) == (10, 100)
    coarse = dict(zip(found["clean_label"].tolist(), found["clean_coarse_label"], strict=True))
    groups = [{CIFAR100_CLASSES[fine] for fine, of in coarse.items() if of == group} for group in (1, 14, 17)]
    assert groups == [
        {"aquarium_fish", "flatfish", "ray", "shark", "trout"},
        {"baby", "boy", "girl", "man", "woman"},
        {"maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"},
    ]
