"""RAdam against `torch.optim.RAdam`, for dense parameters and for tables whose rows are late."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from annotmix.networks import AnnotatorEmbedding
from annotmix.training.optimizer import RAdam

DECAY = 0.1


class Network(nn.Module):
    """A classification model, and a part beside it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.classifier = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU())
        self.rest = nn.Linear(7, 3)
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        self.double()

    def forward(self, x):
        return self.rest(self.classifier(x))


class Torch:
    """`torch.optim.RAdam` with weight decay for the classification model only."""

    def __init__(self, net):
        groups = [{"params": list(net.classifier.parameters()), "weight_decay": DECAY}]
        self.optimizer = torch.optim.RAdam([*groups, {"params": list(net.rest.parameters())}])
        self.zero_grad = self.optimizer.zero_grad

    def step(self, lr):
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        self.optimizer.step()


def steps(net, optimizer, n, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for i in range(n):
        x = torch.randn(16, 5, generator=generator, dtype=torch.float64)
        net(x).square().mean().backward()
        optimizer.step(0.01 / (1 + i))
        optimizer.zero_grad()


@pytest.mark.parametrize("n", [1, 4, 5, 6, 7, 60])  # rectified from the sixth step on
def test_same_result_as_torch(n):
    ours, theirs = Network(), Network()
    steps(ours, RAdam(ours, DECAY), n)
    steps(theirs, Torch(theirs), n)
    start = Network()
    for a, b, c in zip(ours.parameters(), theirs.parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
        assert torch.equal(a, c) == (not a.requires_grad)


def test_a_missing_gradient_counts_as_zero():
    ours, theirs = Network(), Network()
    for net, optimizer in ((ours, RAdam(ours, DECAY)), (theirs, Torch(theirs))):
        for _ in range(8):
            net.classifier(torch.ones(4, 5).double() + torch.eye(4, 5)).square().mean().backward()
            if isinstance(optimizer, Torch):
                for p in net.rest.parameters():
                    p.grad = torch.zeros_like(p)
            optimizer.step(0.01)
            optimizer.zero_grad()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


def test_parameters_stay_where_loading_and_saving_expect_them():
    net = Network()
    optimizer = RAdam(net)
    steps(net, optimizer, 3)
    saved = copy.deepcopy(net.state_dict())
    steps(net, optimizer, 3)
    net.load_state_dict(saved)
    for name, value in net.state_dict().items():
        assert torch.equal(value, saved[name])
    before = [p.clone() for p in net.parameters() if p.requires_grad]
    steps(net, optimizer, 1)
    now = [p for p in net.parameters() if p.requires_grad]
    assert all(not torch.equal(p, b) for p, b in zip(now, before, strict=True))


def test_state_can_be_saved_and_loaded():
    whole, half = Network(), Network()
    optimizer, first = RAdam(whole, DECAY), RAdam(half, DECAY)
    steps(whole, optimizer, 8)
    steps(half, first, 8)
    again = Network()
    again.load_state_dict(half.state_dict())
    second = RAdam(again, DECAY)
    second.load_state(copy.deepcopy(first.state()))
    steps(again, second, 5, seed=2)
    steps(whole, optimizer, 5, seed=2)
    for a, b in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def look_ups(n_rows, n_steps, seed=0):
    """Rows that are looked up in every step, some again and again, some once, some never, and weights."""
    rng = np.random.default_rng(seed)
    for _ in range(n_steps):
        rows = np.minimum(rng.geometric(0.05, size=4) - 1, n_rows - 2)
        yield torch.from_numpy(rows), torch.from_numpy(rng.normal(size=(4, 3)))


def embedding(sparse=True):
    torch.manual_seed(0)
    table = AnnotatorEmbedding(60, 3).double()
    table.sparse = sparse
    return table


def steps_of_table(table, optimizer, looked_up, *, first=0, lr=0.01):
    for i, (rows, weight) in enumerate(looked_up, start=first):
        optimizer.catch_up(rows)
        (table(rows) * weight).pow(3).sum().backward()
        optimizer.step(lr / (1 + i // 20))  # as the schedule, once in a while
        optimizer.zero_grad()


@pytest.mark.parametrize("n", [3, 6, 50, 700])
def test_rows_that_catch_up_are_where_dense_steps_leave_them(n):
    ours, theirs = embedding(), embedding(sparse=False)
    optimizer, dense = RAdam(ours), RAdam(theirs)
    assert len(optimizer.tables) == 1
    assert not dense.tables
    steps_of_table(ours, optimizer, look_ups(60, n))
    steps_of_table(theirs, dense, look_ups(60, n))
    if n > 6:
        assert not torch.allclose(ours.weight, theirs.weight, rtol=1e-6)  # rows are late
    optimizer.catch_up()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-6, atol=1e-9)
    assert torch.equal(ours.weight[-1], embedding().weight[-1])  # never looked up


def test_late_rows_can_be_saved_and_loaded():
    looked_up = list(look_ups(60, 300))
    whole, half = embedding(), embedding()
    optimizer, first = RAdam(whole), RAdam(half)
    steps_of_table(whole, optimizer, looked_up[:200])
    optimizer.catch_up()
    steps_of_table(whole, optimizer, looked_up[200:], first=200)
    steps_of_table(half, first, looked_up[:200])
    first.catch_up()
    again = copy.deepcopy(half)
    second = RAdam(again)
    second.load_state(copy.deepcopy(first.state()))
    steps_of_table(again, second, looked_up[200:], first=200)
    for o in (optimizer, second):
        o.catch_up()
    assert torch.equal(whole.weight, again.weight)


def test_rows_stay_where_the_step_size_is_zero():
    table = embedding()
    optimizer = RAdam(table)
    steps_of_table(table, optimizer, look_ups(60, 10))
    optimizer.catch_up()
    before = table.weight.detach().clone()
    steps_of_table(table, optimizer, look_ups(60, 10, seed=1), lr=0.0)
    optimizer.catch_up()
    assert torch.equal(table.weight, before)
