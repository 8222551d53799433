"""Files that are damaged at random, and files that are crafted to do harm."""

from __future__ import annotations

import copy
import io
import json
import pickle
import struct
import zipfile
import zlib
from functools import cache
from typing import Any

import numpy as np

#: Values that stand where others are expected.
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    10**40,
    1e308,
    float("nan"),
    "",
    "x",
    "../../x",
    "=1+1",
    "\0",
    "\ud800",
    [],
    {},
    [[]],
    [None],
    [1e300],
    ["x", "x"],
    {"x": []},
    "x" * 2000,
)
#: Pieces of text that mean something to some format.
PIECES = (
    b'"',
    b"'",
    b",",
    b"\t",
    b"\n",
    b"\r",
    b";",
    b"|",
    b"[",
    b"]",
    b"{",
    b"}",
    b":",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"nan",
    b"-1",
    b"1e999",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"[" * 3000,
    b"item",
    b"label",
    b"annotator",
    b"\xc3",
)


def mutate_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """The data with one to four changes: bytes replaced, removed, repeated, inserted, or the end cut off."""
    for _ in range(int(rng.integers(1, 5))):
        # half of the changes are near the two ends, where headers are
        edge = rng.random() < 0.5
        at = int(rng.integers(min(len(data), 200) + 1 if edge else len(data) + 1))
        at = len(data) - at if edge and rng.random() < 0.3 else at
        size = int(rng.geometric(0.2))
        kind = rng.integers(6)
        if kind == 0:
            data = data[:at] + rng.bytes(size) + data[at + size :]
        elif kind == 1:
            data = data[:at] + data[at + size :]
        elif kind == 2:
            data = data[:at] + data[at : at + size] * int(rng.integers(2, 50)) + data[at:]
        elif kind == 3:
            data = data[:at] + PIECES[rng.integers(len(PIECES))] + data[at:]
        elif kind == 4 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :]
        elif kind == 5 and rng.random() < 0.3:
            data = data[:at]
    return data


def mutate_json(rng: np.random.Generator, value: Any) -> tuple[Any, bool, str]:
    """A value with one change in it, whether a type or a length changed, and the change in words."""
    value = copy.deepcopy(value)
    parent, key, place = None, None, ""
    node = value
    while isinstance(node, dict | list) and len(node) and rng.random() < 0.85:
        parent = node
        key = list(node)[rng.integers(len(node))] if isinstance(node, dict) else int(rng.integers(len(node)))
        node, place = node[key], f"{place}/{key}"
    new: Any
    if parent is not None and rng.random() < 0.2:
        if isinstance(parent, list) and rng.random() < 0.5:
            parent.insert(key, node)
            return value, True, f"{place:.80} twice"
        del parent[key]
        return value, True, f"{place:.80} removed"
    if isinstance(node, list) and node and rng.random() < 0.5:
        new = node[:1] if rng.random() < 0.5 else node[:-1]
    else:
        new = ODD[rng.integers(len(ODD))]
    number = (int, float)
    alike = (isinstance(new, number) and isinstance(node, number)) or (
        isinstance(new, str) and isinstance(node, str)
    )
    what = f"{place:.80} is {new!r:.40} in place of {node!r:.40}"
    if parent is None:
        return new, True, what
    parent[key] = new
    return value, not alike, what


# ---------------------------------------------------------------- crafted files


def cifar_batch(n: int = 2) -> bytes:
    """A small file of CIFAR images as the real ones are."""
    data = np.arange(n * 3072, dtype=np.uint8).reshape(n, 3072)
    return pickle.dumps({b"data": data, b"labels": list(range(n)), b"filenames": [b"a.png"] * n}, protocol=2)


def torch_file(content: bytes | None = None) -> bytes:
    """A small file of CIFAR-N labels as PyTorch saves them."""
    labels = {name: np.arange(4) for name in ("clean_label", "worse_label", "random_label1")}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(labels, protocol=2) if content is None else content)
        archive.writestr("archive/version", b"3\n")
    return buffer.getvalue()


@cache
def crafted_pickles() -> list[bytes]:
    """Pickles that call functions, make pointers of their bytes, or claim much memory."""
    make = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    pointers = (
        b"\x80\x02}U\x06labels" + make + b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x10" + b"A" * 16 + b"tbs."
    )
    wide = (
        b"\x80\x02}U\x04datacnumpy\nndarray\n(\x8a\x05"
        + (5_800_000_000).to_bytes(5, "little")
        + b"\x85U\x02u1tRs."
    )
    zeros = b"\x80\x02}U\x04datacnumpy\nndarray\nJ\xff\xff\xff\x7f\x85\x85Rs."
    calls = [
        b"cos\nsystem\n(S'false'\ntR.",
        b"cbuiltins\neval\n(S'1/0'\ntR.",
        b"c__builtin__\nexec\n(S'1/0'\ntR.",
    ]
    claims = [
        b"\x80\x05" + opcode + (5_800_000_000).to_bytes(8, "little") + b"."
        for opcode in (b"\x96", b"\x8e", b"\x8d", b"\x95")
    ]
    deep = [
        b"\x80\x02" + b"(" * 200_000 + b".",
        b"]" * 200_000 + b"a" * 199_999 + b".",
        b"N" + b"\x85" * 500_000 + b".",
    ]
    puts = [b"\x80\x02Nr\xff\xff\xff\xff.", b"I" + b"9" * 200_000 + b"\n.", b"\x8b\xff\xff\xff\x7f1."]
    return [pointers, wide, zeros, *calls, *claims, *deep, *puts]


def zip_bomb(size: int = 3 << 30) -> bytes:
    """A PyTorch file of a few megabytes whose pickle has `size` bytes of zeros."""
    block = 1 << 20
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = deflate.compress(bytes(block)) + deflate.flush(zlib.Z_FULL_FLUSH)
    every = deflate.compress(bytes(block)) + deflate.flush(zlib.Z_FULL_FLUSH)
    content = first + every * (size // block - 1) + deflate.flush()
    name = b"archive/data.pkl"
    sizes = struct.pack("<III", 0, len(content), size)
    local = (
        b"PK\x03\x04"
        + struct.pack("<HHHHH", 20, 0, 8, 0, 33)
        + sizes
        + struct.pack("<HH", len(name), 0)
        + name
    )
    entry = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 33) + sizes
    entry += struct.pack("<HHHHHII", len(name), 0, 0, 0, 0, 0, 0) + name
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(entry), len(local) + len(content), 0)
    return local + content + entry + end


def npy(header: str, data: bytes = b"") -> bytes:
    """An NPY file with any header."""
    text = header.encode("latin-1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


#: Headers of arrays that cannot be.
NPY_HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1800000000000, 1), }\n",  # 14 TB
    "{'descr': '<f8', 'fortran_order': False, 'shape': (2, -1), }\n",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 9), }\n",
    "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }\n",
    "{'descr': '<U999999999', 'fortran_order': False, 'shape': (2,), }\n",
    "{'descr': [('a', '<f8'), ('b', '|O')], 'fortran_order': False, 'shape': (2,), }\n",
    "{'descr': '<f8'",
    "__import__('os').abort()",
    "(" * 5000,
    "\x00\xff",
    "",
)


def safetensors(header: Any, data: bytes = b"") -> bytes:
    """A safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data
