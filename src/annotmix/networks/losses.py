"""Losses as pure functions: tensors in, tensor out. The hot path lives here."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

#: Share of a squared length that single precision cannot distinguish from 0.
ROUNDING = 1e-13


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


def mixed_nll(log_likelihood: Tensor, lam: Tensor | None = None, weight: Tensor | None = None) -> Tensor:
    """Mean negative log-likelihood of labels, or of mixes of two with the shares λ and 1 − λ.

    Parameters
    ----------
    log_likelihood : tensor, shape (n, 1), or (n, 2) with λ
    lam : tensor, shape (n,), optional
    weight : tensor, shape of `log_likelihood`, optional
        Weight of each label; 1 by default.

    Returns
    -------
    tensor, shape ()
    """
    if lam is None:
        return -label_mean(log_likelihood, weight)
    lam = lam.to(log_likelihood.dtype)
    share = torch.stack([lam, 1 - lam], dim=1)
    if weight is not None:
        share = weight.to(share.dtype) * share
    return torch.dot(log_likelihood.flatten(), share.flatten()) / -len(lam)


def label_mean(values: Tensor, weight: Tensor | None) -> Tensor:
    """(1/n) Σ_i w_i v_i: the mean over labels, where a label of weight 2 counts as two.

    Parameters
    ----------
    values : tensor, shape (n,)
    weight : tensor, shape (n,), optional
        1 by default.

    Returns
    -------
    tensor, shape ()
    """
    return values.mean() if weight is None else (weight.to(values.dtype) * values).mean()


def label_log_likelihood(log_p: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
    """log Σ_c p_c Π_ck of every given label k, with Π = row-softmax(logits).

    Parameters
    ----------
    log_p : tensor, shape (n, C)
    logits : tensor, shape (n, C, C)
    labels : tensor of int, shape (n, J)
        J labels per entry; only their columns of log Π are ever taken.

    Returns
    -------
    tensor, shape (n, J)
    """
    log_confusion = F.log_softmax(logits, dim=-1, dtype=log_p.dtype)
    columns = labels.unsqueeze(1).expand(-1, log_p.shape[1], -1)  # (n, C, J)
    return torch.logsumexp(log_confusion.gather(2, columns) + log_p.unsqueeze(-1), dim=1)


def adapt(p: Tensor, W: Tensor) -> Tensor:
    """p W, with a linear layer of its own for every entry.

    Parameters
    ----------
    p : tensor, shape (n, C)
    W : tensor, shape (n, C, C)

    Returns
    -------
    tensor, shape (n, C)
    """
    return torch.bmm(p.unsqueeze(1), W).squeeze(1)


def volume_penalty(V: Tensor, limit: float = 100.0) -> Tensor:
    """−log det(VᵀV), or 0 where that is not finite or above `limit`.

    Parameters
    ----------
    V : tensor, shape (n, C)

    Returns
    -------
    tensor, shape ()
    """
    none = torch.zeros((), device=V.device)
    if V.shape[1] > V.shape[0]:
        return none
    V = V.double()  # single precision makes almost singular matrices look well
    gram = V.T @ V
    sign, logdet = torch.linalg.slogdet(gram)
    usable = sign > 0 and torch.isfinite(logdet) and -logdet <= limit and not _is_singular(gram.detach())
    return -logdet.float() if usable else none


def _is_singular(gram: Tensor) -> bool:
    """Whether columns of V depend on each other to within rounding, given VᵀV.

    Rounding gives even a singular matrix a small determinant, so the determinant alone is not enough. The
    columns are compared at equal length: a small one is not a dependent one.
    """
    length = gram.diagonal().sqrt()
    return bool(torch.linalg.eigvalsh(gram / torch.outer(length, length))[0] <= ROUNDING)
