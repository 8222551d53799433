"""Readers for CIFAR images and for their labels by human annotators.

The images come as pickles, and the labels of CIFAR-N as PyTorch files, which are pickles in a zip archive.
`annotmix.datasets.plain_pickles` reads them; a file with more than plain values is refused.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotmix.datasets.plain_pickles import is_list_of_integers, read_plain_pickle
from annotmix.datasets.rows import (
    Codes,
    DatasetFileError,
    Part,
    Raw,
    Rows,
    decode,
    guarded,
    objects,
    read_csv,
    split_header,
)
from annotmix.datasets.spec import words
from annotmix.labels.annotations import Annotations

CIFAR10_CLASSES = words("airplane automobile bird cat deer dog frog horse ship truck")
CIFAR100_CLASSES = words(
    """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
    camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup
    dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower
    leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid
    otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray
    road rocket rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar
    sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
    """
)
#: Bytes of a file of images and of a file of labels; those of CIFAR-100 and CIFAR-10H have up to two thirds.
LARGEST_IMAGES, LARGEST_LABELS = 1 << 28, 1 << 24


def read_cifar_h(paths: Mapping[str, Path], classes: tuple[str, ...], n_annotators: int) -> Raw:
    """CIFAR-10H: the test images, labelled by the `n_annotators` least accurate annotators.

    Attention checks are left out. Of several labels of one annotator for one image the first is kept; among
    equally accurate annotators the one with the lower number comes first.
    """
    table = read_csv(paths["labels"], decode(paths["labels"], _member(paths["labels"], ".csv")))
    needed = ("annotator_id", "is_attn_check", "true_label", "chosen_label", "cifar10_test_test_idx")
    place, rows = split_header(table, *needed)
    check = place["is_attn_check"]
    kept = [row for row, cells in enumerate(rows.cells) if cells[check].strip() != "1"]
    rows = Rows(rows.path, [rows.lines[row] for row in kept], [rows.cells[row] for row in kept])
    last = len(classes) - 1
    number = rows.integers(rows.column(place["annotator_id"]), 0, 10**6, "annotator_id")
    image = rows.integers(rows.column(place["cifar10_test_test_idx"]), 0, 9999, "cifar10_test_test_idx")
    true = rows.integers(rows.column(place["true_label"]), 0, last, "true_label")
    codes = rows.integers(rows.column(place["chosen_label"]), 0, last, "chosen_label")
    annotators, annotator = np.unique(number, return_inverse=True)
    if len(annotators) < n_annotators:
        raise DatasetFileError(
            paths["labels"], f"labels of {len(annotators)} annotators; {n_annotators} were expected."
        )
    accuracy = np.bincount(annotator, true == codes) / np.bincount(annotator)
    worst = np.sort(np.argsort(accuracy, kind="stable")[:n_annotators])
    _, first = np.unique(number * 10_000 + image, return_index=True)
    chosen = first[np.isin(annotator[first], worst)]
    images, item = np.unique(image[chosen], return_inverse=True)
    labels = Annotations(
        item,
        np.searchsorted(worst, annotator[chosen]),
        codes[chosen],
        images,
        annotators[worst],
        objects(classes),
    )
    y = np.zeros(len(images), dtype=np.int64)
    y[item] = true[chosen]
    if (other := np.flatnonzero(y[item] != true[chosen])).size:
        raise rows.error(
            int(chosen[other[0]]), f"image {images[item[other[0]]]} had another true_label before."
        )
    parts = {"train": Part(y, images)}
    if "images" in paths:
        X, truth = read_images(paths["images"], ["test_batch"], len(classes))
        _require_same(paths["labels"], y, truth[images] if len(truth) > images.max(initial=-1) else truth)
        parts["train"] = Part(y, images, X[images])
        names = [f"data_batch_{number}" for number in range(1, 6)]
        parts["test"] = _images_part(paths["images"], names, len(classes))
    return Raw(objects(classes), parts, labels)


def read_cifar_n(
    paths: Mapping[str, Path],
    classes: tuple[str, ...],
    label: str,
    candidates: tuple[tuple[str, str], ...],
    batch: int,
    train: tuple[str, ...],
    test: str,
) -> Raw:
    """CIFAR-10N and CIFAR-100N: the training images, each with one label.

    Row i // `batch` of the table of annotators belongs to image i. Where three annotators labelled an image,
    the label counts for the first of them who gave it.

    Parameters
    ----------
    label : str
        Which labels of the file to take.
    candidates : tuple of (str, str)
        Names of the labels of every annotator and of the column with the annotator's number.
    batch : int
        Images that an annotator saw at once.
    train, test : str
        Files with the images.
    """
    human = read_torch(paths["labels"])
    y, codes = (_labels(paths["labels"], human, key, len(classes)) for key in ("clean_label", label))
    own = np.stack([_labels(paths["labels"], human, key, len(classes)) for key, _ in candidates], axis=1)
    if not len(y) == len(codes) == len(own):
        raise DatasetFileError(paths["labels"], "its labels are not of one length.")
    who = (own == codes[:, None]).argmax(axis=1)
    if not (own[np.arange(len(y)), who] == codes).all():
        raise DatasetFileError(
            paths["labels"], f"some of its {label!r} were given by none of the annotators."
        )
    place, rows = split_header(read_csv(paths["people"]), *(column for _, column in candidates))
    if len(rows) * batch != len(y):
        raise DatasetFileError(paths["people"], f"{len(rows)} rows; {len(y) // batch} were expected.")
    annotators = np.stack(
        [rows.integers(rows.column(place[name]), 0, 10**6, name) for _, name in candidates], axis=1
    )
    image = np.arange(len(y))
    names, annotator = np.unique(annotators[image // batch, who], return_inverse=True)
    labels = Annotations(image, annotator, codes, image, names, objects(classes))
    parts = {"train": Part(y, image)}
    if "images" in paths:
        X, truth = read_images(paths["images"], train, len(classes))
        _require_same(paths["labels"], y, truth)
        parts = {"train": Part(y, image, X), "test": _images_part(paths["images"], [test], len(classes))}
    return Raw(objects(classes), parts, labels)


def read_images(
    folder: Path, names: tuple[str, ...] | list[str], n_classes: int
) -> tuple[NDArray[np.uint8], Codes]:
    """Images, shape (n, 3, 32, 32), and their classes from files of a CIFAR folder."""
    images, labels = [], []
    for name in names:
        path = folder / name
        if not path.is_file():
            raise DatasetFileError(path, "there is no such file.")
        batch = _unpickle(path, _bounded(path, LARGEST_IMAGES))
        data = batch.get(b"data")
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (3072,):
            raise DatasetFileError(path, "not a CIFAR file: no 'data' of 3072 bytes per image.")
        key = b"fine_labels" if b"fine_labels" in batch else b"labels"
        codes = _labels(path, batch, key, n_classes)
        if len(codes) != len(data):
            raise DatasetFileError(path, f"{len(data)} images but {len(codes)} labels.")
        images.append(data.reshape(-1, 3, 32, 32))
        labels.append(codes)
    return np.concatenate(images), np.concatenate(labels)


def read_torch(path: Path) -> dict[Any, Any]:
    """A dictionary of numpy arrays and lists that PyTorch saved."""
    return _unpickle(path, _member(path, "/data.pkl"))


def _unpickle(path: Path, content: bytes) -> dict[Any, Any]:
    saved: dict[Any, Any] = guarded(path, lambda: read_plain_pickle(content))
    return saved


def _labels(path: Path, saved: dict[Any, Any], key: Any, n_classes: int) -> Codes:
    name = key.decode() if isinstance(key, bytes) else key
    listed = saved.get(key)
    known = isinstance(listed, np.ndarray) or is_list_of_integers(listed)
    values = guarded(path, lambda: np.asarray(listed if known else (), dtype=None if known else object))
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise DatasetFileError(path, f"no list {name!r} of class numbers.")
    if len(values) and not 0 <= values.min() <= values.max() < n_classes:
        raise DatasetFileError(path, f"{name!r} must lie from 0 to {n_classes - 1}.")
    return np.asarray(values, dtype=np.int64)


def _images_part(folder: Path, names: list[str], n_classes: int) -> Part:
    X, y = read_images(folder, names, n_classes)
    return Part(y, np.arange(len(y)), X)


def _require_same(path: Path, y: Codes, truth: Codes) -> None:
    """The files with the labels and with the images must be about the same images."""
    if len(y) != len(truth) or (y != truth).any():
        raise DatasetFileError(
            path, "its true classes differ from those of the images: the order of one differs."
        )


def _bounded(path: Path, most: int) -> bytes:
    """The content of a file that must not be larger than its kind ever is."""
    if (size := path.stat().st_size) > most:
        raise DatasetFileError(path, f"{size} bytes; at most {most} were expected.")
    return path.read_bytes()


def _member(path: Path, ending: str) -> bytes:
    """The one file in a zip archive whose name ends like this."""

    def read() -> bytes:
        with zipfile.ZipFile(io.BytesIO(_bounded(path, LARGEST_LABELS))) as archive:
            members = [own for own in archive.infolist() if own.filename.endswith(ending)]
            members = [own for own in members if "__MACOSX" not in own.filename]
            if len(members) != 1:
                raise ValueError(f"{len(members)} files *{ending} in it where one was expected")
            if members[0].file_size > LARGEST_LABELS:
                raise ValueError(
                    f"{members[0].file_size} bytes in it; at most {LARGEST_LABELS} were expected"
                )
            # of other methods, the reader decompresses more at once than it is asked for
            if members[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("compressed in a way that is not read; expected the deflate method")
            return archive.read(members[0])

    return bytes(guarded(path, read))
