import copy
import itertools

import pytest
import torch
from torch import nn

from annotmix.networks.layers import BatchNorm, Dropout, Layers, LinearNormReLU, apply_layers


@pytest.fixture(autouse=True)
def seed():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


# ---------------------------------------------------------------- batch normalisation


def test_one_row_is_normalised_by_the_running_statistics():
    norm = BatchNorm(3)
    for _ in range(5):
        norm(2 + 3 * torch.randn(20, 3))
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    x = torch.randn(1, 3)
    found = norm(x)
    expected = (x - before["running_mean"]) / (before["running_var"] + norm.eps).sqrt()
    torch.testing.assert_close(found, expected * norm.weight + norm.bias)
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
    torch.testing.assert_close(norm.eval()(x), found)


def test_one_row_sends_gradients():
    norm = BatchNorm(2)
    x = torch.randn(1, 2, requires_grad=True)
    norm(x).sum().backward()
    assert torch.equal(norm.bias.grad, torch.ones(2))
    assert (x.grad != 0).all()


def test_several_rows_are_normalised_as_ever():
    ours, theirs = BatchNorm(4), nn.BatchNorm1d(4)
    for n in (2, 7):
        x = torch.randn(n, 4)
        assert torch.equal(ours(x), theirs(x))
    for name in ("running_mean", "running_var"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))


# ---------------------------------------------------------------- dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_zeroes_with_its_chance_and_keeps_the_mean(p):
    torch.manual_seed(0)
    dropout, n = Dropout(p), 200_001  # not a multiple of four
    out = dropout(torch.full((n,), 2.0))
    share = float((out == 0).float().mean())
    assert abs(share - p) < 4 * (p * (1 - p) / n) ** 0.5
    torch.testing.assert_close(out[out != 0].unique(), torch.tensor([2 / (1 - p)]), rtol=1e-4, atol=0)
    kept = (out != 0).float()
    correlation = float(((kept[1:] - kept.mean()) * (kept[:-1] - kept.mean())).mean() / kept.var())
    assert abs(correlation) < 4 / n**0.5


def test_dropout_follows_torch_s_seed_and_passes_gradients_of_kept_entries():
    x = torch.ones(64, 9, requires_grad=True)
    torch.manual_seed(3)
    first = Dropout(0.3)(x)
    torch.manual_seed(3)
    assert torch.equal(first, Dropout(0.3)(x))
    first.sum().backward()
    assert torch.equal(x.grad, first.detach())
    assert Dropout(0.3).eval()(x) is x or torch.equal(Dropout(0.3).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


# ---------------------------------------------------------------- several layers in one


def layers(*widths, dropout=0.0):
    """Some layers in double precision, with running statistics and scales of their own."""
    found = []
    for n_in, n_out in itertools.pairwise(widths):
        norm = BatchNorm(n_out)
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        found += [nn.Linear(n_in, n_out), norm, nn.ReLU(inplace=True)]
        if dropout:
            found.append(Dropout(dropout))
    return Layers(*found).double()


def one_by_one(layers, x):
    for layer in layers:
        x = layer(x)
    return x


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("training", [True, False])
def test_layers_are_those_of_pytorch_one_by_one(n, training):
    ours = layers(3, 6, 4, dropout=0.5).train(training)
    theirs = copy.deepcopy(ours)
    x = torch.randn(n, 3, dtype=torch.float64)
    results = []
    for forward, net in ((apply_layers, ours), (one_by_one, theirs)):
        torch.manual_seed(1)
        given = x.clone().requires_grad_()
        out = forward(net, given)
        (out * torch.arange(out.numel()).view_as(out)).sum().backward()
        results.append([out, given.grad, *[p.grad for p in net.parameters()], *net.buffers()])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("x_shape", [(6, 3), (6, 2, 3)])
@pytest.mark.parametrize("members", [(), (2,)])
def test_gradients_of_one_step(x_shape, members):
    if not members and len(x_shape) == 3:
        return
    width = 4 * (2 if members else 1)
    shapes = ((*members, 4, 3), (*members, 4), (width,), (width,))
    weight, bias, scale, shift = (
        torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes
    )
    x = torch.randn(*x_shape, dtype=torch.float64, requires_grad=True)

    def function(*given):
        statistics = torch.zeros(width, dtype=torch.float64), torch.ones(width, dtype=torch.float64)
        return LinearNormReLU.apply(*given, *statistics, 0.1, 1e-5)

    assert torch.autograd.gradcheck(function, (x, weight, bias, scale, shift))
