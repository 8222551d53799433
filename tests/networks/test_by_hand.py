"""The step by hand against autograd through `AnnotMix.loss`, with the same draws."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from annotmix import Annotations
from annotmix.approaches.annot_mix import AnnotMix
from annotmix.approaches.base import Approach, Batch
from annotmix.networks import CNN, MLP, Classifier, by_hand

N_FEATURES, C = 5, 4


def model(n_annotators=6, hidden=(16, 8), dropout=0.0, **params):
    torch.manual_seed(0)
    found = AnnotMix(Classifier(MLP(N_FEATURES, hidden, dropout), hidden[-1], C), n_annotators, **params)
    for name, parameter in found.named_parameters():
        if "weight" in name:  # far from where all annotators are alike
            nn.init.normal_(parameter, std=0.5)
    return begun(found)


def begun(found):
    labels = Annotations.from_matrix(np.zeros((2, found.n_annotators), dtype=int), classes=range(C))
    found.begin(labels, np.random.default_rng(0))
    return found.train()


def batch(n_annotators=6, n_items=20, n_labels=50, weighted=False):
    rng = np.random.default_rng(1)
    return Batch(
        torch.from_numpy(rng.normal(size=(n_items, N_FEATURES)).astype(np.float32)),
        torch.from_numpy(np.sort(rng.integers(n_items, size=n_labels))),
        torch.from_numpy(rng.integers(n_annotators, size=n_labels)),
        torch.from_numpy(rng.integers(C, size=n_labels)),
        weight=torch.from_numpy(rng.random(n_labels).astype(np.float32)) if weighted else None,
    )


def result(model, step, given):
    torch.manual_seed(3)
    loss = step(model, given, np.random.default_rng(2))
    grads = {name: p.grad.to_dense() for name, p in model.named_parameters()}
    return loss, grads, dict(model.named_buffers())


@pytest.mark.parametrize(
    ("params", "weighted"),
    [
        ({}, False),
        ({}, True),
        ({"n_annotators": by_hand.ONE_HOT_UP_TO + 1}, False),
        ({"n_annotators": by_hand.SPARSE_FROM + 1}, True),
        ({"hidden": (8,)}, False),
        ({"hidden": (16, 12, 8), "dropout": 0.3}, False),
        ({"alpha": 0.4, "pairing": "within"}, False),
        ({"coefficient": "batch"}, False),
        ({"alpha": 0.0}, False),
        ({"alpha": 0.0, "mix": "manifold"}, True),
    ],
)
def test_gradients_are_those_of_autograd(params, weighted):
    by, through = model(**params), model(**params)
    given = batch(params.get("n_annotators", 6), weighted=weighted)
    assert by._step is not None
    loss, grads, buffers = result(by, AnnotMix.gradients, given)
    expected, expected_grads, expected_buffers = result(through, Approach.gradients, given)
    torch.testing.assert_close(loss, expected)
    for name, grad in expected_grads.items():
        torch.testing.assert_close(grads[name], grad, rtol=1e-4, atol=1e-6, msg=name)
    for name, value in expected_buffers.items():
        torch.testing.assert_close(buffers[name], value, msg=name)
    if params.get("n_annotators", 6) > by_hand.SPARSE_FROM:
        assert by.annotator_model.embed_annotator.weight.grad.is_sparse


@pytest.mark.parametrize("scale", [40.0, 3e3])
def test_logits_beyond_single_precision(scale):
    by, through = model(), model()
    for each in (by, through):
        with torch.no_grad():
            each.annotator_model.head.weight.mul_(scale)
    loss, grads, _ = result(by, AnnotMix.gradients, batch())
    expected, expected_grads, _ = result(through, Approach.gradients, batch())
    assert torch.isfinite(loss)
    torch.testing.assert_close(loss, expected)
    for name, grad in expected_grads.items():
        # where almost every probability is 0 or 1, small differences are magnified on the way back
        torch.testing.assert_close(grads[name], grad, rtol=1e-2, atol=1e-4 * float(grad.abs().max() + 1))


@pytest.mark.parametrize("params", [{"mix": "manifold"}, {"confusion_rank": 2}], ids=lambda p: next(iter(p)))
def test_other_models_are_left_to_autograd(params):
    assert model(**params)._step is None


def test_other_backbones_parts_and_losses_are_left_to_autograd():
    assert begun(AnnotMix(Classifier(CNN(1, (4,)), 4, C), 3))._step is None
    frozen = model()
    frozen.freeze("annotator_model")
    assert begun(frozen)._step is None

    class Other(AnnotMix):
        def loss(self, batch, rng):
            return super().loss(batch, rng) * 2

    assert begun(Other(Classifier(MLP(N_FEATURES, (8,)), 8, C), 3))._step is None


def test_one_label_goes_through_autograd():
    by, through = model(), model()
    one = batch(n_items=1, n_labels=1)
    loss, grads, _ = result(by, AnnotMix.gradients, one)
    expected, expected_grads, _ = result(through, Approach.gradients, one)
    assert torch.equal(loss, expected)
    assert all(torch.equal(grads[name], grad) for name, grad in expected_grads.items())


def test_a_trained_model_has_no_step_and_can_be_copied():
    found = model()
    copy.deepcopy(found)
    found.finish()
    assert found._step is None
