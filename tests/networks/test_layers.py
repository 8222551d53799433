import pytest
import torch
from torch import nn

from annotmix.networks.layers import BatchNorm, Dropout


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
