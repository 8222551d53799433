"""One reader for every format of the files of tabular, text and photo datasets.

A reader takes the paths by their keys in the table of datasets and the names of the classes.
"""

from __future__ import annotations

import bz2
import io
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.files import load_array
from annotmix._common.progress import Progress
from annotmix.datasets.fetch import matches
from annotmix.datasets.rows import (
    Codes,
    DatasetFileError,
    Part,
    Raw,
    Rows,
    guarded,
    objects,
    read_csv,
    read_lines,
    read_words,
    split_header,
)
from annotmix.labels.annotations import Annotations

Paths = Mapping[str, Path]
PARTS = ("train", "valid", "test")


def read_crowd_table(paths: Paths, classes: Sequence[str]) -> Raw:
    """Tables with a header: `id`, features, `class`; a third one with one row per label and the `annotator`.

    Of several labels of one annotator for one item the first is kept.
    """
    columns, train = _feature_table(paths["train"], classes)
    same, test = _feature_table(paths["test"], classes)
    if same != columns:
        raise DatasetFileError(paths["test"], f"its columns are not those of {paths['train'].name!r}.", 1)
    place, rows = split_header(read_csv(paths["labels"]), "id", "annotator", "class")
    table = pd.DataFrame({name: objects(rows.column(place[name])) for name in ("id", "annotator", "class")})
    for name, known in (("id", train.items), ("class", classes)):
        rows.codes(table[name], known, name)  # an error names the line
    labels = Annotations.from_long(
        table, "id", "annotator", "class", duplicates="first", items=train.items, classes=classes
    )
    return Raw(objects(classes), {"train": train, "test": test}, labels)


def _feature_table(path: Path, classes: Sequence[str]) -> tuple[list[str], Part]:
    place, rows = split_header(read_csv(path), "id", "class")
    last = len(place) - 1
    if place["id"] != 0 or place["class"] != last:
        raise DatasetFileError(path, "the first column must be 'id' and the last one 'class'.", 1)
    y = rows.codes(rows.column(last), classes, "class")
    return list(place), Part(y, rows.unique(rows.column(0), "id"), rows.numbers(1, last))


def read_label_matrix(paths: Paths, classes: Sequence[str]) -> Raw:
    """A matrix of class numbers, one row per photo and one column per annotator, -1 where a label is missing.

    Annotators without labels are left out; the others are named by their column, counted from 0. Items are
    the photos `<class>/<name>` of one folder per part, or the rows of one `.npy` file per part.
    """
    parts = {}
    for part in PARTS:
        rows = read_words(paths[f"classes {part}"])
        y = rows.integers(rows.column(0) if len(rows) else [], 0, len(classes) - 1, "class")
        names = read_lines(paths[f"names {part}"])
        items = names.unique(names.column(0), "photo")
        _require_length(names.path, len(items), len(y), rows.path)
        parts[part] = Part(y, items, _photos_or_features(paths.get(part), [classes[c] for c in y], items))
    rows = read_words(paths["labels"])
    _require_length(rows.path, len(rows), len(parts["train"]), paths["classes train"])
    n_columns = len(rows.cells[0]) if len(rows) else 0
    cells = [cell for row in rows.cells for cell in row]
    wide = Rows(rows.path, [line for line in rows.lines for _ in range(n_columns)], [])
    Z = wide.integers(cells, -1, len(classes) - 1, "label").reshape(len(rows), n_columns)
    used = np.flatnonzero((Z >= 0).any(axis=0))
    item, column = np.nonzero(Z[:, used] >= 0)
    labels = Annotations(item, column, Z[:, used][item, column], parts["train"].items, used, objects(classes))
    return Raw(objects(classes), parts, labels)


def _photos_or_features(
    path: Path | None, folders: Sequence[str], names: NDArray[Any]
) -> NDArray[Any] | None:
    if path is None:
        return None
    if path.suffix != ".npy":
        return _photos(path, [f"{folder}/{name}" for folder, name in zip(folders, names, strict=True)])
    X = np.asarray(guarded(path, lambda: load_array(path)))
    if X.ndim != 2 or X.dtype.kind != "f" or not np.isfinite(X).all():
        raise DatasetFileError(path, f"finite features were expected, found {X.dtype} of {X.shape}.")
    _require_length(path, len(X), len(names), path.with_name("the list of names"))
    return X


def read_class_first(paths: Paths, classes: Sequence[str]) -> Raw:
    """A table without a header: the class, then the features."""
    rows = read_csv(paths["data"])
    if not len(rows) or len(rows.cells[0]) < 2:
        raise DatasetFileError(paths["data"], "a class and its features were expected in every line.")
    y = rows.codes(rows.column(0), classes, "class")
    return Raw(objects(classes), {"train": Part(y, np.arange(len(y)), rows.numbers(1, len(rows.cells[0])))})


def read_libsvm(paths: Paths, classes: None, n_features: int) -> Raw:
    """Lines `class index:value …` with rising indices from 1; absent values are 0. May be a bz2 file."""
    path = paths["data"]
    lines = (_decompressed(path) if path.suffix == ".bz2" else path.read_bytes()).split(b"\n")
    features, labels = [], []
    with Progress(f"reading {path.name}", -(-len(lines) // _LINES)) as progress:
        for first in range(0, len(lines), _LINES):
            X, y = _libsvm_lines(path, lines, first, n_features)
            features.append(X)
            labels.append(y)
            progress.advance()
    names, codes = np.unique(np.concatenate(labels), return_inverse=True)
    if not len(codes):
        raise DatasetFileError(path, "the file is empty.")
    return Raw(names, {"train": Part(codes, np.arange(len(codes)), np.concatenate(features))})


def _decompressed(path: Path) -> bytes:
    """The content of a bz2 file, up to a size that no dataset reaches."""
    with bz2.open(path) as file:
        content: bytes = guarded(path, lambda: file.read(_LARGEST + 1))
    if len(content) > _LARGEST:
        raise DatasetFileError(path, f"more than {_LARGEST} bytes are compressed in it.")
    return content


_LINES = 4000
#: Bytes that a compressed file may hold: 108,000 rows of 128 features (ALOI), 20 characters each, are half.
_LARGEST = 1 << 29
_LIBSVM_LINE = re.compile(rb"[+-]?\d{1,9}(\s+\d{1,9}:[-+.eE\d]+)*")


def _libsvm_lines(
    path: Path, lines: list[bytes], first: int, n_features: int
) -> tuple[NDArray[np.float32], Codes]:
    """Features and classes of the lines from `first` on."""
    from sklearn.datasets import load_svmlight_file

    some_lines = lines[first : first + _LINES]
    for number, line in enumerate(some_lines, start=first + 1):
        if line.strip() and not _LIBSVM_LINE.fullmatch(line.strip()):
            raise DatasetFileError(path, f"'class index:value …' was expected, found {line!r:.60}.", number)
    text = io.BytesIO(b"\n".join(some_lines))
    read = partial(load_svmlight_file, text, n_features=n_features, zero_based=False)
    X, y = guarded(path, read)
    if not np.isfinite(X.data).all():
        raise DatasetFileError(path, "a value is not a finite number.")
    return X.toarray().astype(np.float32), y.astype(np.int64)


def read_questions(paths: Paths, classes: Sequence[str]) -> Raw:
    """Lines `CLASS:subclass text`, in latin-1."""
    parts = {}
    for part in ("train", "test"):
        rows = read_lines(paths[part], "latin-1")
        split = [row[0].partition(" ") for row in rows.cells]
        y = rows.codes([tag.partition(":")[0] for tag, _, _ in split], classes, "class")
        texts = [text.strip() for _, _, text in split]
        if "" in texts:
            raise rows.error(texts.index(""), "a class without a text; the file may be cut off.")
        parts[part] = Part(y, np.arange(len(y)), objects(texts))
    return Raw(objects(classes), parts)


def read_news(paths: Paths, classes: Sequence[str]) -> Raw:
    """Tables without a header: the number of the class from 1, a title, a description."""
    parts = {}
    for part in ("train", "test"):
        rows = read_csv(paths[part], width=3)
        y = rows.integers(rows.column(0), 1, len(classes), "class") - 1
        parts[part] = Part(y, np.arange(len(y)), objects(f"{title} {text}" for _, title, text in rows.cells))
    return Raw(objects(classes), parts)


def read_mat(paths: Paths, classes: Sequence[int], checksums: Mapping[str, str]) -> Raw:
    """MATLAB files: the class of every photo, and the numbers of the photos of every part, both from 1.

    scipy's reader can crash the whole process on a damaged file, so a file is read only with its checksum.
    """
    for key, checksum in checksums.items():
        if not matches(paths[key], checksum):
            raise DatasetFileError(
                paths[key], f"damaged, or another version: it does not have the {checksum}."
            )
    label = _mat(paths["classes"], "labels", len(classes))
    parts = {}
    for part, key in zip(PARTS, ("trnid", "valid", "tstid"), strict=True):
        number = _mat(paths["parts"], key, len(label))
        if len(np.unique(number)) < len(number):
            raise DatasetFileError(paths["parts"], f"a photo is listed twice in {key!r}.")
        names = objects(f"image_{n:05d}.jpg" for n in number)
        X = _photos(paths["images"], names) if "images" in paths else None
        parts[part] = Part(label[number - 1] - 1, names, X)
    return Raw(np.array(classes), parts)


def _mat(path: Path, key: str, highest: int) -> Codes:
    from scipy.io import loadmat

    values = guarded(path, lambda: loadmat(path)[key].ravel())
    if values.dtype.kind not in "iu" or not len(values) or not 1 <= values.min() <= values.max() <= highest:
        raise DatasetFileError(path, f"{key!r} must be integers from 1 to {highest}.")
    return np.asarray(values, dtype=np.int64)


def read_photo_lists(paths: Paths, classes: None) -> Raw:
    """One list of photos `class/name` per part."""
    lists = {part: read_lines(paths["lists"] / name) for part, name in zip(PARTS, _LISTS, strict=True)}
    names = sorted({row[0].partition("/")[0] for rows in lists.values() for row in rows.cells})
    parts = {}
    for part, rows in lists.items():
        items = rows.unique(rows.column(0), "photo")
        if bad := [row for row, item in enumerate(items) if item.count("/") != 1]:
            raise rows.error(bad[0], f"'class/name' was expected, found {items[bad[0]]!r:.60}.")
        y = rows.codes([item.partition("/")[0] for item in items], names, "class")
        parts[part] = Part(y, items, _photos(paths["images"], items) if "images" in paths else None)
    return Raw(objects(names), parts)


_LISTS = ("train1.txt", "val1.txt", "test1.txt")


def read_digits(paths: Paths, classes: None, images: bool = False) -> Raw:
    """The handwritten digits that come with scikit-learn, as 64 numbers or as bytes of shape (1, 8, 8)."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    if images:  # grey values from 0 to 16
        X = (X * (255 / 16)).round().astype(np.uint8).reshape(-1, 1, 8, 8)
    return Raw(np.arange(10), {"train": Part(y.astype(np.int64), np.arange(len(y)), X)})


def _photos(folder: Path, names: Sequence[str] | NDArray[Any]) -> NDArray[Any]:
    """Paths of photos, all of which exist, and none of which leads out of the folder."""
    paths = [folder / name for name in names]
    if any(Path(name).is_absolute() or ".." in Path(name).parts for name in names):
        raise DatasetFileError(folder, "a photo of the list lies outside this folder.")
    if absent := [path for path in paths if not path.is_file()]:
        raise DatasetFileError(
            absent[0], f"there is no such photo ({len(absent)} of {len(paths)} are absent)."
        )
    return objects(map(str, paths))


def _require_length(path: Path, length: int, expected: int, other: Path) -> None:
    if length != expected:
        raise DatasetFileError(path, f"{length} rows, but {expected} in {other.name!r}; one may be cut off.")
