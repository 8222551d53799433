import copy

import numpy as np
import pytest
import torch
from torch import nn

from annotmix.training.optimizer import RAdam


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
    steps(ours, RAdam(groups(ours), lr=0.01), n)
    steps(theirs, torch.optim.RAdam(groups(theirs), lr=0.01), n)
    start = network()
    for a, b, c in zip(ours.parameters(), theirs.parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
        assert not torch.equal(a, c)


def test_parameters_stay_where_loading_and_saving_expect_them():
    net = network()
    optimizer = RAdam(groups(net))
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
    optimizer = RAdam(groups(whole))
    steps(whole, optimizer, 8)
    first = RAdam(groups(half))
    steps(half, first, 8)
    again = network()
    again.load_state_dict(half.state_dict())
    second = RAdam(groups(again))
    second.load_state_dict(copy.deepcopy(first.state_dict()))
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


def table(n_rows):
    generator = torch.Generator().manual_seed(0)
    return nn.Parameter(torch.randn(n_rows, 3, generator=generator, dtype=torch.float64))


def steps_of_table(p, optimizer, looked_up, *, sparse, first=0):
    for i, (rows, weight) in enumerate(looked_up, start=first):
        optimizer.param_groups[0]["lr"] = 0.01 / (1 + i // 20)  # as the schedule, once in a while
        if sparse:
            optimizer.catch_up(rows)
        (nn.functional.embedding(rows, p, sparse=sparse) * weight).pow(3).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("n", [3, 6, 50, 700])
def test_rows_that_catch_up_are_where_dense_steps_leave_them(n):
    ours, theirs = table(60), table(60)
    optimizer = RAdam([{"params": [ours]}], lr=0.01)
    steps_of_table(ours, optimizer, look_ups(60, n), sparse=True)
    steps_of_table(theirs, torch.optim.RAdam([theirs], lr=0.01), look_ups(60, n), sparse=False)
    if n > 6:
        assert not torch.allclose(ours, theirs, rtol=1e-6)  # rows are late
    optimizer.catch_up()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)
    assert torch.equal(ours[-1], table(60)[-1])  # never looked up


def test_late_rows_can_be_saved_and_loaded():
    looked_up = list(look_ups(60, 300))
    whole, half = table(60), table(60)
    optimizer, first = RAdam([{"params": [whole]}]), RAdam([{"params": [half]}])
    steps_of_table(whole, optimizer, looked_up[:200], sparse=True)
    optimizer.catch_up()
    steps_of_table(whole, optimizer, looked_up[200:], sparse=True, first=200)
    steps_of_table(half, first, looked_up[:200], sparse=True)
    first.catch_up()
    again = nn.Parameter(half.detach().clone())
    second = RAdam([{"params": [again]}])
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    steps_of_table(again, second, looked_up[200:], sparse=True, first=200)
    for o in (optimizer, second):
        o.catch_up()
    assert torch.equal(whole, again)


def test_rows_stay_where_the_step_size_is_zero():
    p = table(60)
    optimizer = RAdam([{"params": [p]}])
    steps_of_table(p, optimizer, look_ups(60, 10), sparse=True)
    optimizer.catch_up()
    before = p.detach().clone()
    for rows, weight in look_ups(60, 10, seed=1):
        optimizer.param_groups[0]["lr"] = 0.0
        (nn.functional.embedding(rows, p, sparse=True) * weight).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    optimizer.catch_up()
    assert torch.equal(p, before)


def test_weight_decay_moves_every_row():
    ours, theirs = table(60), table(60)
    steps_of_table(ours, RAdam([{"params": [ours], "weight_decay": 0.1}]), look_ups(60, 30), sparse=True)
    dense = torch.optim.RAdam([theirs], lr=0.01, weight_decay=0.1)
    steps_of_table(theirs, dense, look_ups(60, 30), sparse=False)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)
