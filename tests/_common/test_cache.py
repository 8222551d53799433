import multiprocessing
import sys

import numpy as np
import pytest

from annotmix._common import cache as cache_module
from annotmix._common.cache import RowCache, cache_folder


def rows_of(n, width=3, seed=0):
    rng = np.random.default_rng(seed)
    keys = [rng.bytes(32) for _ in range(n)]
    return keys, rng.normal(size=(n, width)).astype(np.float32)


def test_rows_come_back(tmp_path):
    keys, rows = rows_of(5)
    cache = RowCache(tmp_path, 50)
    cache.put(keys[:3], rows[:3])
    cache.put(keys[3:], rows[3:])
    found = cache.get([keys[4], keys[0], b"x" * 32])
    assert found.keys() == {keys[0], keys[4]}
    np.testing.assert_array_equal(found[keys[4]], rows[4])


def test_many_small_additions_end_in_few_files(tmp_path):
    keys, rows = rows_of(90)
    cache = RowCache(tmp_path, 50)
    cache.put(keys[:30], rows[:30])
    for n in range(30, 90):
        cache.put(keys[n : n + 1], rows[n : n + 1])
    assert len(list(tmp_path.glob("*.rows"))) == 2
    found = cache.get(keys)
    np.testing.assert_array_equal(np.stack([found[key] for key in keys]), rows)


def test_a_file_that_vanishes_is_no_error(tmp_path, monkeypatch):
    keys, rows = rows_of(3)
    cache = RowCache(tmp_path, 50)
    cache.put(keys, rows)
    listed = cache._files()
    listed[0].unlink()
    monkeypatch.setattr(cache, "_files", lambda: listed)
    assert cache.get(keys) == {}
    cache.put(keys, rows)
    assert set(cache.get(keys)) == set(keys)


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("ANNOTMIX_CACHE", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("ANNOTMIX_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "annotmix"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "annotmix"


def write_alone(folder, start):
    for n in range(start, start + 60):
        RowCache(folder, 50).put([bytes([n]) * 32], np.full((1, 4), n, dtype=np.float32))


def test_two_processes_at_once(tmp_path):
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("needs processes that fork")
    context = multiprocessing.get_context("fork")
    started = [context.Process(target=write_alone, args=(tmp_path, start)) for start in (0, 40)]
    for process in started:
        process.start()
    for process in started:
        process.join(60)
        assert process.exitcode == 0
    for path in tmp_path.glob("*.rows"):
        assert len(cache_module._read(path)) == cache_module._count(path)  # every file is whole
    found = RowCache(tmp_path, 50).get([bytes([n]) * 32 for n in range(100)])
    assert len(found) > 50  # where both extend a file at once, one row or the other is computed again
    for key, row in found.items():
        assert (row == key[0]).all()


def test_a_flipped_bit_loses_its_row_and_gives_no_wrong_one(tmp_path):
    keys, rows = rows_of(4, width=60)
    RowCache(tmp_path, 50).put(keys, rows)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for position in range(0, len(whole), 3):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        path.write_bytes(flipped)
        found = RowCache(tmp_path, 50).get(keys)
        assert all(np.array_equal(row, rows[keys.index(key)]) for key, row in found.items()), position
        if position >= len(whole) - rows.nbytes:
            assert len(found) == 3


def test_rows_of_another_type_or_length_are_kept_apart(tmp_path):
    cache = RowCache(tmp_path, 50)
    kinds = [
        np.zeros(3, np.float32),
        np.zeros(4, np.float32),
        np.zeros(3, np.int8),
        np.zeros((2, 2), np.int8),
    ]
    keys, _ = rows_of(len(kinds))
    for key, row in zip(keys, kinds, strict=True):
        cache.put([key], row[None])
    found = cache.get(keys)
    for key, row in zip(keys, kinds, strict=True):
        assert found[key].dtype == row.dtype
        np.testing.assert_array_equal(found[key], row)


def test_pickles_are_never_read(tmp_path):
    with open(tmp_path / "a-1.rows", "wb") as file:
        np.save(file, np.array([None, "x"], dtype=object), allow_pickle=True)
    assert RowCache(tmp_path, 50).get([b"x" * 32]) == {}
