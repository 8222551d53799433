"""Arrays of numbers from MATLAB files of version 5, and nothing else that such files can hold.

scipy's reader makes the whole process crash on some damaged files; this one raises an error.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MATRIX, _COMPRESSED = 14, 15
#: The numbers of the types of numbers.
_TYPES = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
#: Bytes that one variable may have.
_MOST = 1 << 26


def read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """All arrays of a file by name, flat; a damaged file raises ValueError, struct.error or zlib.error."""
    if content[126:128] != b"IM":
        raise ValueError("not a MATLAB file of version 5")
    arrays = {}
    for kind, data in _elements(content[128:]):
        if kind == _COMPRESSED:
            unpacker = zlib.decompressobj()
            ((kind, data),) = _elements(unpacker.decompress(data, _MOST))
            if not unpacker.eof:  # there the checksum is compared
                raise ValueError("the file is cut off")
        if kind == _MATRIX:
            _, _, (_, name), (number, values), *_ = _elements(data)
            if number not in _TYPES:
                raise ValueError(f"variable {name!r} does not hold numbers")
            arrays[name.decode("ascii")] = np.frombuffer(values, dtype=_TYPES[number])
    return arrays


def _elements(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements in `content`, one after another: the number of the type, and the data."""
    place = 0
    while place < len(content):
        kind, size = struct.unpack_from("<II", content, place)
        first, step = place + 8, 8 + size
        if kind >> 16:  # a short element: type and size share four bytes, the data are in the next four
            kind, size, first, step = kind & 0xFFFF, kind >> 16, place + 4, 8
        elif kind != _COMPRESSED:
            step += -size % 8  # padded to a multiple of eight bytes
        data = content[first : first + size]
        if len(data) < size:
            raise ValueError("the file is cut off")
        yield kind, data
        place += step
