"""No nan and no infinity: losses, gradients and parameters of every approach on batches at the edge."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import annotmix
from annotmix import Annotations
from annotmix.approaches import Batch, get_approach
from annotmix.networks import MLP, AnnotatorNetwork, Classifier
from annotmix.networks.losses import adapt, volume_penalty

D, H = 4, 8
NAMES = [
    n for n in annotmix.list_approaches() if get_approach(n).__module__.startswith("annotmix.approaches")
]
ANNOTATOR_MODELS = [n for n in NAMES if get_approach(n).perf is not None]


class Case(NamedTuple):
    """A batch and what the model has to know of it."""

    x: Tensor
    item: Tensor
    annotator: Tensor
    label: Tensor
    n_annotators: int
    n_classes: int

    def batch(self, name):
        """The batch; an approach that aggregates first sees one label an item."""
        keep = torch.ones(len(self.item), dtype=torch.bool)
        if get_approach(name).perf is None:
            keep[1:] = self.item[1:] != self.item[:-1]
        return Batch(self.x, self.item[keep], self.annotator[keep], self.label[keep])


def case(counts, n_annotators, n_classes, seed=0, scale=1.0, labels=None):
    """Instances with so many labels each, of annotators in turn."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(len(counts)), counts)
    annotator = np.arange(len(item)) % n_annotators
    label = rng.choice(n_classes if labels is None else labels, size=len(item))
    x = torch.from_numpy(scale * rng.normal(size=(len(counts), D))).float()
    return Case(x, *map(torch.from_numpy, (item, annotator, label)), n_annotators, n_classes)


def one_says_always_the_same():
    made = case([4] * 8, 4, 3)
    return made._replace(label=torch.where(made.annotator == 2, 1, made.label))


def equal_instances():
    made = case([2] * 6, 4, 3)
    return made._replace(x=made.x[:1].repeat(6, 1))


CASES = {
    "two classes": case([3, 1, 2, 2, 4, 1], 5, 2),
    "three classes": case([3, 1, 2, 2, 4, 1], 5, 3),
    "thirty classes": case([3, 1, 2, 2, 4, 1], 5, 30),
    "thirty classes, larger batch": case([2] * 40, 5, 30),
    "a thousand classes": case([2, 1, 2, 1], 3, 1000),
    "one label an item": case([1] * 8, 3, 3),
    "one label an annotator": case([2, 1, 3, 1], 7, 3),
    "most annotators absent": case([1, 2], 50, 3),
    "one annotator": case([1] * 6, 1, 3),
    "one annotator always says the same": one_says_always_the_same(),
    "one class alone": case([2] * 6, 4, 3, labels=[1]),
    "classes that never occur": case([2] * 6, 4, 10, labels=[0, 7]),
    "one instance, one label": case([1], 4, 3),
    "one instance, four labels": case([4], 4, 3),
    "two instances": case([1, 1], 4, 3),
    "equal instances": equal_instances(),
    "zeros": case([2] * 6, 4, 3, scale=0.0),
    "large features": case([2] * 6, 4, 3, scale=1e3),
    "large features, thirty classes": case([2] * 40, 5, 30, scale=1e3),
    "large features of one instance": case([1], 4, 3, scale=1e3),
}


def mlp():
    return MLP(D, (H,), dropout=0.25)


def make(name, n_annotators, n_classes, backbone=mlp, seed=0, **params):
    torch.manual_seed(seed)
    model = get_approach(name)(Classifier(backbone(), H, n_classes), n_annotators, **params)
    if name == "annot-mix" and n_classes == 1000:  # 128 wide, its last layer alone would hold half a gigabyte
        model.annotator_model = AnnotatorNetwork(H, n_annotators, n_classes, eta=0.9, n_dim=8)
    return model


def assert_finite(tensors):
    for key, value in tensors:
        assert value is None or torch.isfinite(value).all(), key


def train(model, batch, n_steps=3):
    """Optimiser steps, every one of them checked; the losses before each of them and after the last."""
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-2)
    rng, losses = np.random.default_rng(0), []
    n, m, c = len(batch.x), model.n_annotators, model.classifier.n_classes
    model.begin(Annotations(*[part.numpy() for part in batch[1:4]], *map(range, (n, m, c))), rng)
    batch = batch._replace(rows=torch.arange(n))
    for _ in range(n_steps + 1):
        optimizer.zero_grad()
        loss = model.loss(batch, rng)
        assert torch.isfinite(loss)
        loss.backward()
        assert_finite((key, p.grad) for key, p in model.named_parameters())
        losses.append(loss.item())
        if len(losses) <= n_steps:
            optimizer.step()
            model.after_step()
            assert_finite(model.state_dict().items())
    return losses


def assert_sound_predictions(model, batch):
    """Probabilities are finite, not negative and sum to one."""
    model.eval()
    with torch.no_grad():
        h = model.classifier.features(batch.x)[batch.item]
        kinds = [model.classifier.log_proba(h)]
        if model.perf is not None:
            kinds += [model.annotator_log_proba(h, batch.annotator), model.log_confusion(h, batch.annotator)]
            perf = model.annotator_perf(h, batch.annotator)
            assert perf.shape == batch.item.shape
            assert perf.min() >= 0
            assert perf.max() <= 1 + 1e-5
        for log_proba in kinds:
            assert torch.isfinite(log_proba).all()
            torch.testing.assert_close(
                log_proba.exp().sum(dim=-1), torch.ones(log_proba.shape[:-1]), atol=1e-4, rtol=0
            )


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("name", NAMES)
def test_three_steps(name, kind):
    made = CASES[kind]
    model, batch = make(name, made.n_annotators, made.n_classes), made.batch(name)
    train(model, batch)
    assert_sound_predictions(model, batch)


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind.startswith("large features")])
@pytest.mark.parametrize("name", NAMES)
def test_three_steps_without_normalisation(name, kind):
    """A linear backbone hands large features on, so that class probabilities are all or nothing."""
    made = CASES[kind]
    model, batch = make(name, made.n_annotators, made.n_classes, lambda: nn.Linear(D, H)), made.batch(name)
    certain = model.classifier.log_proba(model.classifier.features(batch.x)).exp().max(dim=1).values
    assert (certain == 1).any()
    train(model, batch)
    assert_sound_predictions(model, batch)


@pytest.mark.parametrize("name", [n for n in NAMES if "published" in get_approach(n).hyper_parameters()])
def test_three_steps_as_published(name):
    batch = CASES["three classes"].batch(name)
    train(make(name, 5, 3, published=True), batch)


@pytest.mark.parametrize("name", [n for n in NAMES if "alpha" in get_approach(n).hyper_parameters()])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1e3])
def test_three_steps_of_little_and_of_much_mixing(name, alpha):
    train(make(name, 5, 3, alpha=alpha), CASES["three classes"].batch(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_falls_on_a_batch_seen_again_and_again(name):
    """So that staying finite is not staying still."""
    params = {"alpha": 0.0} if "alpha" in get_approach(name).hyper_parameters() else {}
    model = make(name, 4, 3, lambda: MLP(D, (H,)), **params)
    losses = train(model, one_says_always_the_same().batch(name), n_steps=30)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", ANNOTATOR_MODELS)
@pytest.mark.parametrize("size", [30.0, 1e3])
def test_extreme_parameters_of_the_annotator_model(name, size):
    """Confusion matrices of zeros and ones: labels that an annotator could never have given."""
    made = CASES["three classes"]
    model, batch = make(name, made.n_annotators, made.n_classes), made.batch(name)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if not key.startswith("classifier.") and key != "log_gamma":
                parameter.mul_(size)
    train(model, batch)


@pytest.mark.parametrize("log_gamma", [-20.0, 5.0, 20.0])
def test_madl_with_extreme_bandwidths(log_gamma):
    made = CASES["three classes"]
    model = make("madl", made.n_annotators, made.n_classes)
    with torch.no_grad():
        model.log_gamma.fill_(log_gamma)
    train(model, made.batch("madl"))
    with torch.no_grad():
        assert model.annotator_weights().sum().item() == pytest.approx(5, rel=1e-5)
        # alike to the last, or strangers all: either way every annotator weighs one
        if abs(log_gamma) == 20:
            torch.testing.assert_close(model.annotator_weights(), torch.ones(5), atol=1e-4, rtol=0)


# ---------------------------------------------------------------- the volume term


def of_rank(rank, n, n_classes, seed):
    """Rows of probabilities, all of them mixes of `rank` ones; in double precision."""
    g = torch.Generator().manual_seed(seed)
    parts = F.softmax(2 * torch.randn(rank, n_classes, generator=g).double(), dim=-1)
    return F.softmax(torch.randn(n, rank, generator=g).double(), dim=-1) @ parts


def equal_rows(n, n_classes, seed):
    return of_rank(1, 1, n_classes, seed).float().repeat(n, 1)


def equal_columns(n, n_classes, seed):
    V = of_rank(n_classes, n, n_classes, seed).float()
    V[:, -1] = V[:, 0]
    return V


def dependent_rows(n, n_classes, seed):
    return of_rank(n_classes - 1, n, n_classes, seed)


def dependent_rows_rounded(n, n_classes, seed):
    return dependent_rows(n, n_classes, seed).float()


@pytest.mark.parametrize("singular", [equal_rows, equal_columns, dependent_rows, dependent_rows_rounded])
@pytest.mark.parametrize(("n", "n_classes"), [(3, 3), (5, 3), (12, 2), (40, 6), (64, 10)])
def test_singular_matrices_are_dropped(singular, n, n_classes):
    for seed in range(30):  # rounding makes some of them look regular
        V = singular(n, n_classes, seed).requires_grad_()
        penalty = volume_penalty(V)
        assert penalty == 0
        assert not penalty.requires_grad


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf])
def test_matrices_with_nothing_in_them_or_no_numbers_are_dropped(value):
    assert volume_penalty(torch.full((5, 3), value)) == 0
    spoiled = of_rank(3, 5, 3, seed=0)
    spoiled[:, 1] = value
    assert volume_penalty(spoiled) == 0


@pytest.mark.parametrize("distance", [1e-5, 1e-3])
@pytest.mark.parametrize("seed", range(5))
def test_almost_singular_matrices_are_used(seed, distance):
    """And their gradient is −2 V (VᵀV)⁻¹, here from the singular values."""
    V = dependent_rows(12, 3, seed) + distance * of_rank(3, 12, 3, seed + 100)
    U, S, Wh = torch.linalg.svd(V, full_matrices=False)
    V.requires_grad_()
    penalty = volume_penalty(V)
    penalty.backward()
    assert penalty.item() == pytest.approx(-2 * S.log().sum().item(), rel=1e-5)
    torch.testing.assert_close(V.grad, -2 * (U / S) @ Wh, rtol=1e-4, atol=1e-4 * V.grad.abs().max().item())


def test_fewer_rows_than_columns_are_dropped():
    assert volume_penalty(of_rank(4, 3, 4, seed=0)) == 0
    assert volume_penalty(of_rank(3, 3, 3, seed=0)) != 0


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e-9, 1e-15])
def test_volume_penalty_and_gradient_with_a_class_that_is_hardly_ever_named(size):
    """A small column is no dependent one: value and gradient stay exact, −2 V (VᵀV)⁻¹ column by column."""
    V = of_rank(3, 6, 3, seed=1)
    gram_inverse = torch.linalg.inv(V.T @ V)
    scales = torch.tensor([1.0, size, 1.0], dtype=torch.float64)
    expected = -torch.logdet(V.T @ V) - 2 * math.log(size)
    scaled = (V * scales).requires_grad_()
    penalty = volume_penalty(scaled, limit=math.inf)
    penalty.backward()
    assert penalty.item() == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(scaled.grad, -2 * (V @ gram_inverse) / scales, rtol=1e-6, atol=0)


def test_the_limit_is_a_limit():
    V = of_rank(3, 6, 3, seed=1).float()
    R = volume_penalty(V).item()
    assert R > 0
    assert volume_penalty(V, limit=R + 0.01) == R
    assert volume_penalty(V, limit=R - 0.01) == 0
    assert volume_penalty(V * math.exp(-(99.9 - R) / 6)).item() == pytest.approx(99.9, rel=1e-4)
    assert volume_penalty(V * math.exp(-(100.1 - R) / 6)) == 0


def cannot_tell_instances_apart(model):
    model.classifier.head.weight.zero_()


def cannot_tell_classes_apart(model):
    model.A.copy_(model.A[:, :1].expand_as(model.A))


@pytest.mark.parametrize(
    ("name", "change"),
    [("geo-reg-f", cannot_tell_instances_apart), ("geo-reg-w", cannot_tell_classes_apart)],
)
@pytest.mark.parametrize("seed", range(5))
def test_training_starts_from_a_singular_matrix(name, change, seed):
    model = make(name, 5, 3, seed=seed)
    with torch.no_grad():
        change(model)
        model.classifier.head.bias.mul_(3)
    losses = train(model, case([2] * 12, 5, 3, seed).batch(name))
    assert max(losses) < 10


# ---------------------------------------------------------------- a layer for every entry


@pytest.mark.parametrize("n", [0, 1, 6])
def test_adapt_equals_a_loop(n):
    g = torch.Generator().manual_seed(n)
    p, W = torch.rand(n, 3, generator=g), torch.randn(n, 3, 3, generator=g)
    found = adapt(p, W)
    assert found.shape == (n, 3)
    for i in range(n):
        for k in range(3):
            expected = sum(p[i, c].item() * W[i, c, k].item() for c in range(3))
            assert found[i, k].item() == pytest.approx(expected, rel=1e-5, abs=1e-6)
