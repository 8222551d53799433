"""Where labels for `annotmix.runs.aggregate_parts` come from: Parquet files, or a Dask DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from annotmix._common.optional import require
from annotmix.labels.columns import find_column
from annotmix.reading import Columns
from annotmix.reading.label_parts import ROLES, n_rows, scatter


class Source(Protocol):
    """Pieces of a table with one row per label."""

    def sizes(self, client: Any) -> list[tuple[str, int]]:
        """What tells each piece from others, and its number of rows."""

    def scatter(self, folder: str, columns: Columns, n_parts: int) -> list[Any]:
        """Calls or delayed calls of `scatter`, one for each piece."""


class Files:
    """Parquet files, or all those of a folder."""

    def __init__(self, paths: Sequence[Path | str] | Path | str):
        if isinstance(paths, str | Path):
            folder = Path(paths)
            paths = sorted(folder.glob("*.parquet")) if folder.is_dir() else [folder]
            if not paths:
                raise ValueError(f"{str(folder)!r} has no files *.parquet.")
        self.paths = [str(Path(path).resolve()) for path in paths]
        self.rows = [n_rows(path) for path in self.paths]

    def sizes(self, client: Any) -> list[tuple[str, int]]:
        """Paths and rows, by the metadata of the files."""
        return list(zip(self.paths, self.rows, strict=True))

    def scatter(self, folder: str, columns: Columns, n_parts: int) -> list[Callable[[], Any]]:
        """Calls that read a file each."""
        return [partial(scatter, p, n, folder, columns, n_parts) for n, p in enumerate(self.paths)]


class Partitions:
    """The partitions of a Dask DataFrame; they are computed twice, and only to be counted and sorted."""

    def __init__(self, frame: Any, columns: Columns):
        named = (columns.item, columns.annotator, columns.label)
        used = [find_column(list(frame.columns), *each) for each in zip(ROLES, named, strict=True)]
        self._dask = require("dask", "bench", "A Dask DataFrame")
        self.name = self._dask.base.tokenize(frame)
        self.pieces = frame[used].to_delayed()

    def sizes(self, client: Any) -> list[tuple[str, int]]:
        """Numbers and rows, counted by the workers."""
        count = self._dask.delayed(len)
        n = client.gather(client.compute([count(piece) for piece in self.pieces]))
        return [(f"{self.name} {number}", size) for number, size in enumerate(n)]

    def scatter(self, folder: str, columns: Columns, n_parts: int) -> list[Any]:
        """Delayed calls that compute a partition each."""
        call = self._dask.delayed(scatter)
        return [call(piece, n, folder, columns, n_parts) for n, piece in enumerate(self.pieces)]


def source_of(labels: Any, columns: Columns) -> Source:
    """A Dask DataFrame, Parquet files or a folder of them as pieces."""
    return Partitions(labels, columns) if hasattr(labels, "to_delayed") else Files(labels)
