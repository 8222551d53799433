"""Pickles of strangers: whatever is in them, one kind of error, no crash, and little memory."""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zipfile

import numpy as np
import pytest
from helpers.bounded_process import run_bounded

from annotmix.datasets import DatasetFileError
from annotmix.datasets.cifar import read_images, read_torch
from annotmix.datasets.plain_pickles import PlainPickleError, read_plain_pickle

ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"


def dtype(code: bytes, order: bytes = b"|") -> bytes:
    return (
        b"cnumpy\ndtype\nU" + bytes([len(code)]) + code + b"K\x00K\x01\x87R(K\x03U\x01" + order
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )  # fmt: skip


def with_array(shape: bytes, kind: bytes, content: bytes) -> bytes:
    """A dictionary whose `data` is an array of this state."""
    raw = b"T" + struct.pack("<I", len(content)) + content
    return b"\x80\x02}U\x04data" + ARRAY + b"(K\x01" + shape + kind + b"\x89" + raw + b"tbs."


@pytest.mark.parametrize("protocol", range(5))
def test_plain_values_are_what_pickle_makes_of_them(protocol):
    kinds = ["?", *"bBhHiIqQefd", ">i4", "<u2"]
    saved = {
        **{kind: np.arange(6).reshape(2, 3).astype(kind) for kind in kinds},
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        b"labels": [1, -2, 300, 70_000, 10**12, True, None, 1.5, "é\u2028", b"\xff\x00"],
        "nested": ([1, (2, 3, 4)], (), {}, [], {"k": (1,)}),
        7: "text" * 100,
    }
    back = read_plain_pickle(pickle.dumps(saved, protocol=protocol))
    assert back.keys() == saved.keys()
    for key, value in saved.items():
        if isinstance(value, np.ndarray):
            assert back[key].dtype == value.dtype
            np.testing.assert_array_equal(back[key], value)
        else:
            assert back[key] == value


BAD = {
    "pointers": with_array(b"K\x01\x85", dtype(b"O8"), b"\x41" * 8),
    "pointers in records": with_array(b"K\x01\x85", dtype(b"V8"), b"\x41" * 8),
    "dates": with_array(b"K\x01\x85", dtype(b"M8"), b"\x41" * 8),
    "text": with_array(b"K\x01\x85", dtype(b"U2"), b"\x41" * 8),
    "a type with fields": with_array(b"K\x01\x85", dtype(b"f8").replace(b"NNN", b"N)N"), b"\x41" * 8),
    "larger than the file": with_array(b"\x8a\x05\x00\x00\x00\x00\x01\x85", dtype(b"u1"), b"12"),
    "a negative shape": with_array(b"J\xff\xff\xff\xffJ\xfe\xff\xff\xff\x86", dtype(b"u1"), b"12"),
    "a shape that overflows": with_array(b"\x8a\x08" + b"\0" * 7 + b"\x10" + b"K\x10\x86", dtype(b"u1"), b""),
    "100 dimensions": with_array(b"(" + b"K\x01" * 100 + b"t", dtype(b"u1"), b"1"),
    "an array without a state": b"\x80\x02}U\x04data" + ARRAY + b"s.",
    "an array of 5.8 GB": b"\x80\x02cnumpy\nndarray\nJ\x00\x00\x00\x57\x85\x85R.",
    "a type that is called": b"\x80\x02cnumpy\ndtype\n)R.",
    "a memo that is not there": b"\x80\x02j\xff\xff\xff\xff.",
    "bytes of an exabyte": b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"x.",
    "text of an exabyte": b"\x80\x04\x8d" + struct.pack("<Q", 2**60) + b"x.",
    "an array of bytes": b"\x80\x05\x96" + struct.pack("<Q", 2**60) + b"x.",
    "a frame of an exabyte": b"\x80\x04\x95" + struct.pack("<Q", 2**60) + b".",
    "an integer of 2 GB": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "an integer of 5000 digits": b"L" + b"9" * 5000 + b"L\n.",
    "an extension": b"\x80\x02\x82\x01.",
    "an object": b"\x80\x02cnumpy\nndarray\n)\x81.",
    "a persistent name": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "a set": b"\x80\x04\x8f.",
    "a buffer": b"\x80\x05\x97.",
    "no dictionary": b"\x80\x02].",
    "no stop": b"\x80\x02}",
    "an empty stack": b"\x80\x02.",
    "a mark that is not there": b"\x80\x02t.",
    "a tuple of too few": b"\x80\x02K\x01\x86.",
    "a list as a key": b"\x80\x02}]Ns.",
    "an append to a dictionary": b"\x80\x02}Na.",
    "a state of a dictionary": b"\x80\x02}Nb.",
    "a call of a number": b"\x80\x02K\x01)R.",
    "another encoding": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
    "nothing": b"",
}


@pytest.mark.parametrize("content", BAD.values(), ids=list(BAD))
def test_crafted_pickles_are_refused(content, tmp_path):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(DatasetFileError) as error:
        read_images(tmp_path, ["bad"], 3)
    assert "\n" not in str(error.value)
    with zipfile.ZipFile(tmp_path / "bad.pt", "w") as archive:
        archive.writestr("archive/data.pkl", content)
    with pytest.raises(DatasetFileError):
        read_torch(tmp_path / "bad.pt")


def test_a_list_that_doubles_at_every_level_is_not_made_an_array(tmp_path):
    # l0 = [0, 0], l1 = [l0, l0], …: 2⁴⁰ numbers of 200 bytes
    levels = [
        b"K" + bytes([n]) + b"](h" + bytes([n]) + b"h" + bytes([n]) + b"eq" + bytes([n + 1])
        for n in range(40)
    ]
    nested = b"(K\xff](K\x00K\x00eq\x00" + b"".join(levels) + b"U\x06labelsh\x28u."
    rows = with_array(b"K\x01M\x00\x0c\x86", dtype(b"u1"), bytes(3072))
    (tmp_path / "bad").write_bytes(rows[:-1] + nested)
    assert len(read_plain_pickle(rows[:-1] + nested)[b"labels"]) == 2
    with pytest.raises(DatasetFileError, match="no list 'labels' of class numbers"):
        read_images(tmp_path, ["bad"], 3)


def test_the_index_of_a_memo_costs_nothing():
    assert read_plain_pickle(b"\x80\x02}r\xff\xff\xff\xff.") == {}


def test_the_number_of_instructions_and_keys_is_bounded():
    with pytest.raises(PlainPickleError, match="more than 2000000 instructions"):
        read_plain_pickle(b"\x80\x02}" + b"N" * 2_000_001 + b".")
    keys = b"".join(b"M" + struct.pack("<H", n) + b"N" for n in range(1001))
    with pytest.raises(PlainPickleError, match="more than 1000 keys"):
        read_plain_pickle(b"\x80\x02}(" + keys + b"u.")


# ---------------------------------------------------------------- archives


def archive(method: int, size: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made, made.open("archive/data.pkl", "w") as file:
        for _ in range(size // (1 << 20)):
            file.write(bytes(1 << 20))
    return buffer.getvalue()


def test_an_archive_that_unpacks_to_more_than_labels_ever_are(tmp_path):
    path = tmp_path / "bomb.pt"
    path.write_bytes(archive(zipfile.ZIP_DEFLATED, 100 << 20))
    assert path.stat().st_size < 200_000
    with pytest.raises(DatasetFileError, match="104857600 bytes in it; at most 16777216"):
        read_torch(path)
    # it claims to be small
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 100 << 20), struct.pack("<I", 1000)))
    with pytest.raises(DatasetFileError, match="damaged"):
        read_torch(path)


def test_other_methods_of_compression_are_not_read(tmp_path):
    (tmp_path / "bomb.pt").write_bytes(archive(zipfile.ZIP_BZIP2, 1 << 20))
    with pytest.raises(DatasetFileError, match="expected the deflate method"):
        read_torch(tmp_path / "bomb.pt")


def test_a_sparse_file_is_not_read(tmp_path):
    for name in ("bad", "bad.pt"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(20 << 30)
    with pytest.raises(DatasetFileError, match="21474836480 bytes; at most"):
        read_images(tmp_path, ["bad"], 3)
    with pytest.raises(DatasetFileError, match="21474836480 bytes; at most"):
        read_torch(tmp_path / "bad.pt")


# ---------------------------------------------------------------- mutations

FUZZ = """
import sys
from pathlib import Path

import numpy as np

from annotmix.datasets import DatasetFileError
from annotmix.datasets.cifar import read_images, read_torch

folder, times = Path(sys.argv[1]), int(sys.argv[2])
originals = [(folder / "small").read_bytes(), (folder / "small.pt").read_bytes()]
rng = np.random.default_rng(0)
bound(200 << 20)
refused = 0
for n in range(times):
    content = bytearray(originals[n % 2])
    # the pixels of an image may be anything: what stands around them is changed
    places = np.r_[:300, max(300, len(content) - 400) : len(content)]
    for _ in range(rng.integers(1, 4)):
        place, kind = int(rng.choice(places)), rng.integers(5)
        some = rng.integers(0, 256, size=rng.integers(1, 9), dtype=np.uint8).tobytes()
        if kind == 0:
            content[place % len(content)] = some[0]
        elif kind == 1:
            content[place:place] = some
        elif kind == 2:
            del content[place : place + len(some)]
        elif kind == 3:
            content[place : place + 4] = b"\\xff\\xff\\xff\\x7f"
        else:
            content[place:place] = content[: int(rng.integers(1, 200))]
    (folder / f"mutated{'.pt' if n % 2 else ''}").write_bytes(content)
    try:
        read_torch(folder / "mutated.pt") if n % 2 else read_images(folder, ["mutated"], 3)
    except DatasetFileError:
        refused += 1
print(refused)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="bounds memory as Linux does")
def test_mutations_of_real_files_in_a_process_of_its_own(tmp_path):
    data = np.arange(2 * 3072, dtype=np.uint64).astype(np.uint8).reshape(2, 3072)
    saved = {b"labels": [0, 2], b"data": data, b"filenames": [b"a.png", b"b.png"]}
    (tmp_path / "small").write_bytes(pickle.dumps(saved, protocol=2))
    labels = {"clean_label": np.array([0, 2]), "worse_label": [1, 2]}
    with zipfile.ZipFile(tmp_path / "small.pt", "w") as made:
        made.writestr("archive/data.pkl", pickle.dumps(labels, protocol=2))
    assert int(run_bounded(FUZZ, tmp_path, 2000)) > 1000
