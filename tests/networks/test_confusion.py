import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from annotmix.networks import confusion
from annotmix.networks.confusion import ConfusionHead, LowRankConfusionHead, make_head

quick = settings(max_examples=25, deadline=None)
RANKS = [0, 1, 3]


def make(n, n_classes, rank, seed=0, dtype=torch.float64, scale=1.0):
    """A head, states, class log-probabilities and two labels a state."""
    g = torch.Generator().manual_seed(seed)
    head = make_head(4, n_classes, 0.9, rank).to(dtype)
    with torch.no_grad():
        head.weight.copy_(scale * torch.randn(head.weight.shape, generator=g))
    u = torch.randn(n, 4, generator=g).to(dtype)
    log_p = F.log_softmax(torch.randn(n, n_classes, generator=g), dim=-1).to(dtype)
    return head, u, log_p, torch.randint(n_classes, (n, 2), generator=g)


def slowly(head, u, log_p, labels):
    """log Σ_c p_c Π_ck by the whole matrix and autograd alone."""
    joint = log_p.unsqueeze(-1) + head.log_confusion(u)
    return torch.logsumexp(joint, dim=1).gather(1, labels)


def gradients(function, head, u, log_p, labels):
    u, log_p = u.clone().requires_grad_(), log_p.clone().requires_grad_()
    value = function(u, log_p, labels)
    weights = torch.arange(1, value.numel() + 1, dtype=value.dtype).view_as(value)
    return [value, *torch.autograd.grad((value * weights).sum(), [u, log_p, *head.parameters()])]


@quick
@given(st.integers(1, 5), st.integers(2, 9), st.sampled_from(RANKS), st.integers(0, 10**6))
def test_answers_are_those_of_the_whole_matrix(n, n_classes, rank, seed):
    head, u, log_p, labels = make(n, n_classes, rank, seed)
    log_pi = head.log_confusion(u)
    assert log_pi.shape == (n, n_classes, n_classes)
    torch.testing.assert_close(log_pi.exp().sum(dim=2), torch.ones(n, n_classes, dtype=torch.float64))
    torch.testing.assert_close(head.log_diagonal(u), log_pi.diagonal(dim1=1, dim2=2))
    everything = torch.logsumexp(log_p.unsqueeze(-1) + log_pi, dim=1)
    torch.testing.assert_close(head.annotator_log_proba(u, log_p), everything)
    torch.testing.assert_close(head.log_likelihood(u, log_p, labels), everything.gather(1, labels))


@pytest.mark.parametrize("block", [1, 30, 10**6])  # a label at a time, some, all
@pytest.mark.parametrize("equal", [False, True])
def test_gradients_of_the_dense_head(block, equal, monkeypatch):
    monkeypatch.setattr(confusion, "BLOCK", block)
    head, u, log_p, labels = make(3, 5, 0)
    labels = labels[:, :1].expand(-1, 2) if equal else labels
    found = gradients(head.log_likelihood, head, u, log_p, labels)
    expected = gradients(lambda *a: slowly(head, *a), head, u, log_p, labels)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b)
    inputs = (log_p.requires_grad_(), u.requires_grad_(), head.weight, head.bias)
    assert torch.autograd.gradcheck(lambda *a: confusion._LogLikelihood.apply(*a, labels), inputs)
    torch.testing.assert_close(head.log_diagonal(u), head.log_confusion(u).diagonal(dim1=1, dim2=2))
    torch.testing.assert_close(
        head.annotator_log_proba(u, log_p),
        torch.logsumexp(log_p.unsqueeze(-1) + head.log_confusion(u), dim=1),
    )


@pytest.mark.parametrize("block", [1, 10**6])
@pytest.mark.parametrize("scale", [30.0, 1e3, 1e6])
def test_extreme_logits_stay_finite_and_right(block, scale, monkeypatch):
    monkeypatch.setattr(confusion, "BLOCK", block)
    double = make(6, 5, 0, seed=3, scale=scale)
    single = (double[0].float(), *[x.float() for x in double[1:3]], double[3])
    found = gradients(single[0].log_likelihood, *single)
    diagonal, said = single[0].log_diagonal(single[1]), single[0].annotator_log_proba(*single[1:3])
    head, u, log_p, labels = make(6, 5, 0, seed=3, scale=scale)
    expected = gradients(lambda *a: slowly(head, *a), head, u, log_p, labels)
    assert all(torch.isfinite(part).all() for part in found)
    for a, b in zip(found[:3], expected[:3], strict=True):
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4 * scale)
    exact = head.log_confusion(u)
    torch.testing.assert_close(
        diagonal.double(), exact.diagonal(dim1=1, dim2=2), rtol=1e-4, atol=1e-5 * scale
    )
    torch.testing.assert_close(
        said.double(), torch.logsumexp(log_p.unsqueeze(-1) + exact, dim=1), rtol=1e-4, atol=1e-5 * scale
    )


def test_a_class_without_any_probability():
    for rank in RANKS:
        head, u, log_p, labels = make(4, 3, rank)
        log_p[:, 1] = -torch.inf
        for part in gradients(head.log_likelihood, head, u, log_p, labels)[1:]:
            assert torch.isfinite(part).all()


def test_going_back_twice_gives_the_same():
    head, u, log_p, labels = make(3, 5, 0)
    value = head.log_likelihood(u.requires_grad_(), log_p, labels).sum()
    first, second = (torch.autograd.grad(value, [u, head.weight], retain_graph=True) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("rank", RANKS)
def test_half_precision_states_give_single_precision_likelihoods(rank):
    head, u, log_p, labels = make(6, 4, rank, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = gradients(head.log_likelihood, head, u, log_p, labels)
    expected = gradients(head.log_likelihood, head, u, log_p, labels)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a, b, rtol=0.1, atol=0.3)


@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
@pytest.mark.parametrize("eta", [0.55, 0.8, 0.9, 0.999])
@pytest.mark.parametrize("rank", RANKS)
def test_heads_start_at_eta(n_classes, eta, rank):
    head = make_head(16, n_classes, eta, rank)
    start = head.log_confusion(torch.zeros(1, 16)).exp()[0]
    expected = torch.full((n_classes, n_classes), (1 - eta) / (n_classes - 1)).fill_diagonal_(eta)
    if rank == 0:
        torch.testing.assert_close(start, expected)
    else:  # ways to go wrong start at random
        torch.testing.assert_close(start.diagonal(), expected.diagonal(), rtol=0, atol=0.5 * (1 - eta))


def test_dense_logits_are_indexed_by_true_class_then_label():
    head = ConfusionHead(4, 3, 0.9)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    logits = head(x)
    assert logits.shape == (5, 3, 3)
    for c in range(3):
        for k in range(3):
            expected = x @ head.weight[3 * k + c] + head.bias[3 * k + c]
            torch.testing.assert_close(logits[:, c, k], expected)


def test_low_rank_grows_with_classes_not_with_their_square():
    few, many = (sum(p.numel() for p in LowRankConfusionHead(8, C, 0.9, 4).parameters()) for C in (10, 1000))
    assert many == 100 * few


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize(
    ("n_classes", "eta"), [(4, 0.25), (4, 0.1), (4, 1.0), (4, 1.5), (4, -1), (4, float("nan")), (1, 0.9)]
)
def test_eta_outside_its_range(n_classes, eta, rank):
    with pytest.raises(ValueError, match=rf"eta.*1/C = .*\(C = {n_classes} classes\) and 1, found {eta}"):
        make_head(8, n_classes, eta, rank)


def test_eta_just_above_chance():
    head = ConfusionHead(8, 4, 0.2501)
    assert head.log_confusion(torch.zeros(1, 8)).exp()[0].diagonal().min() > 0.25


# ---------------------------------------------------------------- the loss of mixed labels


def mixed(n=7, n_classes=5, rank=0, dtype=torch.float64, scale=1.0):
    head, u, _, labels = make(n, n_classes, rank, dtype=dtype, scale=scale)
    g = torch.Generator().manual_seed(1)
    z, share = (torch.randn(*shape, generator=g).to(dtype) for shape in ((n, n_classes), (2, n)))
    return head, u.requires_grad_(), z.requires_grad_(), labels.T, share.abs()


def slow_nll(head, u, z, labels, share):
    return -(slowly(head, u, F.log_softmax(z, dim=1), labels.T) * share.T).sum() / len(u)


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_mixed_nll_is_that_of_the_whole_matrix(rank, factor):
    head, u, z, labels, share = mixed(rank=rank)
    leaves = [u, z, *head.parameters()]
    values = [
        [nll, *torch.autograd.grad(factor * nll, leaves)]
        for nll in (head.mixed_nll(u, z, labels, share), slow_nll(head, u, z, labels, share))
    ]
    for a, b in zip(*values, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("scale", [40.0, 3e3])
def test_mixed_nll_of_logits_beyond_single_precision(scale):
    head, u, z, labels, share = mixed(dtype=torch.float32, scale=scale)
    found = torch.autograd.grad(nll := head.mixed_nll(u, z, labels, share), [u, z, *head.parameters()])
    expected = torch.autograd.grad(slow := slow_nll(head, u, z, labels, share), [u, z, *head.parameters()])
    assert torch.isfinite(nll)
    torch.testing.assert_close(nll, slow)
    for a, b in zip(found, expected, strict=True):
        # where almost every probability is 0 or 1, small differences are magnified on the way back
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-4 * float(b.abs().max() + 1))


def test_mixed_nll_in_several_blocks(monkeypatch):
    head, u, z, labels, share = mixed()
    whole = torch.autograd.grad(head.mixed_nll(u, z, labels, share), [u, z, *head.parameters()])
    monkeypatch.setattr(confusion, "BLOCK", 40)
    parts = torch.autograd.grad(head.mixed_nll(u, z, labels, share), [u, z, *head.parameters()])
    for a, b in zip(whole, parts, strict=True):
        torch.testing.assert_close(a, b)
