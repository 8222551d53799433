"""What annot-mix mixes: rectangles of images and hidden states, against losses from their mathematics."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import annotmix
from annotmix.approaches import Batch
from annotmix.approaches.annot_mix import AnnotMix
from annotmix.networks import CNN, MLP, Classifier, mixup

C, M, P = 3, 4, 7


def model_of(backbone, width=6, **params):
    torch.manual_seed(0)
    model = AnnotMix(Classifier(backbone, width, C), M, **params).double()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


def batch_of(*shape, n=5):
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.normal(size=(n, *shape)))
    item, annotator, label = np.arange(P) % n, rng.integers(M, size=P), rng.integers(C, size=P)
    return Batch(x, *map(torch.from_numpy, (np.sort(item), annotator, label)))


def said(model, h, u):
    """Σ_c p_c Π_ck of every triple, from features h and the annotator model's state u; shape (P, C)."""
    p, confusion = model.classifier.head(h).softmax(-1), model.annotator_model.head(u).softmax(-1)
    return torch.stack([sum(p[i, c] * confusion[i, c] for c in range(C)) for i in range(len(h))])


def expected_loss(model, h, u, z):
    return -(z * said(model, h, u).log()).sum(dim=1).mean()


def blend(values, partner, lam):
    return torch.stack([lam[i] * values[i] + (1 - lam[i]) * values[partner[i]] for i in range(len(values))])


def one_hot(batch):
    return nn.functional.one_hot(batch.annotator, M).double(), nn.functional.one_hot(batch.label, C).double()


def embed(model, a):
    table = model.annotator_model.embed_annotator
    return a @ table.weight + table.bias


@pytest.fixture
def double(monkeypatch):
    """The approach lifts half precision with `Tensor.float`; without it, double precision stays double."""
    monkeypatch.setattr(torch.Tensor, "float", lambda self: self)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("coefficient", ["triple", "batch"])
def test_the_pasted_area_is_the_share_of_annotator_and_label(coefficient):
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(2 * 5 * 4, 6))
    model, batch = model_of(backbone, mix="cutmix", coefficient=coefficient), batch_of(2, 5, 4, n=P)
    found = model.loss(batch, np.random.default_rng(8))
    rng, per_batch = np.random.default_rng(8), coefficient == "batch"
    partner = mixup.pair_across(P, rng)
    lam = mixup.coefficients(P, 1.0, rng, per_batch=per_batch)
    assert (partner != np.arange(P)).all()
    x, _ = mixup.paste(batch.x, torch.from_numpy(partner), lam, rng, per_batch=per_batch)
    own = (x[:, 0] == batch.x[:, 0]).double().mean(dim=(1, 2))  # pixels of two images are never equal
    assert 0 < own.min() < own.max() <= 1 or per_batch
    a, z = (blend(part, partner, own) for part in one_hot(batch))
    h = model.classifier.features(x)
    expected = expected_loss(model, h, model.annotator_model(h, embed(model, a)), z)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)


@pytest.mark.usefixtures("double")
def test_states_are_mixed_at_one_depth_a_batch():
    first, second = nn.Sequential(nn.Linear(5, 8), nn.Tanh()), nn.Sequential(nn.Linear(8, 6), nn.Tanh())
    model, batch = model_of(nn.Sequential(first, second), mix="manifold"), batch_of(5)
    x, (a, z), hidden = batch.x[batch.item], one_hot(batch), model.annotator_model
    drawn = []
    for seed in range(30):
        found = model.loss(batch, np.random.default_rng(seed)).item()
        rng = np.random.default_rng(seed)
        partner = mixup.pair_across(P, rng)
        lam = mixup.coefficients(P, 1.0, rng).double()

        def mixed(values, partner=partner, lam=lam):
            return blend(values, partner, lam)

        h = [second(first(mixed(x))), second(mixed(first(x))), mixed(second(first(x)))]
        u = [hidden(h[0], embed(model, mixed(a))), hidden(h[1], embed(model, mixed(a)))]
        u.append(mixed(hidden(second(first(x)), embed(model, a))))
        losses = [expected_loss(model, *states, mixed(z)).item() for states in zip(h, u, strict=True)]
        drawn += [depth for depth, loss in enumerate(losses) if found == pytest.approx(loss, rel=1e-9)]
    assert len(drawn) == 30  # one each
    assert min(drawn.count(depth) for depth in range(3)) > 3


@pytest.mark.parametrize("mix", ["input", "manifold"])
def test_without_mixing_it_does_not_matter_what_is_mixed(mix):
    losses = [
        model_of(MLP(5, (6,)), alpha=0, mix=m).loss(batch_of(5), np.random.default_rng(0))
        for m in (mix, "input")
    ]
    assert torch.equal(*losses)


@pytest.mark.parametrize("mix", ["cutmix", "manifold"])
def test_every_parameter_gets_a_gradient(mix):
    model, batch = model_of(CNN(1, (4, 6)), mix=mix), batch_of(1, 8, 8)
    rng = np.random.default_rng(0)
    for _ in range(6):
        model.loss(batch, rng).backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


def test_what_cannot_be_mixed_is_said():
    with pytest.raises(ValueError, match='mix must be "input", "cutmix" or "manifold", found \'x\''):
        model_of(MLP(5, (6,)), mix="x")
    with pytest.raises(ValueError, match=r"Sequential of your own, found Linear"):
        model_of(nn.Linear(5, 6), mix="manifold")
    Z = np.tile([[0, 1], [1, -1]], (4, 1))
    clf = annotmix.make_classifier("annot-mix", mix="cutmix", max_epochs=1, progress=False)
    with pytest.raises(ValueError, match=r"images of shape .* found items of shape \(3,\)"):
        clf.fit(np.random.default_rng(0).normal(size=(8, 3)), Z)


@pytest.mark.parametrize("mix", ["cutmix", "manifold"])
def test_images_are_learnt_and_saved(mix, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    X = (40 * rng.random((120, 1, 6, 6))).astype(np.uint8)
    for i in range(120):  # a bright bar, at another height for every class
        X[i, 0, 2 * y[i] : 2 * y[i] + 2] += 180
    Z = np.where(rng.random((120, 4)) < 0.8, y[:, None], rng.integers(3, size=(120, 4)))
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.BatchNorm1d(16), nn.ReLU())
    params = {"backbone": backbone, "max_epochs": 12, "batch_size": 16, "random_state": 0, "progress": False}
    clf = annotmix.make_classifier("annot-mix", mix=mix, **params).fit(X, Z)
    assert clf.score(X, y) > 0.9
    clf.save(tmp_path)
    loaded = annotmix.load(tmp_path, backbone=backbone)
    np.testing.assert_array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    again = annotmix.make_classifier("annot-mix", mix=mix, **params).fit(X, Z)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
