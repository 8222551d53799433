"""Losses as pure functions: tensors in, tensor out. The hot path lives here."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F


def annotator_log_proba(log_p: Tensor, log_confusion: Tensor) -> Tensor:
    """log Σ_c p_c Π_ck for every label k.

    Parameters
    ----------
    log_p : tensor, shape (n, C)
    log_confusion : tensor, shape (n, C, C)

    Returns
    -------
    tensor, shape (n, C)
    """
    return torch.logsumexp(log_p.unsqueeze(-1) + log_confusion, dim=-2)


def marginal_nll(
    log_p: Tensor,
    logits: Tensor,
    label: Tensor,
    partner_label: Tensor | None = None,
    lam: Tensor | None = None,
) -> Tensor:
    """Mean negative log-likelihood of (mixed) labels with the true class summed out.

    −(1/n) Σ_i [λ_i log Σ_c p_ic Π_ic,k_i + (1 − λ_i) log Σ_c p_ic Π_ic,l_i],  Π = row-softmax(logits).

    Parameters
    ----------
    log_p : tensor, shape (n, C)
        Class log-probabilities.
    logits : tensor, shape (n, C, C)
        Unnormalised confusion matrices, [true class, given label].
    label, partner_label : tensor of int, shape (n,)
        The labels k and l; without a partner the label stands alone.
    lam : tensor, shape (n,)
        The weight λ of `label`.

    Returns
    -------
    tensor, shape ()
    """
    if partner_label is None or lam is None:
        labels, weights = label.unsqueeze(0), torch.ones_like(log_p[:, 0]).unsqueeze(0)
    else:
        labels, weights = torch.stack([label, partner_label]), torch.stack([lam, 1 - lam])
    loss: Tensor = _MarginalNLL.apply(log_p, logits, labels, weights.to(log_p.dtype))
    return loss


class _MarginalNLL(torch.autograd.Function):
    """`marginal_nll` with its gradient written out.

    With r_jc = p_c Π_c,kj / Σ_c' p_c' Π_c',kj, the posterior of class c given the j-th label, and
    w_c = Σ_j λ_j r_jc, the gradients of −Σ_j λ_j log Σ_c p_c Π_c,kj are −w_c for log p_c and
    w_c Π_ck − Σ_j λ_j r_jc 1[k = k_j] for the logits. So only the labels' own columns of log Π are ever
    taken, and the backward pass is one scaled copy of Π; autograd would scatter into zeros and
    go over all C² entries several times.
    """

    @staticmethod
    def forward(ctx: Any, log_p: Tensor, logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        log_confusion = F.log_softmax(logits, dim=-1)
        columns = labels.T.unsqueeze(1).expand(-1, log_p.shape[1], -1)  # (n, C, J)
        joint = log_confusion.gather(2, columns) + log_p.unsqueeze(-1)
        log_likelihood = torch.logsumexp(joint, dim=1)  # (n, J)
        posterior = (joint - log_likelihood.unsqueeze(1)).exp_().mul_(weights.T.unsqueeze(1))
        ctx.save_for_backward(log_confusion, columns, posterior)
        return -(log_likelihood * weights.T).sum() / max(len(log_p), 1)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        log_confusion, columns, posterior = ctx.saved_tensors
        posterior = posterior * (grad / max(len(posterior), 1))
        w = posterior.sum(dim=-1)  # (n, C)
        grad_logits = log_confusion.exp().mul_(w.unsqueeze(-1)).scatter_add_(2, columns, -posterior)
        return -w, grad_logits, None, None
