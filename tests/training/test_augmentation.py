import numpy as np
import pytest
import torch

import annotmix
from annotmix._common.progress import Progress
from annotmix.networks.features import Features
from annotmix.training.augmentation import crop_flip, get_augmentation

CPU = torch.device("cpu")


def slowly(x, rng, padding=4):
    """An image at a time: pad, cut out, mirror."""
    n, _, height, width = x.shape
    top, left = rng.integers(2 * padding + 1, size=(2, n, 1))
    mirrored = rng.random((n, 1)) < 0.5
    result = []
    for image, t, l, mirror in zip(x, top[:, 0], left[:, 0], mirrored[:, 0], strict=True):  # noqa: E741
        padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
        crop = padded[:, t : t + height, l : l + width]
        result.append(crop[:, :, ::-1] if mirror else crop)
    return np.stack(result)


@pytest.mark.parametrize("shape", [(50, 3, 32, 32), (7, 1, 5, 9), (1, 2, 12, 6)])
@pytest.mark.parametrize("padding", [0, 1, 4])
def test_crop_and_flip_against_a_loop(shape, padding):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    fast = crop_flip(torch.from_numpy(x), np.random.default_rng(3), padding)
    np.testing.assert_array_equal(fast.numpy(), slowly(x, np.random.default_rng(3), padding))
    assert fast.is_contiguous()


def test_every_shift_and_both_sides_occur():
    x = torch.zeros(2000, 1, 9, 9)
    x[:, 0, 4, 3] = 1  # a point left of the middle
    row, column = np.nonzero(crop_flip(x, np.random.default_rng(0)).numpy()[:, 0])[1:]
    assert len(row) > 1700  # a few are shifted out of sight
    assert set(row) == set(range(9))
    assert set(column) == set(range(9))


def test_the_batch_itself_stays():
    x = torch.rand(4, 3, 8, 8)
    before = x.clone()
    crop_flip(x, np.random.default_rng(0))
    assert torch.equal(x, before)


def test_by_name():
    assert get_augmentation(None, (5,)) is None
    assert get_augmentation("crop-flip", (3, 32, 32)) is crop_flip
    with pytest.raises(ValueError, match="augment must be None or one of 'crop-flip', found 'spin'"):
        get_augmentation("spin", (3, 32, 32))
    with pytest.raises(ValueError, match="augment='crop-flip' takes images"):
        get_augmentation("crop-flip", (5,))


# ------------------------------------------------------------------ in training


@pytest.fixture
def photos():
    """48 small images, dark or bright, as bytes."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=48)
    X = rng.normal(170, 50, size=(48, 3, 8, 8)) - 90 * y[:, None, None, None]
    return np.clip(X, 0, 255).astype(np.uint8), y


def classifier(**params):
    settings = {"backbone": torch.nn.Flatten(), "max_epochs": 4, "batch_size": 16, "random_state": 0}
    return annotmix.make_classifier("mv-base", **(settings | params), progress=False)


def test_training_images_are_changed_and_others_are_not(photos, monkeypatch):
    X, y = photos
    seen = []

    def spy(x, rng):
        seen.append(len(x))
        return crop_flip(x, rng)

    monkeypatch.setitem(annotmix.training.augmentation._AUGMENTATIONS, "crop-flip", spy)
    clf = classifier(augment="crop-flip").fit(X, y, validation=(X, y))
    assert sum(seen) == 4 * len(X)
    clf.predict(X)
    assert sum(seen) == 4 * len(X)
    plain = classifier().fit(X, y, validation=(X, y))
    assert not np.array_equal(plain.predict_proba(X), clf.predict_proba(X))


def test_same_seed_same_bits_and_resumed(photos, tmp_path, monkeypatch):
    X, y = photos
    first = classifier(augment="crop-flip").fit(X, y)
    again = classifier(augment="crop-flip", checkpoint=tmp_path, checkpoint_every=1)
    advance = Progress.advance

    def dying(self, note=""):
        advance(self, note)
        if self.done == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advance", dying)
        with pytest.raises(KeyboardInterrupt):
            again.fit(X, y)
    again.fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), first.predict_proba(X))
    first.save(tmp_path / "model")
    assert annotmix.load(tmp_path / "model", backbone=torch.nn.Flatten()).augment == "crop-flip"


def test_wrong_names_and_tables_are_refused(photos, noisy):
    with pytest.raises(ValueError, match="augment"):
        classifier(augment="spin").fit(*photos)
    with pytest.raises(ValueError, match="augment"):
        classifier(augment="crop-flip").fit(noisy.X, noisy.y)


# ------------------------------------------------------------------ bytes


def test_byte_images_stay_bytes_and_are_scaled_a_batch_at_a_time(photos, tmp_path):
    X, y = photos
    np.save(tmp_path / "x.npy", X)
    for data in (X, np.load(tmp_path / "x.npy", mmap_mode="r")):
        features = Features(data, CPU)
        batch = features.take(np.array([5, 3]))
        assert batch.dtype == torch.float32
        np.testing.assert_allclose(batch.numpy(), X[[5, 3]] / 255, rtol=1e-6)
        np.testing.assert_array_equal(torch.cat([x for _, x in features.chunks()]).numpy()[[5, 3]], batch)
    assert Features(X, CPU)._tensor.dtype == torch.uint8
    assert torch.equal(Features(X[::-1], CPU).take(slice(0, 1)), Features(X, CPU).take(np.array([47])))
    same = classifier().fit(X / np.float32(255), y).predict_proba(X / np.float32(255))
    np.testing.assert_allclose(classifier().fit(X, y).predict_proba(X), same, atol=1e-4)


def test_a_table_of_bytes_is_a_table():
    X = np.arange(12, dtype=np.uint8).reshape(4, 3)
    assert torch.equal(Features(X, CPU).take(slice(0, 4)), torch.arange(12.0).view(4, 3))
