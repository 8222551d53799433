import numpy as np
import pytest

from annotmix._common import cache as cache_module
from annotmix.encoders import TextEncoder

TEXTS = ["the cat sat", "a dog ran on the mat", "it was very happy", "the cat sat"]


def shards(folder):
    return sorted(folder.rglob("*.rows"))


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
    monkeypatch.setattr("annotmix.encoders.encoder.SHARD", 1)
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

    def dying(path, keys, rows):
        with open(path, "wb") as file:
            file.write(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "_write", dying)
        with pytest.raises(KeyboardInterrupt):
            TextEncoder(bert).encode(TEXTS)
    assert {path: path.read_bytes() for path in cache.rglob("*.*")} == before
    assert TextEncoder(bert).encode(TEXTS).shape == (4, 16)


def test_a_full_disk_is_a_warning(bert, cache, monkeypatch):
    def full(path, keys, rows):
        raise OSError("No space left on device")

    monkeypatch.setattr(cache_module, "_write", full)
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
