"""Labels in many Parquet files or tables, for crowds that do not fit into memory.

All labels of an item have to be together, and files are in any order. So labels are sorted into parts by the
hash of their item: `scatter` distributes the rows of one file or table, `gather` collects the rows of one
part. Names of annotators and classes are encoded once, for all parts; names of items belong to their part.
Every function can run in a process of its own; files in the working folder are all that they exchange.

FOLDER/
  scattered/PIECE/PART.parquet   rows of one file or table that belong to one part
  annotators.parquet, classes.parquet
  cells.npy                      annotator · C + label of the cells that occur, ascending
  start-PART.npy, place-PART.npy start of each item's labels; place of each label's cell among the cells
  items-PART.parquet             names of the part's items
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from annotmix._common.files import load_array, save_array, write_atomically
from annotmix.labels.columns import find_column
from annotmix.labels.names import Index, ascending
from annotmix.reading.formats import Columns
from annotmix.reading.values import as_ids, as_labels

#: Rows that are read at once.
BATCH = 2**18
ROLES = ("item", "annotator", "label")


class Scattered(NamedTuple):
    """What one file holds."""

    annotators: list[str]
    classes: list[str]
    n_rows: int
    n_incomplete: int


class Gathered(NamedTuple):
    """What one part holds."""

    n_items: int
    n_labels: int
    n_repeated: int
    cells: Index
    counts: Index


def n_rows(path: str) -> int:
    """Rows of a Parquet file, by its metadata."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{Path(path).name!r} is not a whole Parquet file: {error}") from None


def scatter(piece: str | pd.DataFrame, number: int, folder: str, columns: Columns, n_parts: int) -> Scattered:
    """Write the rows of a Parquet file or a table, the `number`-th, to one file per part."""
    if isinstance(piece, str):
        file, called = pq.ParquetFile(piece), Path(piece).name
        present = file.schema_arrow.names
    else:
        present, called = list(piece.columns), None
    names = [
        find_column(present, role, named, called)
        for role, named in zip(ROLES, (columns.item, columns.annotator, columns.label), strict=True)
    ]
    batches = (
        file.iter_batches(BATCH, columns=names)
        if isinstance(piece, str)
        else pa.Table.from_pandas(piece[names], preserve_index=False).to_batches(BATCH)
    )
    target = Path(folder) / "scattered" / str(number)
    target.mkdir(parents=True, exist_ok=True)
    annotators: dict[str, None] = {}
    classes: dict[str, None] = {}
    total = incomplete = 0
    schema = pa.schema([(role, pa.string()) for role in ROLES])
    writers = [pq.ParquetWriter(target / f"{part}.parquet", schema) for part in range(n_parts)]
    try:
        for batch in batches:
            texts = [
                _texts(batch.column(name), role, columns) for name, role in zip(names, ROLES, strict=True)
            ]
            whole = np.logical_and.reduce([codes >= 0 for codes, _ in texts])
            total, incomplete = total + len(whole), incomplete + int((~whole).sum())
            annotators |= dict.fromkeys(texts[1][1])
            classes |= dict.fromkeys(texts[2][1])
            part = _part_of(texts[0][1], n_parts)[texts[0][0]]
            for at, rows in _split(np.where(whole, part, n_parts), n_parts):
                arrays = [pa.array(words[codes[rows]], pa.string()) for codes, words in texts]
                writers[at].write_table(pa.table(arrays, schema=schema))
    finally:
        for writer in writers:
            writer.close()
    return Scattered(list(annotators), list(classes), total, incomplete)


def write_names(folder: str, what: str, names: list[str]) -> None:
    """Keep the names of all annotators or classes, in this order."""
    table = pa.table({"name": pa.array(names, pa.string())})
    write_atomically(Path(folder) / f"{what}.parquet", lambda path: pq.write_table(table, path))


def read_names(folder: str, what: str) -> NDArray[Any]:
    """Names that `write_names` wrote, or names of the items of a part."""
    return np.asarray(pq.read_table(Path(folder) / f"{what}.parquet")["name"].to_numpy(zero_copy_only=False))


def gather(part: int, n_files: int, folder: str) -> Gathered:
    """Make a part of all rows that belong to it; of repeated labels the last one counts."""
    source = Path(folder) / "scattered"
    tables = [pq.read_table(source / str(number) / f"{part}.parquet") for number in range(n_files)]
    rows = pa.concat_tables(tables).to_pandas()
    item, items = pd.factorize(rows["item"])
    annotator, label = (
        pd.Index(read_names(folder, what)).get_indexer(rows[role])
        for role, what in (("annotator", "annotators"), ("label", "classes"))
    )
    n_annotators, n_classes = len(read_names(folder, "annotators")), len(read_names(folder, "classes"))
    kept = ~pd.Series(item * n_annotators + annotator).duplicated(keep="last").to_numpy()
    item, annotator, label = (np.asarray(codes, dtype=np.int64)[kept] for codes in (item, annotator, label))
    order = ascending([item, annotator], [len(items), n_annotators])
    start = np.concatenate([[0], np.cumsum(np.bincount(item, minlength=len(items)))])
    code = (annotator * n_classes + label)[order]
    save_array(_array(folder, part, "start"), start)
    save_array(_array(folder, part, "cell"), code)
    write_names(folder, f"items-{part}", list(items))
    cells, counts = np.unique(code, return_counts=True)
    return Gathered(len(items), len(code), int((~kept).sum()), cells, counts)


def place(part: int, folder: str) -> None:
    """Replace the codes of a part's cells by their places among the cells of all parts."""
    cells, path = load_array(Path(folder) / "cells.npy"), _array(folder, part, "cell")
    save_array(path.with_name(f"place-{part}.npy"), np.searchsorted(cells, load_array(path)).astype(np.int32))


def load_part(part: int, folder: str) -> tuple[Index, NDArray[np.int32]]:
    """Start of each item's labels, and the place of each label's cell."""
    return load_array(_array(folder, part, "start")), load_array(_array(folder, part, "place"))


def _array(folder: str, part: int, what: str) -> Path:
    return Path(folder) / f"{what}-{part}.npy"


def _texts(column: pa.Array, role: str, columns: Columns) -> tuple[Index, NDArray[Any]]:
    """A column as places in a list of distinct texts, -1 where one is missing, and that list."""
    encoded = column.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    texts, _ = as_labels(values, columns.missing) if role == "label" else as_ids(values, role)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    codes = np.where(np.isnan(codes), -1, codes).astype(np.int64)
    missing = np.array([text is None for text in texts], dtype=bool)
    if missing.any():
        there = np.cumsum(~missing) - 1
        codes = np.where((codes >= 0) & ~missing[codes], there[codes], -1)
        texts = texts[~missing]
    return codes, texts


def _part_of(items: NDArray[Any], n_parts: int) -> Index:
    """The part that each item belongs to."""
    return np.asarray(pd.util.hash_array(items, categorize=False) % np.uint64(n_parts), dtype=np.int64)


def _split(part: Index, n_parts: int) -> Iterator[tuple[int, Index]]:
    """Parts and the rows that belong to them, in their order."""
    order = np.argsort(part, kind="stable")
    ends = np.searchsorted(part[order], np.arange(n_parts + 1))
    for at in range(n_parts):
        if ends[at] < ends[at + 1]:
            yield at, order[ends[at] : ends[at + 1]]
