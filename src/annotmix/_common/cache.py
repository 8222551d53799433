"""Results on disk that can be computed again: features of an encoder, labels of simulated annotators.

A folder holds files of some rows each; rows have keys. A file is put in place in one step and never
changed, so any number of processes may read and write at the same time. A row that is damaged or gone counts
as never computed.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotmix._common.files import read_array, write_atomically

Row = NDArray[Any]
#: Bytes of a key, as of SHA-256.
KEY_SIZE = 32


def cache_folder() -> Path:
    """The folder for files that can be made again: ANNOTMIX_CACHE, else a folder in the user's cache."""
    if named := os.environ.get("ANNOTMIX_CACHE"):
        return Path(named)
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "annotmix"


class RowCache:
    """Arrays by key, each a row of a file.

    Parameters
    ----------
    folder : path or None
        None keeps nothing.
    rows_per_file : int
        Maximum number of rows per file; a killed process loses the work on at most this many.
    """

    def __init__(self, folder: Path | None, rows_per_file: int):
        self.folder, self.rows_per_file = folder, rows_per_file

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Row]:
        """The rows of the known ones among the keys."""
        wanted = set(keys)
        rows: dict[bytes, Row] = {}
        for path in self._files():
            if len(rows) == len(wanted):
                break
            rows |= {key: row for key, row in _read(path, wanted).items() if key in wanted}
        return rows

    def put(self, keys: Sequence[bytes], rows: Row) -> None:
        """Remember rows, shape (len(keys), ...); a cache that cannot be written is only a warning.

        A file with space for them is replaced by one with both, so that many small additions do not end as
        many small files.
        """
        if self.folder is None:
            return
        old = next((p for p in self._files() if _count(p) + len(keys) <= self.rows_per_file), None)
        kept = {} if old is None else {key: row for key, row in _read(old).items() if key not in keys}
        if all(row.shape == rows.shape[1:] and row.dtype == rows.dtype for row in kept.values()):
            keys, rows = [*kept, *keys], np.stack([*kept.values(), *rows])
        else:
            old = None
        try:
            name = hashlib.sha256(b"".join(keys)).hexdigest()[:32]
            path = self.folder / f"{name}-{len(keys)}.rows"
            write_atomically(path, lambda temporary: _write(temporary, keys, rows))
            if old is not None and old != path:
                old.unlink(missing_ok=True)
        except OSError as error:
            warnings.warn(
                f"Results could not be kept in {str(self.folder)!r} ({error}), and will be computed again "
                "next time. Choose another folder with ANNOTMIX_CACHE or cache=.",
                stacklevel=2,
            )

    def _files(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("*.rows"))


def _write(path: str, keys: Sequence[bytes], rows: Row) -> None:
    """Write three arrays one after the other, so that keys can be read without rows."""
    with open(path, "wb") as file:
        checks = np.array([_check(*pair) for pair in zip(keys, rows, strict=True)], dtype=np.int64)
        for part in (np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, KEY_SIZE), checks, rows):
            np.save(file, part, allow_pickle=False)


def _read(path: Path, wanted: set[bytes] | None = None) -> dict[bytes, Row]:
    """The undamaged rows of a file; none where the file has no wanted key."""
    try:
        with open(path, "rb") as file:
            keys = [key.tobytes() for key in read_array(file, path.name)]
            if wanted is not None and wanted.isdisjoint(keys):
                return {}
            checks, rows = (read_array(file, path.name) for _ in range(2))
        entries = zip(keys, rows, checks, strict=True)
        return {key: row for key, row, check in entries if _check(key, row) == check}
    except Exception:  # a damaged file may do anything to its reader
        return {}


def _check(key: bytes, row: Row) -> int:
    return zlib.crc32(row.tobytes(), zlib.crc32(f"{row.dtype.str}{row.shape}".encode() + key))


def _count(path: Path) -> int:
    """Rows of a file, from its name; a name of another form counts as full."""
    end = path.stem.rpartition("-")[2]
    return int(end) if end.isdecimal() else sys.maxsize
