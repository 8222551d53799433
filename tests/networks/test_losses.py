"""The losses against double loops, finite differences and plain autograd."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from annotmix.networks.losses import (
    adapt,
    annotator_log_proba,
    label_log_likelihood,
    mixed_nll,
    volume_penalty,
)

quick = settings(deadline=None, max_examples=40, derandomize=True)


def make(n: int, n_classes: int, seed: int, dtype: torch.dtype = torch.float64, scale: float = 2.0):
    """log p, logits, labels, partners' labels and λ."""
    g = torch.Generator().manual_seed(seed)
    log_p = F.log_softmax(scale * torch.randn(n, n_classes, generator=g, dtype=dtype), dim=-1)
    logits = scale * torch.randn(n, n_classes, n_classes, generator=g, dtype=dtype)
    label, partner = torch.randint(n_classes, (2, n), generator=g)
    return log_p, logits, label, partner, torch.rand(n, generator=g, dtype=dtype)


def marginal_nll(log_p, logits, label, partner=None, lam=None, weight=None, partner_weight=None):
    """The loss of annot-mix, of whole matrices."""
    if partner is None:
        weights = None if weight is None else weight.unsqueeze(1)
        return mixed_nll(label_log_likelihood(log_p, logits, label.unsqueeze(1)), weight=weights)
    weights = None if weight is None else torch.stack([weight, partner_weight], dim=1)
    labels = torch.stack([label, partner], dim=1)
    return mixed_nll(label_log_likelihood(log_p, logits, labels), lam, weights)


def nll_slowly(
    log_p: Tensor, logits: Tensor, label: Tensor, partner: Tensor | None, lam: Tensor | None
) -> float:
    total = 0.0
    for i in range(len(log_p)):
        targets = [(label[i].item(), 1.0)]
        if partner is not None:
            targets = [(label[i].item(), lam[i].item()), (partner[i].item(), 1 - lam[i].item())]
        for k, weight in targets:
            probability = 0.0
            for c in range(log_p.shape[1]):
                row = [math.exp(value) for value in logits[i, c].tolist()]
                probability += math.exp(log_p[i, c].item()) * row[k] / sum(row)
            total -= weight * math.log(probability)
    return total / len(log_p)


def nll_by_autograd(log_p, logits, label, partner=None, lam=None):
    """The same from PyTorch's own operations."""
    log_annot = torch.logsumexp(log_p.unsqueeze(-1) + F.log_softmax(logits, dim=-1), dim=1)
    target = F.one_hot(label, log_p.shape[1]).to(log_p.dtype)
    if partner is not None:
        other = F.one_hot(partner, log_p.shape[1]).to(log_p.dtype)
        target = lam.unsqueeze(-1) * target + (1 - lam).unsqueeze(-1) * other
    return -(target * log_annot).sum() / len(log_p)


def gradients(loss, log_p, logits, *rest):
    log_p, logits = log_p.clone().requires_grad_(), logits.clone().requires_grad_()
    value = loss(log_p, logits, *rest)
    return value.detach(), *torch.autograd.grad(value, (log_p, logits))


@quick
@given(st.integers(1, 6), st.integers(2, 12), st.booleans(), st.integers(0, 10**6))
def test_marginal_nll_equals_a_double_loop(n, n_classes, mixed, seed):
    log_p, logits, label, partner, lam = make(n, n_classes, seed)
    if not mixed:
        partner = lam = None
    found = marginal_nll(log_p, logits, label, partner, lam)
    assert found.shape == ()
    assert found.item() == pytest.approx(nll_slowly(log_p, logits, label, partner, lam), rel=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 10, 50])
@pytest.mark.parametrize("mixed", [False, True])
def test_marginal_nll_for_few_and_many_classes(n_classes, mixed):
    log_p, logits, label, partner, lam = make(4, n_classes, seed=n_classes)
    rest = (label, partner, lam) if mixed else (label, None, None)
    assert marginal_nll(log_p, logits, *rest).item() == pytest.approx(
        nll_slowly(log_p, logits, *rest), rel=1e-10
    )


def test_equal_labels_in_both_slots_are_one_label():
    log_p, logits, label, _, lam = make(9, 4, seed=0)
    alone = gradients(marginal_nll, log_p, logits, label)
    twice = gradients(marginal_nll, log_p, logits, label, label, lam)
    for a, b in zip(alone, twice, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_share_of_zero_or_one_is_a_label_alone(share):
    log_p, logits, label, partner, _ = make(9, 4, seed=1)
    lam = torch.full((9,), share, dtype=torch.float64)
    alone = gradients(marginal_nll, log_p, logits, label if share else partner)
    mixed = gradients(marginal_nll, log_p, logits, label, partner, lam)
    for a, b in zip(alone, mixed, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", ["alone", "mixed", "equal", "one row"])
def test_gradients_equal_finite_differences(case):
    log_p, logits, label, partner, lam = make(1 if case == "one row" else 5, 3, seed=2)
    rest = {"alone": (label,), "equal": (label, label, lam)}.get(case, (label, partner, lam))
    log_p.requires_grad_()
    logits.requires_grad_()
    # log p is checked as a free vector, so the gradient must hold off the simplex too
    assert torch.autograd.gradcheck(lambda p, c: marginal_nll(p, c, *rest), (log_p, logits))
    assert torch.autograd.gradcheck(lambda p, c: 3 * marginal_nll(p - 1, c, *rest) ** 2, (log_p, logits))


@quick
@given(st.integers(1, 8), st.integers(2, 50), st.booleans(), st.integers(0, 10**6))
def test_gradients_equal_plain_autograd_in_single_precision(n, n_classes, mixed, seed):
    log_p, logits, label, partner, lam = make(n, n_classes, seed, torch.float32)
    rest = (label, partner, lam) if mixed else (label,)
    found = gradients(marginal_nll, log_p, logits, *rest)
    expected = gradients(nll_by_autograd, log_p, logits, *rest)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == torch.float32
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [1e2, 1e4])
@pytest.mark.parametrize("n", [1, 6])
def test_extreme_values_stay_finite_and_right(size, n):
    _, logits, label, partner, lam = make(n, 5, seed=3)
    g = torch.Generator().manual_seed(4)
    logits = size * torch.sign(torch.randn(logits.shape, generator=g)).double()
    log_p = F.log_softmax(size * torch.randn(n, 5, generator=g, dtype=torch.float64), dim=-1)
    log_p[:, 0] = -size
    expected = gradients(nll_by_autograd, log_p, logits, label, partner, lam)
    found = gradients(marginal_nll, log_p.float(), logits.float(), label, partner, lam.float())
    for a, b in zip(found, expected, strict=True):
        assert torch.isfinite(a).all()
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4)


def test_a_class_without_any_probability_stays_finite():
    log_p, logits, label, partner, lam = make(4, 3, seed=5, dtype=torch.float32)
    log_p[:, 1] = -math.inf
    for part in gradients(marginal_nll, log_p, logits, label, partner, lam):
        assert torch.isfinite(part).all()


def test_half_precision_logits_beside_single_precision_probabilities():
    log_p, logits, label, partner, lam = make(6, 4, seed=6, dtype=torch.float32)
    logits = logits.bfloat16()
    found = gradients(marginal_nll, log_p, logits, label, partner, lam)
    expected = gradients(marginal_nll, log_p, logits.float(), label, partner, lam)
    assert [part.dtype for part in found] == [torch.float32, torch.float32, torch.bfloat16]
    torch.testing.assert_close(found[0], expected[0])
    torch.testing.assert_close(found[2].float(), expected[2], rtol=1e-2, atol=1e-3)


def test_coefficients_of_one_value_for_all():
    log_p, logits, label, partner, _ = make(6, 4, seed=7)
    shared = torch.tensor([0.3], dtype=torch.float64).expand(6)
    found = marginal_nll(log_p, logits, label, partner, shared)
    assert found.item() == pytest.approx(nll_slowly(log_p, logits, label, partner, shared), rel=1e-10)


def test_the_inputs_are_left_as_they_are():
    inputs = make(6, 4, seed=8)
    copies = [part.clone() for part in inputs]
    gradients(marginal_nll, *inputs)
    log_p, logits = (part.requires_grad_() for part in inputs[:2])
    marginal_nll(log_p, logits, *inputs[2:]).backward()
    assert all(torch.equal(a, b) for a, b in zip(inputs, copies, strict=True))


@quick
@given(st.integers(1, 4), st.integers(2, 6), st.integers(1, 4), st.integers(0, 10**6))
def test_likelihoods_of_several_labels_equal_those_one_by_one(n, n_classes, n_labels, seed):
    log_p, logits, *_ = make(n, n_classes, seed)
    labels = torch.randint(n_classes, (n, n_labels), generator=torch.Generator().manual_seed(seed))
    found = label_log_likelihood(log_p, logits, labels)
    assert found.shape == (n, n_labels)
    for i in range(n):
        for j in range(n_labels):
            alone = nll_slowly(log_p[i : i + 1], logits[i : i + 1], labels[i : i + 1, j], None, None)
            assert found[i, j].item() == pytest.approx(-alone, rel=1e-10)


def test_gradients_of_several_labels_where_some_are_equal():
    log_p, logits, *_ = make(3, 4, seed=12)
    labels = torch.tensor([[0, 0, 1], [2, 2, 2], [3, 1, 0]])
    inputs = (log_p.requires_grad_(), logits.requires_grad_())
    assert torch.autograd.gradcheck(lambda p, c: label_log_likelihood(p, c, labels), inputs)


@quick
@given(st.integers(1, 4), st.integers(2, 8), st.integers(0, 10**6))
def test_annotator_log_proba_equals_a_loop(n, n_classes, seed):
    log_p, logits, *_ = make(n, n_classes, seed)
    log_confusion = F.log_softmax(logits, dim=-1)
    found = annotator_log_proba(log_p, log_confusion)
    assert found.shape == (n, n_classes)
    for i in range(n):
        for k in range(n_classes):
            p = sum(math.exp(log_p[i, c].item() + log_confusion[i, c, k].item()) for c in range(n_classes))
            assert found[i, k].item() == pytest.approx(math.log(p), rel=1e-10, abs=1e-12)
    torch.testing.assert_close(found.exp().sum(dim=-1), torch.ones(n, dtype=torch.float64))


def test_both_losses_tell_the_same():
    log_p, logits, label, *_ = make(7, 5, seed=11)
    log_annot = annotator_log_proba(log_p, F.log_softmax(logits, dim=-1))
    torch.testing.assert_close(marginal_nll(log_p, logits, label), F.nll_loss(log_annot, label))


# ---------------------------------------------------------------- parts of other approaches


def test_adapt_equals_a_loop():
    g = torch.Generator().manual_seed(0)
    p, W = torch.rand(5, 3, generator=g), torch.randn(5, 3, 3, generator=g)
    found = adapt(p, W)
    for i in range(5):
        for k in range(3):
            expected = sum(p[i, c].item() * W[i, c, k].item() for c in range(3))
            assert found[i, k].item() == pytest.approx(expected, abs=1e-6)


def test_volume_penalty_by_hand():
    V = torch.tensor([[2.0, 0.0], [0.0, 3.0], [0.0, 4.0]])  # VᵀV = diag(4, 25)
    assert volume_penalty(V).item() == pytest.approx(-math.log(100))
    turned = V @ torch.tensor([[0.6, -0.8], [0.8, 0.6]])
    assert volume_penalty(turned).item() == pytest.approx(-math.log(100), abs=1e-5)


def test_volume_penalty_of_columns_that_are_almost_equal():
    V = torch.tensor([[1.0, 1.0], [1.0, 1.001], [1.0, 1.0]])
    apart = V[1, 1].double().item() - 1  # det(VᵀV) = 2·apart², which single precision cannot tell from 0
    assert volume_penalty(V).item() == pytest.approx(-math.log(2 * apart**2), abs=1e-4)


def test_volume_penalty_draws_columns_apart():
    V = torch.tensor([[1.0, 0.9], [0.9, 1.0], [0.5, 0.5]], requires_grad=True)
    volume_penalty(V).backward()
    VtV = V.detach().double().T @ V.detach().double()
    torch.testing.assert_close(
        V.grad.double(), -2 * V.detach().double() @ torch.linalg.inv(VtV), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    "V",
    [
        torch.ones(5, 3),  # singular
        torch.zeros(5, 3),
        torch.eye(3)[:2],  # fewer rows than columns
        torch.eye(3) * 1e-20,  # beyond the limit
        torch.full((5, 3), float("nan")),
        torch.full((5, 3), float("inf")),
        torch.eye(3, dtype=torch.float64) * 1e200,  # overflows
    ],
)
def test_volume_penalty_is_nothing_where_it_says_nothing(V):
    assert volume_penalty(V).item() == 0


def test_volume_penalty_up_to_its_limit():
    V = torch.eye(2, dtype=torch.float64)
    for exponent, expected in ((24.0, 96.0), (26.0, 0.0)):  # −log det = 4·exponent
        assert volume_penalty(V * math.exp(-exponent)).item() == pytest.approx(expected, rel=1e-5)
