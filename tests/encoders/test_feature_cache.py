import multiprocessing
import sys

import numpy as np
import pytest

from annotmix._common.cache import cache_folder
from annotmix.encoders import TextEncoder
from annotmix.encoders import cache as cache_module
from annotmix.encoders.cache import SHARD, FeatureCache

TEXTS = ["the cat sat", "a dog ran on the mat", "it was very happy", "the cat sat"]


def rows_of(n, width=3, seed=0):
    rng = np.random.default_rng(seed)
    keys = [rng.bytes(32) for _ in range(n)]
    return keys, rng.normal(size=(n, width)).astype(np.float32)


def shards(folder):
    return sorted(folder.rglob("*.safetensors"))


# ------------------------------------------------------------------ in an encoder


def test_nothing_is_computed_twice(bert, forward_calls):
    first = TextEncoder(bert).encode(TEXTS)
    assert sum(forward_calls) == 3  # the same text is computed once
    np.testing.assert_array_equal(TextEncoder(bert, batch_size=1).encode(TEXTS), first)
    assert sum(forward_calls) == 3
    more = TextEncoder(bert).encode(["today", *TEXTS])
    assert sum(forward_calls) == 4
    np.testing.assert_array_equal(more[1:], first)


def test_models_and_settings_do_not_share(bert, other_bert, forward_calls):
    features = [
        TextEncoder(*args, **params).encode(TEXTS)
        for args, params in [
            ((bert,), {}),
            ((other_bert,), {}),
            ((bert,), {"pooling": "cls"}),
            ((bert,), {"max_length": 4}),
        ]
    ]
    assert sum(forward_calls) == 12
    for a in range(4):
        for b in range(a):
            assert not np.allclose(features[a], features[b])


def test_off_and_elsewhere(bert, cache, tmp_path, forward_calls):
    encoder = TextEncoder(bert, cache=False)
    encoder.encode(TEXTS)
    encoder.encode(TEXTS)
    assert sum(forward_calls) == 6
    assert not cache.exists()
    TextEncoder(bert, cache=tmp_path / "mine").encode(TEXTS)
    assert not cache.exists()
    assert len(shards(tmp_path / "mine")) == 1


def test_a_failure_in_the_middle_keeps_what_was_done(bert, cache, monkeypatch):
    monkeypatch.setattr("annotmix.encoders.base.SHARD", 1)
    forward, done = TextEncoder._forward, []

    def dying(self, batch):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(batch)
        return forward(self, batch)

    monkeypatch.setattr(TextEncoder, "_forward", dying)
    with pytest.raises(KeyboardInterrupt):
        TextEncoder(bert).encode(TEXTS)
    monkeypatch.setattr(TextEncoder, "_forward", forward)
    calls = []
    monkeypatch.setattr(
        TextEncoder, "_forward", lambda self, batch: calls.append(batch) or forward(self, batch)
    )
    np.testing.assert_allclose(
        TextEncoder(bert).encode(TEXTS), TextEncoder(bert, cache=False).encode(TEXTS), atol=1e-5
    )
    assert len(calls[0]) == 1  # only the third text was missing


def test_a_failure_while_writing_leaves_no_half_file(bert, cache, monkeypatch):
    TextEncoder(bert).encode(TEXTS[:1])
    before = {path: path.read_bytes() for path in cache.rglob("*.*")}

    def dying(tensors, path):
        with open(path, "wb") as file:
            file.write(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "save_file", dying)
        with pytest.raises(KeyboardInterrupt):
            TextEncoder(bert).encode(TEXTS)
    assert {path: path.read_bytes() for path in cache.rglob("*.*")} == before
    assert TextEncoder(bert).encode(TEXTS).shape == (4, 16)


def test_a_full_disk_is_a_warning(bert, cache, monkeypatch):
    def full(tensors, path):
        raise OSError("No space left on device")

    monkeypatch.setattr(cache_module, "save_file", full)
    with pytest.warns(UserWarning, match="No space left.*ANNOTMIX_CACHE"):
        assert TextEncoder(bert).encode(TEXTS).shape == (4, 16)


def test_a_folder_that_cannot_be_is_a_warning(bert, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="could not be kept"):
        TextEncoder(bert, cache=tmp_path / "file").encode(TEXTS)


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "nonsense"])
def test_a_damaged_file_is_computed_again(bert, cache, damage, forward_calls):
    first = TextEncoder(bert).encode(TEXTS)
    (path,) = shards(cache)
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[-100] ^= 1
    path.write_bytes(
        {
            "truncated": bytes(data[:-7]),
            "flipped": bytes(data),
            "emptied": b"",
            "nonsense": b"\x80\x04K\x01." * 20,
        }[damage]
    )
    forward_calls.clear()
    np.testing.assert_allclose(TextEncoder(bert).encode(TEXTS), first, atol=1e-5)
    assert sum(forward_calls) == (1 if damage == "flipped" else 3)
    forward_calls.clear()
    TextEncoder(bert).encode(TEXTS)
    assert not forward_calls


# ------------------------------------------------------------------ alone


def test_rows_come_back(tmp_path):
    keys, rows = rows_of(5)
    cache = FeatureCache(tmp_path)
    cache.put(keys[:3], rows[:3])
    cache.put(keys[3:], rows[3:])
    found = cache.get([keys[4], keys[0], b"x" * 32])
    assert found.keys() == {keys[0], keys[4]}
    np.testing.assert_array_equal(found[keys[4]], rows[4])


def test_many_small_additions_end_in_few_files(tmp_path):
    keys, rows = rows_of(SHARD + 40)
    cache = FeatureCache(tmp_path)
    cache.put(keys[: SHARD - 20], rows[: SHARD - 20])
    for n in range(SHARD - 20, SHARD + 40):
        cache.put(keys[n : n + 1], rows[n : n + 1])
    assert len(shards(tmp_path)) == 2
    found = cache.get(keys)
    np.testing.assert_array_equal(np.stack([found[key] for key in keys]), rows)


def test_a_file_that_vanishes_is_no_error(tmp_path, monkeypatch):
    keys, rows = rows_of(3)
    cache = FeatureCache(tmp_path)
    cache.put(keys, rows)
    listed = cache._files()
    listed[0].unlink()
    monkeypatch.setattr(cache, "_files", lambda: listed)
    assert cache.get(keys) == {}
    cache.put(keys, rows)
    assert set(cache.get(keys)) == set(keys)


def test_where_the_cache_is(monkeypatch, tmp_path):
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
        FeatureCache(folder).put([bytes([n]) * 32], np.full((1, 4), n, dtype=np.float32))


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
    for path in shards(tmp_path):
        assert len(cache_module._read(path)[0]) == cache_module._count(path)  # every file is whole
    found = FeatureCache(tmp_path).get([bytes([n]) * 32 for n in range(100)])
    assert len(found) > 50  # where both extend a file at once, one row or the other is computed again
    for key, row in found.items():
        assert (row == key[0]).all()
