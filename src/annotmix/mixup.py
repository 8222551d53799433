"""Who is mixed with whom, by how much, and how.

Three small things that combine freely: a *pairing* gives every entry a partner, *coefficients* say how
much of each goes in, and `mix` interpolates. A triple (instance, annotator, label) is mixed by applying
the same pairing and coefficients to all three parts.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def pair_across(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A random permutation: entry i is mixed with entry partner[i]; shape (n,)."""
    return rng.permutation(n)


def pair_within(group: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A random permutation that stays within groups: of the triples of one item, of the items of one fold.

    Parameters
    ----------
    group : array of int, shape (n,)

    Returns
    -------
    array, shape (n,)
    """
    partner = np.empty(len(group), dtype=np.int64)
    partner[np.argsort(group, kind="stable")] = np.lexsort((rng.random(len(group)), group))
    return partner


def coefficients(n: int, alpha: float, rng: np.random.Generator, *, per_batch: bool = False) -> Tensor:
    """λ ~ Beta(α, α), one per entry or one for all; shape (n,)."""
    drawn = rng.beta(alpha, alpha, size=1 if per_batch else n).astype(np.float32)
    return torch.from_numpy(drawn).expand(n)


def mix(values: Tensor, partner: Tensor, lam: Tensor) -> Tensor:
    """λ·values + (1 − λ)·values[partner].

    Parameters
    ----------
    values : tensor, shape (n, ...)
    partner : tensor of int, shape (n,)
    lam : tensor, shape (n,)

    Returns
    -------
    tensor, shape (n, ...)
    """
    weight = lam.view(-1, *[1] * (values.dim() - 1))
    return torch.lerp(values[partner], values, weight.to(values.dtype))
