"""Features on disk, found by the content of what was encoded.

A folder of safetensors files of at most `SHARD` rows; a row is a key, a check and the features. A file is put
in place in one step and never changed, so any number of processes may read and write at the same time. What
is damaged or gone counts as never computed.
"""

from __future__ import annotations

import hashlib
import warnings
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from annotmix._common.files import write_atomically

Floats = NDArray[np.float32]
#: Most rows of one file; a kill loses the work on no more than so many.
SHARD = 512
KEY_SIZE = 32


class FeatureCache:
    """Rows of features by key (`KEY_SIZE` bytes), all of one encoder and setting.

    Parameters
    ----------
    folder : path or None
        None remembers nothing.
    """

    def __init__(self, folder: Path | None):
        self.folder = folder

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Floats]:
        """The rows, shape (d,), of those keys that are known."""
        wanted = set(keys)
        found: dict[bytes, Floats] = {}
        for path in self._files():
            if len(found) == len(wanted):
                break
            have, rows = _read(path, wanted)
            found |= {key: row for key, row in zip(have, rows, strict=True) if key in wanted}
        return found

    def put(self, keys: Sequence[bytes], rows: Floats) -> None:
        """Remember rows, shape (len(keys), d); a cache that cannot be written is a warning, no more.

        A file with room for them is replaced by one with both, so that many small additions do not end as
        many small files.
        """
        if self.folder is None:
            return
        room = [path for path in self._files() if _count(path) + len(keys) <= SHARD]
        if room:
            old_keys, old_rows = _read(room[0])
            if len(old_keys) and old_rows.shape[1:] == rows.shape[1:]:
                keys, rows = [*old_keys, *keys], np.concatenate([old_rows, rows])
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{hashlib.sha256(b''.join(keys)).hexdigest()[:32]}-{len(keys)}.safetensors"
            write_atomically(path, lambda temporary: _write(temporary, keys, rows))
            for old in room[:1]:
                if old != path:
                    old.unlink(missing_ok=True)
        except (OSError, SafetensorError) as error:
            warnings.warn(
                f"Features could not be kept in {str(self.folder)!r} ({error}), and will be computed again "
                "next time. Choose another folder with ANNOTMIX_CACHE or cache=.",
                stacklevel=2,
            )

    def _files(self) -> list[Path]:
        return [] if self.folder is None else sorted(self.folder.glob("*.safetensors"))


def _write(path: str, keys: Sequence[bytes], rows: Floats) -> None:
    rows = np.ascontiguousarray(rows)
    key = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), KEY_SIZE)
    check = np.array([_check(*pair) for pair in zip(keys, rows, strict=True)], dtype=np.int64)
    save_file({"key": key, "check": check, "features": rows}, path)


def _read(path: Path, wanted: set[bytes] | None = None) -> tuple[list[bytes], Floats]:
    """Keys and rows of a file, without those that are damaged; nothing where it has nothing wanted."""
    nothing: tuple[list[bytes], Floats] = [], np.zeros((0, 0), dtype=np.float32)
    try:
        with safe_open(path, framework="np") as file:
            keys = [line.tobytes() for line in file.get_tensor("key")]
            if wanted is not None and wanted.isdisjoint(keys):
                return nothing
            check, rows = file.get_tensor("check"), file.get_tensor("features")
    except (OSError, SafetensorError):
        return nothing
    if rows.ndim != 2 or rows.dtype != np.float32 or not len(keys) == len(check) == len(rows):
        return nothing
    whole = [i for i, pair in enumerate(zip(keys, rows, strict=True)) if _check(*pair) == check[i]]
    return [keys[i] for i in whole], rows[whole]


def _check(key: bytes, row: Floats) -> int:
    return zlib.crc32(row.tobytes(), zlib.crc32(key))


def _count(path: Path) -> int:
    """Rows of a file, from its name; a name of another form counts as full."""
    end = path.stem.rpartition("-")[2]
    return int(end) if end.isdecimal() else SHARD
