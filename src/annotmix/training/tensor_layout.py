"""The header of a safetensors file: names, types and shapes of its tensors, read before any of them is.

The sizes in the header must account for every byte of the file, so that a header cannot claim more than there
is, and a file cannot hold more than the header names.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from annotmix._common.schema import Count, Strict, decode

if TYPE_CHECKING:  # models without a network are read without torch
    from torch import Tensor

#: Bytes of a header; that of a network with a thousand tensors has some 100 kB.
LARGEST_HEADER = 1 << 25
#: Bytes of a number, and the name that torch has for its type.
_KINDS = {
    "BOOL": (1, "bool"), "U8": (1, "uint8"), "I8": (1, "int8"), "I16": (2, "int16"), "I32": (4, "int32"),
    "I64": (8, "int64"), "F16": (2, "float16"), "BF16": (2, "bfloat16"), "F32": (4, "float32"),
    "F64": (8, "float64"),
}  # fmt: skip
Kind = Literal["BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64"]


class Entry(Strict):
    """A tensor as the header describes it."""

    dtype: Kind
    shape: list[Count]
    data_offsets: tuple[Count, Count]

    @property
    def kind(self) -> str:
        """The type of its numbers, as an attribute of torch."""
        return _KINDS[self.dtype][1]

    @property
    def n_bytes(self) -> int:
        """Bytes of a tensor of this type and shape."""
        return math.prod(self.shape) * _KINDS[self.dtype][0]


Layout = dict[str, Entry]


def read_layout(path: Path) -> tuple[Layout, dict[str, str]]:
    """The tensors that a safetensors file holds, and its metadata; `ValueError` where they do not fill it."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(LARGEST_HEADER, size - 8):
            raise ValueError(f"its header claims {length} bytes of {size}")
        header = json.loads(file.read(length))
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    metadata = decode(header.pop("__metadata__", {}), dict[str, str])
    layout = decode(header, Layout)
    end = 0
    for name, entry in sorted(layout.items(), key=lambda pair: pair[1].data_offsets):
        if entry.data_offsets != (end, end + entry.n_bytes):
            raise ValueError(f"the bytes of {name!r:.60} do not fit its shape and its place")
        end += entry.n_bytes
    if end != size - 8 - length:
        raise ValueError(f"its tensors have {end} bytes, but {size - 8 - length} follow the header")
    return layout, metadata


def require_layout(layout: Layout, expected: Mapping[str, Tensor]) -> None:
    """Refuse tensors of other names, types or shapes than the expected ones.

    A tensor that is expected without rows may have any number of them: it grows with the labels.
    """
    if absent := sorted(expected.keys() ^ layout.keys()):
        wrong = "lack the" if absent[0] in expected else "have an unknown"
        raise ValueError(f"the weights {wrong} tensor {absent[0]!r:.100}.")
    for name, tensor in expected.items():
        entry, shape = layout[name], list(tensor.shape)
        rows = entry.shape[:1] if shape[:1] == [0] else shape[:1]
        kind = str(tensor.dtype).removeprefix("torch.")
        if entry.kind != kind or entry.shape != rows + shape[1:]:
            raise ValueError(
                f"the tensor {name!r:.100} is {entry.dtype} of shape {entry.shape!s:.60}, expected "
                f"{kind} of shape {shape!s:.60}."
            )


def require_memory(layout: Layout) -> None:
    """Refuse more bytes than the machine has memory."""
    if not hasattr(os, "sysconf"):
        return
    size, memory = sum(entry.n_bytes for entry in layout.values()), os.sysconf("SC_PHYS_PAGES")
    memory *= os.sysconf("SC_PAGE_SIZE")
    if 0 < memory < size:
        raise ValueError(f"its tensors need {size} bytes, and this machine has {memory} bytes of memory")
