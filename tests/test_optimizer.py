import copy

import pytest
import torch
from torch import nn

from annotmix.optimizer import FlatRAdam


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3)).double()


def groups(net):
    return [
        {"params": list(net[0].parameters()) + list(net[1].parameters()), "weight_decay": 0.1},
        {"params": list(net[3].parameters()), "lr": 0.003},
    ]


def steps(net, optimizer, n, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(n):
        x = torch.randn(16, 5, generator=generator, dtype=torch.float64)
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("n", [1, 4, 5, 6, 7, 60])  # rectified from the sixth step on
def test_same_result_as_torch(n):
    ours, theirs = network(), network()
    steps(ours, FlatRAdam(groups(ours), lr=0.01), n)
    steps(theirs, torch.optim.RAdam(groups(theirs), lr=0.01), n)
    start = network()
    for a, b, c in zip(ours.parameters(), theirs.parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
        assert not torch.equal(a, c)


def test_parameters_stay_where_loading_and_saving_expect_them():
    net = network()
    optimizer = FlatRAdam(groups(net))
    steps(net, optimizer, 3)
    saved = copy.deepcopy(net.state_dict())
    steps(net, optimizer, 3)
    net.load_state_dict(saved)
    for name, value in net.state_dict().items():
        assert torch.equal(value, saved[name])
    before = [p.clone() for p in net.parameters()]
    steps(net, optimizer, 1)
    assert all(not torch.equal(p, b) for p, b in zip(net.parameters(), before, strict=True))


def test_state_can_be_saved_and_loaded():
    whole, half = network(), network()
    optimizer = FlatRAdam(groups(whole))
    steps(whole, optimizer, 8)
    first = FlatRAdam(groups(half))
    steps(half, first, 8)
    again = network()
    again.load_state_dict(half.state_dict())
    second = FlatRAdam(groups(again))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    steps(again, second, 5, seed=2)
    steps(whole, optimizer, 5, seed=2)
    for a, b in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
