"""Heads that turn a state u of the annotator model into a confusion matrix Π, or into parts of it.

Training does not need all of Π: a label k needs Σ_c p_c Π_ck. So a head has one method per quantity, and
decides itself how much of Π ever exists.

`ConfusionHead` is the paper's, dense: C² logits L, Π = row-softmax(L). They come in blocks of labels k; a
block is contiguous in memory for all classes c. A block is overwritten by its exponentials at once, so that
nothing else is kept, and further blocks are computed again in the backward pass.

`LowRankConfusionHead` has no C² numbers at all. With σ_c the chance that class c is labelled right, and R
patterns of errors,

    Π_ck = σ_c 1[c = k] + (1 − σ_c) Σ_r A_cr B_rk,   rows of A and of B sum to one,

so Σ_c p_c Π_ck = p_k σ_k + Σ_r (Σ_c p_c (1 − σ_c) A_cr) B_rk: 2R + 1 numbers per class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

#: Logits of the dense head that exist at a time (64 MB of float32), unless a single label needs more.
BLOCK = 1 << 24
#: Sums of exponentials that single precision holds without a shift, with a margin.
SAFE = (1e-30, 1e30)
#: The smallest probability that is distinguished from 0.
TINY = 1e-30


class ConfusionHead(nn.Linear):
    """Linear(d → C²) whose confusion matrices start near η on the diagonal.

    Output k·C + c is the logit of label k for class c.
    """

    def __init__(self, n_dim: int, n_classes: int, eta: float):
        _check_eta(eta, n_classes)
        super().__init__(n_dim, n_classes**2)
        self.n_classes = n_classes
        with torch.no_grad():
            diagonal = torch.full((n_classes,), eta * (n_classes - 1) / (1 - eta)).log()
            self.bias.copy_(torch.diag(diagonal).flatten())

    def forward(self, input: Tensor) -> Tensor:
        """Logits, shape (n, C, C), indexed [true class, given label], of states, shape (n, d)."""
        return super().forward(input).view(-1, self.n_classes, self.n_classes).transpose(1, 2)

    def log_likelihood(self, u: Tensor, log_p: Tensor, labels: Tensor) -> Tensor:
        """log Σ_c p_c Π_ck of every given label k.

        Parameters
        ----------
        u : tensor, shape (n, d)
        log_p : tensor, shape (n, C)
        labels : tensor of int, shape (n, J)

        Returns
        -------
        tensor, shape (n, J)
        """
        inputs = u, self.weight, self.bias
        if torch.is_autocast_enabled(u.device.type):
            dtype = torch.get_autocast_dtype(u.device.type)
            with torch.autocast(u.device.type, enabled=False):
                return _LogLikelihood.apply(log_p, *[x.to(dtype) for x in inputs], labels)  # type: ignore[no-any-return, no-untyped-call]
        return _LogLikelihood.apply(log_p, *inputs, labels)  # type: ignore[no-any-return, no-untyped-call]

    def mixed_nll(self, u: Tensor, logits: Tensor, labels: Tensor, share: Tensor) -> Tensor:
        """−(1/n) Σ_j share_j log Σ_c p_c Π_c,kj with p = softmax(logits), shape ().

        Parameters
        ----------
        u : tensor, shape (n, d)
        logits : tensor, shape (n, C)
        labels : tensor of int, shape (J, n)
        share : tensor, shape (J, n)
        """
        if torch.is_autocast_enabled(u.device.type):
            return _mixed_nll(self, u, logits, labels, share)
        return _MixedNLL.apply(logits, u, self.weight, self.bias, labels, share.to(logits.dtype))  # type: ignore[no-any-return, no-untyped-call]

    def log_confusion(self, u: Tensor) -> Tensor:
        """log Π, shape (n, C, C), of states, shape (n, d)."""
        return F.log_softmax(_single(self(u)), dim=-1)

    @torch.no_grad()
    def annotator_log_proba(self, u: Tensor, log_p: Tensor) -> Tensor:
        """log Σ_c p_c Π_ck of all labels k, shape (n, C)."""
        total, shift, *_ = _sums(u, self.weight, self.bias, _no_labels(u))
        log_p = log_p - total.log()
        blocks = [
            torch.logsumexp(_shifted(logits, shift) + log_p.unsqueeze(1), dim=2)
            for _, logits in _blocks(u, self.weight, self.bias)
        ]
        return torch.cat(blocks, dim=1)

    @torch.no_grad()
    def log_diagonal(self, u: Tensor) -> Tensor:
        """log Π_cc, shape (n, C)."""
        total, shift, *_ = _sums(u, self.weight, self.bias, _no_labels(u))
        C = self.n_classes
        own = torch.arange(C, device=u.device) * (C + 1)
        logits = _single(F.linear(u, self.weight[own], self.bias[own]))
        return logits - total.log() if shift is None else logits - shift - total.log()


class _LogLikelihood(torch.autograd.Function):
    """`ConfusionHead.log_likelihood` with its gradient written out.

    With r_jc = p_c Π_c,kj / Σ_c' p_c' Π_c',kj, the posterior of class c given the j-th label, g_j the
    incoming gradient and w_c = Σ_j g_j r_jc, the gradient for log p_c is w_c, and the gradient for the
    logits is Σ_j g_j r_jc 1[k = k_j] − w_c Π_ck: the exponentials once more, scaled, and J columns.
    """

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, u: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> Tensor:
        total, shift, columns, e = _sums(u, weight, bias, labels)
        joint = columns + (log_p - total.log()).unsqueeze(1)  # (n, J, C)
        log_likelihood = torch.logsumexp(joint, dim=2)
        posterior = (joint - log_likelihood.unsqueeze(2)).exp_()
        ctx.save_for_backward(u, weight, bias, labels, total, posterior, shift)
        ctx.e = e
        return log_likelihood

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, None]:
        u, weight, bias, labels, total, posterior, shift = ctx.saved_tensors
        n, C = total.shape
        posterior = posterior * grad.unsqueeze(2)
        w = posterior.sum(dim=1)  # (n, C)
        scale = (w / total).neg_().unsqueeze(1)
        grad_u = torch.zeros_like(u)
        grad_weight, grad_bias = torch.empty_like(weight), torch.empty_like(bias)
        # the exponentials of a single block are kept for the first call; they are used up here
        kept, ctx.e = ctx.e, None
        if kept is not None:
            blocks = iter([(slice(0, C), kept)])
        else:
            blocks = ((k, _shifted(logits, shift).exp_()) for k, logits in _blocks(u, weight, bias))
        for k, e in blocks:
            e.mul_(scale)
            _add_columns(e, k, labels, posterior)
            g = e.view(n, -1).to(u.dtype)
            part = slice(k.start * C, k.stop * C)
            torch.mm(g.t(), u, out=grad_weight[part])
            torch.sum(g, dim=0, out=grad_bias[part])
            grad_u.addmm_(g, weight[part])
        return w, grad_u, grad_weight, grad_bias, None


class _MixedNLL(torch.autograd.Function):
    """−(1/n) Σ_j share_j log Σ_c p_c Π_c,kj with p = softmax(z), as one node of the graph."""

    @staticmethod
    def forward(
        ctx: Any, z: Tensor, u: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, share: Tensor
    ) -> Tensor:
        # the gradients are computed here, so that no intermediate result has to be kept
        loss, *ctx.gradients = _nll_and_gradients(z, u, weight, bias, labels, share)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.gradients if float(grad) == 1 else [grad * x for x in ctx.gradients]
        return *gradients, None, None


def _nll_and_gradients(
    z: Tensor, u: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The loss of `_MixedNLL`, shape (), and its gradients for z, u, weight and bias.

    The exponentials are taken as they are where single precision holds them, which saves half of the calls;
    else it is `_LogLikelihood` and autograd.
    """
    n, C = z.shape
    if n * C * C <= BLOCK:
        e = torch.addmm(bias, u, weight.t()).exp_()
        total = e.view(n, C, C).sum(dim=1)
        p = torch.softmax(z, dim=1)
        row = (labels + torch.arange(0, n * C, C, device=z.device)).flatten()
        by_label = e.view(n * C, C)
        joint = by_label.index_select(0, row).view(-1, n, C).mul_(p / total)
        likelihood = joint.sum(dim=2)
        low, high = torch.aminmax(total)
        if min(float(low), float(likelihood.min())) > SAFE[0] and float(high) < SAFE[1]:
            loss = torch.dot(share.flatten(), likelihood.log().flatten()) / -n
            joint.mul_((share / likelihood).mul_(-1 / n).unsqueeze(2))
            w = joint.sum(dim=0)  # the gradient for log p; over the classes, it sums to −(1/n) Σ_j share_j
            e.view(n, C, C).mul_((w / total).neg_().unsqueeze(1))
            by_label.index_add_(0, row, joint.view(-1, C))
            grad_z = w.addcmul_(p, share.sum(dim=0).unsqueeze(1), value=1 / n)
            return loss, grad_z, torch.mm(e, weight), torch.mm(e.t(), u), e.sum(dim=0)
    with torch.enable_grad():
        inputs = [x.detach().requires_grad_() for x in (z, u, weight, bias)]
        log_p = F.log_softmax(inputs[0], dim=1)
        log_likelihood = _LogLikelihood.apply(log_p, *inputs[1:], labels.T)  # type: ignore[no-untyped-call]
        nll = torch.sum(log_likelihood * share.T) / -n
        grad_z, grad_u, grad_weight, grad_bias = torch.autograd.grad(nll, inputs)
    return nll.detach(), grad_z, grad_u, grad_weight, grad_bias


def _blocks(u: Tensor, weight: Tensor, bias: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """Blocks of labels k and their logits, shape (n, labels of the block, C), for all classes."""
    C = math.isqrt(len(bias))
    step = max(1, BLOCK // max(1, len(u) * C))
    for first in range(0, C, step):
        k = slice(first, min(first + step, C))
        part = slice(k.start * C, k.stop * C)
        yield k, _single(torch.addmm(bias[part], u, weight[part].t())).view(len(u), -1, C)


class _Sums(NamedTuple):
    """Σ_k exp(L_ck − shift_c), shape (n, C), with the other results of the same pass.

    `columns` are the shifted logits of the labels, shape (n, J, C); `e` the exponentials, shape (n, C, C), if
    there was a single block.
    """

    total: Tensor
    shift: Tensor | None
    columns: Tensor
    e: Tensor | None


def _sums(u: Tensor, weight: Tensor, bias: Tensor, labels: Tensor) -> _Sums:
    """The sums that normalise Π, with a shift only where exponentials need one."""
    sums = _shifted_sums(u, weight, bias, labels, None)
    return sums if _safe(sums.total) else _shifted_sums(u, weight, bias, labels, _maxima(u, weight, bias))


def _shifted_sums(u: Tensor, weight: Tensor, bias: Tensor, labels: Tensor, shift: Tensor | None) -> _Sums:
    C = math.isqrt(len(bias))
    total = torch.zeros(len(u), C, dtype=_single(bias).dtype, device=u.device)
    columns, e = total.new_empty(0), None
    for k, logits in _blocks(u, weight, bias):
        logits = _shifted(logits, shift)
        columns = _take_columns(logits, k, labels, columns)
        e = logits.exp_()
        total += e.sum(dim=1)
    return _Sums(total, shift, columns, e if e is not None and e.shape[1] == C else None)


def _maxima(u: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """max_k L_ck, shape (n, C)."""
    maxima: Tensor | None = None
    for _, logits in _blocks(u, weight, bias):
        here = logits.amax(dim=1)
        maxima = here if maxima is None else torch.maximum(maxima, here)
    assert maxima is not None
    return maxima


def _safe(total: Tensor) -> bool:
    """Whether single precision holds every row of exponentials with a margin.

    Taking the largest logit of every row first, as a softmax usually does, costs more than all
    other steps together; logits this large do not occur in a healthy training.
    """
    if not total.numel():
        return True
    low, high = torch.aminmax(total)
    return bool(low > SAFE[0]) and bool(high < SAFE[1])


def _shifted(logits: Tensor, shift: Tensor | None) -> Tensor:
    return logits if shift is None else logits.sub_(shift.unsqueeze(1))


def _no_labels(u: Tensor) -> Tensor:
    return torch.zeros(len(u), 0, dtype=torch.long, device=u.device)


def _take_columns(logits: Tensor, k: slice, labels: Tensor, columns: Tensor) -> Tensor:
    """The logits of the labels that are in the block, written into `columns`, shape (n, J, C)."""
    n, size, C = logits.shape
    if size == C:
        row = torch.arange(0, n * C, C, device=labels.device).unsqueeze(1) + labels
        return logits.view(n * C, C).index_select(0, row.flatten()).view(*labels.shape, C)
    columns = logits.new_empty(*labels.shape, C) if k.start == 0 else columns
    n_, j = torch.nonzero((labels >= k.start) & (labels < k.stop), as_tuple=True)
    columns[n_, j] = logits[n_, labels[n_, j] - k.start]
    return columns


def _add_columns(block: Tensor, k: slice, labels: Tensor, values: Tensor) -> None:
    """Add values, shape (n, J, C), at the labels that are in the block."""
    n, size, C = block.shape
    if size == C:
        row = torch.arange(0, n * C, C, device=labels.device).unsqueeze(1) + labels
        block.view(n * C, C).index_add_(0, row.flatten(), values.view(-1, C))
        return
    n_, j = torch.nonzero((labels >= k.start) & (labels < k.stop), as_tuple=True)
    block.index_put_((n_, labels[n_, j] - k.start), values[n_, j], accumulate=True)


class LowRankConfusionHead(nn.Linear):
    """Linear(d → C + 2RC): a diagonal that starts near η, and R patterns of errors."""

    def __init__(self, n_dim: int, n_classes: int, eta: float, rank: int):
        _check_eta(eta, n_classes)
        super().__init__(n_dim, n_classes * (1 + 2 * rank))
        self.n_classes, self.rank = n_classes, rank
        stay = (eta - 1 / n_classes) / (1 - 1 / n_classes)  # an error pattern gives the right label at times
        with torch.no_grad():
            self.bias[:n_classes] = math.log(stay / (1 - stay))

    def _parts(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """log σ, log(1 − σ), shape (n, C); log A, (n, C, R); log B, (n, R, C)."""
        C, R = self.n_classes, self.rank
        s, a, b = torch.split(_single(self(u)), [C, C * R, R * C], dim=1)
        return (
            F.logsigmoid(s),
            F.logsigmoid(-s),
            F.log_softmax(a.view(-1, C, R), dim=2),
            F.log_softmax(b.view(-1, R, C), dim=2),
        )

    def log_likelihood(self, u: Tensor, log_p: Tensor, labels: Tensor) -> Tensor:
        """log Σ_c p_c Π_ck of every given label k, shape (n, J), as in `ConfusionHead`."""
        log_stay, log_leave, log_A, log_B = self._parts(u)
        way = torch.logsumexp((log_p + log_leave).unsqueeze(2) + log_A, dim=1)  # (n, R)
        of_label = log_B.gather(2, labels.unsqueeze(1).expand(-1, self.rank, -1))  # (n, R, J)
        return torch.logaddexp(
            (log_p + log_stay).gather(1, labels), torch.logsumexp(way.unsqueeze(2) + of_label, dim=1)
        )

    def mixed_nll(self, u: Tensor, logits: Tensor, labels: Tensor, share: Tensor) -> Tensor:
        """−(1/n) Σ_j share_j log Σ_c p_c Π_c,kj, shape (), as in `ConfusionHead`."""
        return _mixed_nll(self, u, logits, labels, share)

    def annotator_log_proba(self, u: Tensor, log_p: Tensor) -> Tensor:
        """log Σ_c p_c Π_ck of all labels k, shape (n, C)."""
        log_stay, log_leave, log_A, log_B = self._parts(u)
        way = torch.logsumexp((log_p + log_leave).unsqueeze(2) + log_A, dim=1)
        return torch.logaddexp(log_p + log_stay, torch.logsumexp(way.unsqueeze(2) + log_B, dim=1))

    def log_diagonal(self, u: Tensor) -> Tensor:
        """log Π_cc, shape (n, C)."""
        log_stay, log_leave, log_A, log_B = self._parts(u)
        return torch.logaddexp(log_stay, log_leave + torch.logsumexp(log_A + log_B.transpose(1, 2), dim=2))

    def log_confusion(self, u: Tensor) -> Tensor:
        """log Π, shape (n, C, C), of states, shape (n, d)."""
        log_stay, log_leave, log_A, log_B = self._parts(u)
        wrong = torch.bmm(log_A.exp() * log_leave.exp().unsqueeze(2), log_B.exp())
        return (wrong + torch.diag_embed(log_stay.exp())).clamp_min(TINY).log()


def _mixed_nll(
    head: ConfusionHead | LowRankConfusionHead, u: Tensor, logits: Tensor, labels: Tensor, share: Tensor
) -> Tensor:
    log_likelihood = head.log_likelihood(u, F.log_softmax(_single(logits), dim=1), labels.T)
    return (log_likelihood * share.T).sum() / -len(u)


def make_head(n_dim: int, n_classes: int, eta: float, rank: int = 0) -> ConfusionHead | LowRankConfusionHead:
    """The head of this rank, or the dense one for rank 0."""
    if rank == 0:
        return ConfusionHead(n_dim, n_classes, eta)
    return LowRankConfusionHead(n_dim, n_classes, eta, rank)


def _single(x: Tensor) -> Tensor:
    """At least single precision, for exponentials and sums."""
    return x.float() if x.dtype.itemsize < 4 else x


def _check_eta(eta: float, n_classes: int) -> None:
    if not 1 / n_classes < eta < 1:
        raise ValueError(
            f"eta, the chance of a right label that annotators start with, must lie between 1/C = "
            f"{1 / n_classes:.3g} (C = {n_classes} classes) and 1, found {eta}."
        )
