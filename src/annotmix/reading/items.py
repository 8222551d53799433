"""The labelled items: a table of features, texts, or a folder of images, each with an id."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.files import read_array
from annotmix._common.progress import Progress
from annotmix._common.spreadsheet import unguard
from annotmix._common.words import count, some
from annotmix.labels.columns import find_column, guess_column
from annotmix.reading.containers import is_packed
from annotmix.reading.image_names import image_ids
from annotmix.reading.input_files import (
    InputFile,
    Source,
    decode,
    fingerprint,
    is_json,
    is_parquet,
    read_bytes,
)
from annotmix.reading.texts import as_text, varies
from annotmix.reading.values import LONGEST_TEXT, as_ids

#: Columns of these names hold labels or annotators, and no features.
_NO_FEATURES = {
    "label", "labels", "class", "truth", "gold", "target", "truelabel", "goldlabel", "groundtruth",
    "worker", "workerid", "annotator", "annotatorid",
}  # fmt: skip
#: Why columns are no features.
_NAMED, _LABELS = "by their names", "as they hold labels"
_DIFFERS = "as they differ between labels of one item"
_IMAGES = frozenset([".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff"])


@dataclass(frozen=True, eq=False)
class Items:
    """Items with their ids.

    Parameters
    ----------
    kind : {"features", "text", "images"}
    ids : list of str
        Unique names.
    X : DataFrame, list of str or list of Path
        Features, texts or image files, one row or entry per id.
    notes : list of str
        Notes about what was read, changed and left out.
    sources : list of Source
    id_column : str, optional
        The column that held the ids.
    left_out : mapping of column to reason
        Columns of a table that are no features.
    unclear : frozenset of str
        Ids of items that fit a labelled item, but not only it, so that its labels are left out.
    """

    kind: str
    ids: list[str]
    X: Any
    notes: list[str]
    sources: list[Source]
    id_column: str | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    unclear: frozenset[str] = frozenset()


def read_features(
    path: Path,
    ids: Path | None = None,
    item: str | None = None,
    include: Iterable[str] = (),
    exclude: Iterable[str] = (),
    labels: Iterable[str] | None = None,
) -> Items:
    """Features in a table (CSV, TSV, Excel, Parquet, JSON Lines) with a column of ids, or in an NPY array.

    Parameters
    ----------
    path : Path
    ids : Path, optional
        For an array: a file with one id per row (text, CSV or NPY). Without it rows are numbered from 0.
    item : str, optional
        The column of ids; by default it is found by its name.
    include, exclude : iterable of str
        Columns that are features although they are called like a label, and columns that are none.
    labels : iterable of str, optional
        Columns that hold labels and annotators, where the table has one row per label. Columns that differ
        between the labels of one item are then no features either.
    """
    if path.suffix.lower() == ".npy" or read_bytes(path)[:6] == b"\x93NUMPY":
        return _array(path, ids)
    if ids is not None:
        raise ValueError(
            f"--ids is for arrays (NPY); {path.name!r} is a table, name its column of ids with "
            "--item-column NAME."
        )
    file = InputFile(path)
    column = find_column(file.table.columns, "id", item, path.name)
    left_out = _no_features(file.table, column, set(include), set(exclude), labels, path.name)
    rows, names, changed = _first_of_each(file.table[column], path.name)
    note = f"{path.name}: features of items named by the column {column!r}."
    kept = [name for name in file.table.columns if name not in {column, *left_out}]
    features = file.table[kept].iloc[rows].reset_index(drop=True)
    notes = [*file.notes, note, *_left_out_notes(left_out), *changed]
    return Items("features", names, features, notes, [file.source("features")], column, left_out)


def read_texts(path: Path, column: str | None = None, item: str | None = None) -> Items:
    """Texts in a column of a table, with a column of ids."""
    file = InputFile(path)
    table = file.table
    key = find_column(table.columns, "id", item, path.name)
    rows, names, changed = _first_of_each(table[key], path.name)
    others = [name for name in table.columns if name != key]
    text = find_column(
        others, "text", column or guess_column(others, "text") or _longest(table[others]), path.name
    )
    texts = [as_text(value) for value in table[text].iloc[rows]]
    empty = sum(not value.strip() for value in texts)
    notes = [*file.notes, f"{path.name}: texts in the column {text!r}, items in {key!r}.", *changed]
    if empty:
        notes.append(count(empty, "text is empty and kept.", "texts are empty and kept."))
    if long := sum(len(value) > LONGEST_TEXT for value in texts):
        notes.append(f"{count(long, 'text was', 'texts were')} cut after {LONGEST_TEXT:,} characters.")
    cut = [value[:LONGEST_TEXT] for value in texts]
    return Items("text", names, cut, notes, [file.source("texts")], key)


def read_images(folder: Path, wanted: Sequence[str] = (), show: bool = True) -> Items:
    """All images in a folder and the folders in it; unreadable ones are listed, skipped and counted.

    Ids are never used as paths: files are listed first, and then matched by their path in the folder, their
    name, their name without its ending, or the addresses that Label Studio gives them, whichever fits most
    of the `wanted` ids.
    """
    from annotmix.encoders.pictures import UnreadableImageError, read, read_all

    if not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is not a folder with images.")
    paths = image_files(folder)
    if not paths:
        raise ValueError(f"The folder {str(folder)!r} holds no images ({', '.join(sorted(_IMAGES))}).")
    readable, wrong, digest = [], [], hashlib.sha256()
    with Progress("reading images", len(paths), show=show) as progress:
        for path in paths:
            progress.advance()
            try:
                read_all([path], read)
                digest.update(f"{path.relative_to(folder).as_posix()}\0{fingerprint(path)}\n".encode())
                readable.append(path)
            except UnreadableImageError as error:
                reason = str(error).splitlines()[-1].rpartition(": ")[2]
                wrong.append(f"{path.relative_to(folder).as_posix()} ({reason})")
    notes = []
    if wrong:
        more = f", … ({len(wrong)} in all)" if len(wrong) > 5 else ""
        notes.append(
            count(len(wrong), "image cannot be read and was", "images cannot be read and were")
            + f" skipped: {', '.join(wrong[:5])}{more}."
        )
    if not readable:
        raise ValueError(f"No image in {str(folder)!r} can be read. {' '.join(notes)}")
    names = image_ids(folder, readable, set(wanted))
    notes.insert(0, f"{folder.name}: {count(len(readable), 'image')}, named by {names.rule}.")
    for item, files in list(names.unclear.items())[:1]:
        notes.append(
            count(len(names.unclear), "labelled item fits", "labelled items fit")
            + " several images, or an image that fits another item, too; these labels are left out (the "
            f"first: {item!r:.100} and {some(files)})."
        )
    source = Source("images", folder.name, digest.hexdigest(), len(readable))
    unclear = frozenset(file for files in names.unclear.values() for file in files)
    return Items("images", names.ids, readable, notes, [source], unclear=unclear)


def image_files(folder: Path) -> list[Path]:
    """The images in a folder and the folders in it, by the endings of their names."""
    inside = folder.resolve()
    paths = [
        Path(root) / name
        for root, _, names in os.walk(folder)
        for name in names
        if Path(name).suffix.lower() in _IMAGES and not name.startswith(".")
    ]
    # a link out of the folder is not followed
    return sorted(path for path in paths if path.is_file() and path.resolve().is_relative_to(inside))


def _array(path: Path, ids: Path | None) -> Items:
    array = read_array(io.BytesIO(read_bytes(path)), repr(path.name))
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(
            f"{path.name!r} holds {array.dtype} of shape {array.shape}, expected numbers with one "
            "row per item and one column per feature."
        )
    notes, sources = [], [Source("features", path.name, fingerprint(path), len(array))]
    if ids is None:
        names = [str(n) for n in range(len(array))]
        notes.append(f"{path.name}: an array without ids; its rows are the items 0 to {len(array) - 1}.")
    else:
        names, notes = _read_ids(ids)
        sources.append(Source("ids", ids.name, fingerprint(ids), len(names)))
        if len(names) != len(array):
            raise ValueError(
                f"{ids.name!r} names {len(names)} items, but {path.name!r} has {len(array)} rows."
            )
        if len(set(names)) < len(names):
            repeated = pd.Series(names)[pd.Series(names).duplicated()].unique()
            raise ValueError(f"{ids.name!r}: every row needs an id of its own; repeated: {some(repeated)}.")
    table = pd.DataFrame(array, columns=[str(n) for n in range(array.shape[1])])
    return Items("features", names, table, notes, sources)


def _read_ids(path: Path) -> tuple[list[str], list[str]]:
    """One id per row: an NPY vector, a table with a column of ids, or plain lines."""
    data = read_bytes(path)
    notes: list[str] = []
    if data[:6] == b"\x93NUMPY":
        values: Any = read_array(io.BytesIO(data), repr(path.name))
        if values.ndim != 1 or values.dtype.kind not in "biufU":
            raise ValueError(
                f"{path.name!r} holds {values.dtype} of shape {values.shape}, expected a vector of ids."
            )
        values = values.tolist()
    else:
        binary = is_parquet(data) or is_packed(data)
        text, notes = ("", []) if binary else decode(data, path.name)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        values = [unguard(line) for line in lines]
        if binary or is_json(text) or any(mark in lines[0] for mark in ",;\t"):
            table = InputFile(path).table
            values = table[find_column(table.columns, "item", None, path.name)]
        elif guess_column(lines[:1], "item") is not None:
            values = values[1:]  # a header alone in its line
    names, changed = as_ids(values)
    if any(name is None for name in names):
        raise ValueError(f"{path.name!r}: row {[name is None for name in names].index(True)} has no id.")
    return [str(name) for name in names], [*notes, *changed]


def called_like_a_label(column: str) -> bool:
    """Whether a column holds labels or annotators, by its name."""
    return "".join(filter(str.isalnum, column.lower())) in _NO_FEATURES


def _no_features(
    table: pd.DataFrame,
    key: str,
    include: set[str],
    exclude: set[str],
    labels: Iterable[str] | None,
    name: str,
) -> dict[str, str]:
    """The columns that are no features, and why; `labels` as in `read_features`."""
    columns = list(table.columns)
    if unknown := sorted((include | exclude) - set(columns)):
        raise ValueError(
            f"{name!r} has no column {', '.join(map(repr, unknown))}. It has the columns {some(columns, 12)}."
        )
    if len(set(columns)) < len(columns):
        raise ValueError(f"{name!r} has several columns of one name; every feature needs a name of its own.")
    why = dict.fromkeys(exclude, "--exclude")
    if labels is not None:
        why |= {column: _LABELS for column in labels if column in columns and column not in include}
        items, _ = as_ids(table[key])
        rest = [column for column in columns if column not in {key, *why, *include}]
        why |= {column: _DIFFERS for column in rest if varies(table[column], items)}
    for column in columns:
        if column not in {key, *include}.union(why) and called_like_a_label(column):
            why[column] = _NAMED
    if len({key, *why}) == len(columns):
        raise ValueError(
            f"{name!r} has no features beside the column {key!r}; it has the columns {some(columns, 12)}."
        )
    return why


def _left_out_notes(left_out: Mapping[str, str]) -> list[str]:
    return [
        f"Left out as no features, {reason}: {some(columns)} (--include NAME keeps one)."
        for reason in (_NAMED, _LABELS, _DIFFERS)
        if (columns := [column for column, why in left_out.items() if why == reason])
    ]


def _first_of_each(column: pd.Series, name: str) -> tuple[list[int], list[str], list[str]]:
    """Rows that have an id, the first of each; these ids; and notes about changed and dropped rows."""
    texts, notes = as_ids(column)
    seen: dict[str, int] = {}
    for row, text in enumerate(texts):
        if text is not None:
            seen.setdefault(text, row)
    if absent := sum(text is None for text in texts):
        notes.append(f"{name}: {count(absent, 'row without an id was', 'rows without an id were')} left out.")
    if repeated := len(texts) - absent - len(seen):
        notes.append(
            f"{name}: {count(repeated, 'row repeats', 'rows repeat')} an id; the first of each counts."
        )
    if not seen:
        raise ValueError(f"{name!r}: no row has an id.")
    return list(seen.values()), list(seen), notes


def _longest(table: pd.DataFrame) -> str | None:
    """The column with the longest texts on average, None where there are no texts."""
    means = {
        column: float(
            np.mean([len(cell) if isinstance(cell, str) else 0 for cell in table[column].head(200)])
        )
        for column in table.columns
    }
    best = max(means, key=lambda column: means[column], default=None)
    return best if best is not None and means[best] >= 10 else None
