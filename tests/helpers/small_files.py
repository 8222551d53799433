"""Small whole files of every format, written by hand."""

from __future__ import annotations

import bz2
import pickle
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.io import savemat

from annotmix.datasets import cifar, readers
from annotmix.datasets.rows import Raw

GENRES = ("blues", "jazz")
ANIMALS = ("cat", "dog", "frog")


class Small(NamedTuple):
    """What a reader takes."""

    reader: Any
    paths: dict[str, Path]
    classes: Any
    options: dict[str, Any] = {}  # noqa: RUF012

    def read(self) -> Raw:
        return self.reader(self.paths, self.classes, **self.options)


def _write(folder: Path, **texts: str) -> dict[str, Path]:
    paths = {}
    for key, text in texts.items():
        paths[key] = folder / f"{key}.txt"
        paths[key].write_text(text, encoding="latin-1", newline="")
    return paths


def crowd_table(folder: Path) -> Small:
    paths = _write(
        folder,
        labels="id,annotator,f0,f1,class\na,w1,1,2,jazz\na,w2,1,2,blues\nb,w1,3,4,jazz\nc,w3,5,6,blues\n",
        train="id,f0,f1,class\na,1,2,jazz\nb,3,4,jazz\nc,5,6,blues\n",
        test="id,f0,f1,class\nd,1.5,-2,jazz\ne,3e-1,4,blues\n",
    )
    return Small(readers.read_crowd_table, paths, GENRES)


def label_matrix(folder: Path) -> Small:
    texts = {"labels": "-1 0 -1 1\n-1 2 2 -1\n-1 -1 0 0\n"}
    for part, classes in (("train", (0, 2, 0)), ("valid", (1,)), ("test", (2, 1))):
        names = [f"{part}{n}.jpg" for n in range(len(classes))]
        texts[f"classes {part}"] = "".join(f"{c}\n" for c in classes)
        texts[f"names {part}"] = "".join(f"{name}\n" for name in names)
        for c, name in zip(classes, names, strict=True):
            (folder / part / ANIMALS[c]).mkdir(parents=True, exist_ok=True)
            (folder / part / ANIMALS[c] / name).touch()
    photos = {part: folder / part for part in readers.PARTS}
    return Small(readers.read_label_matrix, {**_write(folder, **texts), **photos}, ANIMALS)


def features(folder: Path) -> Small:
    small = label_matrix(folder)
    for part, n in (("train", 3), ("valid", 1), ("test", 2)):
        small.paths[part] = folder / f"{part}.npy"
        np.save(small.paths[part], np.arange(4 * n, dtype=np.float32).reshape(n, 4))
    return small


def class_first(folder: Path) -> Small:
    return Small(readers.read_class_first, _write(folder, data="A,1,2\nB,3,4\nA,5,6\n"), ("A", "B"))


def libsvm(folder: Path) -> Small:
    path = folder / "data.bz2"
    path.write_bytes(bz2.compress(b"0 1:0.5 3:2\n7 2:-1e-1\n0 4:1 \n"))
    return Small(readers.read_libsvm, {"data": path}, None, {"n_features": 4})


def libsvm_plain(folder: Path) -> Small:
    return Small(
        readers.read_libsvm, _write(folder, data="0 1:0.5 3:2\n7 2:-1e-1\n"), None, {"n_features": 4}
    )


def questions(folder: Path) -> Small:
    paths = _write(folder, train="HUM:ind Who ?\nNUM:date When in caf\xe9 ?\n", test="HUM:gr Which one ?\n")
    return Small(readers.read_questions, paths, ("HUM", "NUM"))


def news(folder: Path) -> Small:
    paths = _write(folder, train='"1","A ""b""","c"\n"2","d","e, f"\n', test='"2","g","h"\n')
    return Small(readers.read_news, paths, ("World", "Sports"))


def mat(folder: Path) -> Small:
    paths = {"classes": folder / "classes.mat", "parts": folder / "parts.mat"}
    savemat(paths["classes"], {"labels": np.array([[1, 2, 3, 1, 2]], dtype=np.uint8)})
    parts = {"trnid": [[1, 5]], "valid": [[2]], "tstid": [[3, 4]]}
    savemat(paths["parts"], {key: np.array(n, dtype=np.uint16) for key, n in parts.items()})
    checksums = {key: f"sha256:{sha256(path.read_bytes()).hexdigest()}" for key, path in paths.items()}
    return Small(readers.read_mat, paths, (1, 2, 3), {"checksums": checksums})


def photo_lists(folder: Path) -> Small:
    (folder / "lists").mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("train1", "cat/1.jpg\ndog/2.jpg\n"),
        ("val1", "dog/3.jpg\n"),
        ("test1", "cat/4.jpg\n"),
    ):
        (folder / "lists" / f"{name}.txt").write_text(text)
        for line in text.split():
            (folder / "images" / line).parent.mkdir(parents=True, exist_ok=True)
            (folder / "images" / line).touch()
    return Small(readers.read_photo_lists, {"lists": folder / "lists", "images": folder / "images"}, None)


def batch(path: Path, labels: list[int], key: bytes = b"labels") -> None:
    data = np.arange(len(labels) * 3072, dtype=np.uint64).astype(np.uint8).reshape(-1, 3072)
    names = [f"{n}.png".encode() for n in range(len(labels))]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps({key: labels, b"data": data, b"filenames": names}, protocol=2))


def cifar_h(folder: Path) -> Small:
    """Six people; 2 and 5 are never right, 0 always is; image 3 has true class 2, and so on."""
    truth, rows = (
        [0, 1, 2, 2, 1],
        ["annotator_id,is_attn_check,true_label,chosen_label,cifar10_test_test_idx"],
    )
    for person, (image, given) in (
        (0, (0, 0)),
        (0, (3, 2)),
        (2, (3, 0)),
        (2, (4, 0)),
        (5, (0, 1)),
        (1, (1, 1)),
    ):
        rows.append(f"{person},0,{truth[image]},{given},{image}")
    rows.append("5,1,0,0,-99999")
    with zipfile.ZipFile(folder / "raw.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("raw.csv", "\n".join(rows))
    batch(folder / "images" / "test_batch", truth)
    for number in range(1, 6):
        batch(folder / "images" / f"data_batch_{number}", [number % 3, 0])
    paths = {"labels": folder / "raw.zip", "images": folder / "images"}
    return Small(cifar.read_cifar_h, paths, ANIMALS, {"n_annotators": 2})


def cifar_n(folder: Path) -> Small:
    """Four images in batches of two; the worse label is the first of person 1, else of person 2."""
    truth = np.array([0, 1, 2, 0])
    given = {"random_label1": [0, 2, 2, 0], "random_label2": [1, 2, 2, 1], "worse_label": [1, 2, 2, 0]}
    saved = {"clean_label": truth, **{key: np.array(values) for key, values in given.items()}}
    torch.save(saved, folder / "human.pt")
    (folder / "people.csv").write_text("Image-batch,Worker1-id,Worker2-id\n0--1,7,9\r\n2--3,9,7")
    batch(folder / "images" / "train", truth.tolist(), b"fine_labels")
    batch(folder / "images" / "test", [2, 1], b"fine_labels")
    paths = {"labels": folder / "human.pt", "people": folder / "people.csv", "images": folder / "images"}
    options = {
        "label": "worse_label",
        "candidates": (("random_label1", "Worker1-id"), ("random_label2", "Worker2-id")),
        "batch": 2,
        "train": ("train",),
        "test": "test",
    }
    return Small(cifar.read_cifar_n, paths, ANIMALS, options)


FORMATS = {
    make.__name__: make
    for make in (
        crowd_table,
        label_matrix,
        features,
        class_first,
        libsvm,
        libsvm_plain,
        questions,
        news,
        mat,
        photo_lists,
        cifar_h,
        cifar_n,
    )
}
