"""Masks: how they are read, the loss against one written pixel by pixel, and the segmenter."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import annotmix
from annotmix.approaches import Batch
from annotmix.estimators.masks import read_masks
from annotmix.estimators.pixels import AnnotMixPixels, PixelClassifier, UNet
from annotmix.estimators.segmentation import AnnotMixSegmenter
from annotmix.networks import mixup
from annotmix.training.tensor_files import ModelFileError

SIZE = 8


@pytest.fixture(scope="module")
def problem():
    """Squares in noise; ann is right, bob errs in a tenth of pixels, cat marks anything; 30 % missing."""
    rng = np.random.default_rng(0)
    truth = np.zeros((40, SIZE, SIZE), dtype=np.int64)
    for mask, (top, left) in zip(truth, rng.integers(1, 4, size=(40, 2)), strict=True):
        mask[top : top + 4, left : left + 4] = 1
    X = (3 * truth + rng.normal(size=truth.shape)).astype(np.float32)
    bob = truth ^ (rng.random(truth.shape) < 0.1)
    masks = np.stack([truth, bob, rng.integers(2, size=truth.shape)], axis=1)
    masks[rng.random((40, 3)) < 0.3] = -1
    return X, masks, truth


@pytest.fixture(scope="module")
def fitted(problem):
    X, masks, _ = problem
    return small().fit(X, masks, annotators=["ann", "bob", "cat"])


def small(**params):
    chosen = {"max_epochs": 12, "batch_size": 4, "random_state": 0, "device": "cpu", "progress": False}
    return annotmix.AnnotMixSegmenter(**chosen | params)


# ---------------------------------------------------------------- masks


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 3))
def test_columns_and_a_list_of_masks_are_the_same(seed, n, n_annotators):
    rng = np.random.default_rng(seed)
    dense = rng.choice([-1, 0, 7, 255], size=(n, n_annotators, 2, 3))
    dense[rng.random((n, n_annotators)) < 0.3] = -1
    names = ["b", "a", "c"][:n_annotators]
    images, who = np.nonzero(np.ones((n, n_annotators)))
    order = rng.permutation(len(images))
    a = read_masks(dense, (n, 2, 3), annotators=names, classes=[0, 7, 255])
    b = read_masks(
        dense[images[order], who[order]],
        (n, 2, 3),
        images=images[order],
        annotators=[names[m] for m in who[order]],
        classes=[0, 7, 255],
    )
    found = [
        {
            (i, m.annotators[w]): m.classes[code].tolist() if (code >= 0).all() else code.tolist()
            for i, w, code in zip(m.item, m.annotator, m.codes, strict=True)
        }
        for m in (a, b)
    ]
    assert found[0] == found[1]
    for (i, name), pixels in found[0].items():
        given_mask = dense[i, names.index(name)]
        expected = np.searchsorted([0, 7, 255], given_mask)
        expected = np.where(given_mask < 0, -1, expected) if (given_mask < 0).any() else given_mask
        assert pixels == expected.tolist()
    assert len(found[0]) == (dense != -1).any(axis=(2, 3)).sum()
    assert a.annotators.tolist() == names


def test_nan_and_bool_masks():
    dense = np.array([[[[0.0, np.nan]], [[1.0, 1.0]]]])
    assert read_masks(dense, (1, 1, 2)).codes.tolist() == [[[0, -1]], [[1, 1]]]
    assert read_masks(dense > 0.5, (1, 1, 2)).classes.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("masks", "more", "message"),
    [
        (np.zeros((2, 2, 2)), {}, r"\(2, M, 2, 2\), found \(2, 2, 2\).*images="),
        (np.zeros((1, 3, 2, 2)), {}, r"found \(1, 3, 2, 2\)"),
        (np.full((2, 1, 2, 2), 0.5), {}, "whole numbers.*found 0.5"),
        (np.full((2, 1, 2, 2), "a"), {}, "array of integers"),
        (np.full((2, 1, 2, 2), 3), {"classes": [0, 1]}, "Value 3 in the mask of image 0 by annotator 0"),
        (np.zeros((2, 2, 2)), {"images": [0, 2], "annotators": "ab"}, "0 to 1, found 0, 2"),
        (np.zeros((2, 2, 2)), {"images": [0, 1]}, "one entry per mask"),
        (
            np.zeros((2, 2, 2)),
            {"images": [1, 1], "annotators": "aa"},
            "'a' has more than one mask for image 1",
        ),
        (
            np.zeros((2, 1, 2, 2)),
            {"annotators": ["z"], "known": np.array(["a"], object)},
            "Unknown annotators 'z'",
        ),
    ],
)
def test_bad_masks_are_named(masks, more, message):
    with pytest.raises(ValueError, match=message):
        read_masks(masks, (2, 2, 2), **more)


# ---------------------------------------------------------------- the approach


def make_approach(**params):
    torch.manual_seed(0)
    model = AnnotMixPixels(PixelClassifier(nn.Conv2d(1, 4, 3, padding=1), 4, 3), 2, **params)
    return model.eval()  # neither dropout nor statistics of a batch


def a_batch(model):
    rng = np.random.default_rng(1)
    masks = rng.integers(-1, 3, size=(4, 3, 2))
    model.see(torch.from_numpy(masks))
    x = torch.from_numpy(rng.normal(size=(2, 1, 3, 2)).astype(np.float32))
    batch = Batch(x, torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1]), torch.tensor([2, 0, 3]))
    return batch, masks


@pytest.mark.parametrize(("alpha", "prior"), [(0.0, 0.0), (1.0, 0.0), (1.0, 0.5)])
def test_the_loss_is_that_of_every_pixel(alpha, prior):
    model = make_approach(alpha=alpha, prior=prior, eta=0.8)
    start = torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    batch, masks = a_batch(model)
    rng = np.random.default_rng(2)
    partner = mixup.pair_across(3, rng) if alpha else np.arange(3)
    lam = mixup.coefficients(3, alpha, rng).tolist() if alpha else [1.0] * 3
    embedded = model.annotator_model.embed_annotator(batch.annotator)
    terms = []
    for i in range(3):
        j, w = partner[i], lam[i]
        x = w * batch.x[batch.item[i]] + (1 - w) * batch.x[batch.item[j]]
        e_a = w * embedded[i] + (1 - w) * embedded[j]
        h = model.classifier.backbone(x[None])[0]
        for row in range(3):
            for column in range(2):
                own = h[:, row, column][None]
                p = model.classifier.log_proba(own).exp()[0]
                u = model.annotator_model(own, e_a[None])
                confusion = torch.softmax(model.annotator_model.head(u)[0], dim=-1)
                held = sum((start[c] * confusion[c].log()).sum() for c in range(3)) / 3
                said = (p[:, None] * confusion).sum(dim=0).log() + prior * held
                pair = ((masks[batch.label[i], row, column], w), (masks[batch.label[j], row, column], 1 - w))
                if max(pair[0][0], pair[1][0] if alpha else -1) >= 0:
                    terms.append(sum(-weight * said[k] for k, weight in pair if k >= 0 and weight))
    loss = model.loss(batch, np.random.default_rng(2))
    torch.testing.assert_close(loss, torch.stack(terms).mean())


def test_a_sample_of_pixels_is_right_on_average():
    model = make_approach(alpha=0.0, pixels=5)
    batch, _ = a_batch(model)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        drawn = torch.stack([model.loss(batch, rng) for _ in range(100)])
        model.pixels = None
        whole = model.loss(batch, rng)
    assert drawn.std() > 0
    assert abs(drawn.mean() - whole) < 4 * drawn.std() / 10


@pytest.mark.parametrize("size", [(8, 8), (5, 7), (1, 3)])
def test_the_backbone_keeps_every_size(size):
    h = UNet(2).eval()(torch.randn(3, 2, *size))
    assert h.shape == (3, 16, *size)


# ---------------------------------------------------------------- the segmenter


def test_it_learns_masks_and_annotators(problem, fitted):
    X, masks, truth = problem
    proba = fitted.predict_proba(X)
    assert proba.shape == (40, 2, SIZE, SIZE)
    np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-5)
    assert (fitted.predict(X) == truth).mean() > 0.9
    votes = (masks == 1).sum(axis=1) - (masks == 0).sum(axis=1)
    majority = ((votes > 0) == truth).mean(where=votes != 0)
    assert (fitted.consensus(X, masks) == truth).mean() > majority + 0.01
    perf = fitted.predict_annotator_perf(X)
    assert perf.shape == (40, 3)
    assert perf.columns.tolist() == fitted.annotators_.tolist()
    assert perf.iloc[:, 2].mean() < perf.iloc[:, :2].mean(axis=0).min() - 0.05
    confusion = fitted.annotator_confusion()
    np.testing.assert_allclose(confusion.sum(axis=1), 1, rtol=1e-5)
    good, poor = (np.diag(confusion.loc[fitted.annotators_[m]]) for m in (0, 2))
    assert good.min() > poor.max()
    np.testing.assert_allclose(fitted.annotator_confusion(X), confusion, atol=0.05)


@torch.no_grad()
def test_consensus_is_classifier_times_annotators(problem, fitted):
    X, masks, _ = problem
    masks = masks.copy()
    masks[:, 1, :, :3] = -1  # marked in part
    masks[3] = -1
    found = fitted.consensus_proba(X, masks)
    module = fitted.module_
    np.testing.assert_allclose(found[3], fitted.predict_proba(X)[3], atol=1e-6)
    for n in (0, 1):
        h = module.classifier.backbone(torch.from_numpy(X[n : n + 1, None]))[0]
        for row, column in ((0, 0), (2, 3), (5, 6)):
            own = h[:, row, column][None]
            log_q = module.classifier.log_proba(own)[0]
            for m in range(3):
                if masks[n, m, row, column] >= 0:
                    log_q = (
                        log_q + module.log_confusion(own, torch.tensor([m]))[0, :, masks[n, m, row, column]]
                    )
            expected = torch.softmax(log_q, dim=0).numpy()
            np.testing.assert_allclose(found[n, :, row, column], expected, atol=1e-4)


def test_a_list_of_masks_trains_the_same_model(problem, fitted):
    X, masks, _ = problem
    images, who = np.nonzero((masks >= 0).any(axis=(2, 3)))
    names = np.array(["ann", "bob", "cat"])[who]
    long = small().fit(X, masks[images, who], images=images, annotators=names)
    assert (long.predict_proba(X) == fitted.predict_proba(X)).all()
    again = long.consensus(X, masks[images, who], images=images, annotators=names)
    assert (again == fitted.consensus(X, masks)).all()


def test_seeds_and_every_parameter(problem):
    X, masks, _ = problem
    a, b = (small(max_epochs=2, random_state=seed).fit(X, masks) for seed in (0, 1))
    module = a.module_
    before = a._make_module(3).state_dict()
    assert not (a.predict_proba(X) == b.predict_proba(X)).all()
    for name, value in module.named_parameters():
        assert not torch.equal(value, before[name]), name
    again = small(max_epochs=2).fit(X, masks).module_.state_dict()
    assert all(torch.equal(value, again[name]) for name, value in module.state_dict().items())


def test_going_on_from_a_checkpoint_is_the_same_run(problem, tmp_path):
    X, masks, _ = problem
    whole = small(max_epochs=4).fit(X, masks)
    small(max_epochs=4, checkpoint=tmp_path, checkpoint_every=2).fit(X, masks)
    resumed = small(max_epochs=4, checkpoint=tmp_path, checkpoint_every=2).fit(X, masks)
    assert (resumed.predict_proba(X) == whole.predict_proba(X)).all()
    other = masks.copy()
    other[masks >= 0] ^= 1
    with pytest.raises(ModelFileError, match="another run"):
        small(max_epochs=4, checkpoint=tmp_path, checkpoint_every=2).fit(X, other)


def test_save_and_load(problem, fitted, tmp_path):
    X, masks, _ = problem
    fitted.save(tmp_path)
    loaded = annotmix.load(tmp_path, device="cpu")
    assert (loaded.consensus_proba(X, masks) == fitted.consensus_proba(X, masks)).all()
    assert loaded.annotator_confusion().equals(fitted.annotator_confusion())
    assert loaded.annotators_.tolist() == ["ann", "bob", "cat"]
    assert "masks" not in loaded.module_.state_dict()
    assert type(loaded) is AnnotMixSegmenter
    loaded.save(tmp_path / "again")
    assert (annotmix.load(tmp_path / "again").predict_proba(X) == fitted.predict_proba(X)).all()
    with pytest.raises(ModelFileError, match="trained without one"):
        annotmix.load(tmp_path, encoder="text:minilm")


def test_a_backbone_of_ones_own(problem, tmp_path):
    X, masks, _ = problem
    own = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU())
    seg = small(backbone=own, max_epochs=1, precision="bf16-mixed").fit(X, masks)
    assert seg.predict(np.zeros((2, 1, 5, 9))).shape == (2, 5, 9)  # of any size
    seg.save(tmp_path)
    with pytest.raises(ModelFileError, match="backbone of its own"):
        annotmix.load(tmp_path)
    loaded = annotmix.load(tmp_path, backbone=own, device="cpu")
    assert (loaded.predict_proba(X) == seg.predict_proba(X)).all()
    small_one = nn.Conv2d(1, 6, 3)
    with pytest.raises(ValueError, match=r"for n=2 it gave shape \(2, 6, 6, 6\)"):
        small(backbone=small_one).fit(X, masks)


def test_values_of_masks_are_the_classes(problem):
    X, masks, _ = problem
    seg = small(max_epochs=1).fit((50 * X).clip(0, 255).astype(np.uint8), np.where(masks == 1, 255, masks))
    assert seg.classes_.tolist() == [0, 255]
    assert set(np.unique(seg.predict(X))) <= {0, 255}


@pytest.mark.parametrize(
    ("change", "params", "message"),
    [
        (
            lambda X, masks: (X[:, 0], masks),
            {},
            r"X must be numbers of shape.*found float32 of shape \(40, 8\)",
        ),
        (lambda X, masks: (X * np.nan, masks), {}, "X contains NaN"),
        (lambda X, masks: (X, np.full_like(masks, -1)), {}, "0 marked masks of 0 classes"),
        (lambda X, masks: (X, np.minimum(masks, 0)), {}, "of 1 classes.*classes="),
        (lambda X, masks: (X, masks), {"pixels": 0}, "pixels must be a positive integer"),
        (lambda X, masks: (X, masks), {"alpha": -1}, "alpha must be 0"),
        (lambda X, masks: (X, masks), {"backbone": "vgg"}, "found 'vgg'"),
        (lambda X, masks: (X, masks), {"max_epochs": 0}, "max_epochs"),
    ],
)
def test_bad_arguments_are_named(problem, change, params, message):
    X, masks, _ = problem
    with pytest.raises(ValueError, match=message):
        small(**params).fit(*change(X, masks))


def test_other_channels_are_refused(fitted):
    with pytest.raises(ValueError, match="3 channels, but AnnotMixSegmenter was trained on images of 1"):
        fitted.predict(np.zeros((2, 3, SIZE, SIZE)))
