"""Mixing of entries with partners.

Three parts that combine freely: a *pairing* gives every entry a partner, *coefficients* say how
much of each goes in, and `mix` interpolates (or `paste`, for images, cuts and pastes). A triple (item,
annotator, label) is mixed by applying the same pairing and coefficients to all three parts.
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
    """A random permutation within groups, such as the triples of one item or the items of one fold.

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
    size = 1 if per_batch else n
    if alpha == 1:
        drawn = rng.random(size, dtype=np.float32)  # the same distribution, drawn faster
    else:
        drawn = rng.beta(alpha, alpha, size=size).astype(np.float32)
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
    return torch.lerp(values.index_select(0, partner), values, weight.to(values.dtype))


def pairs(values: Tensor, partner: Tensor) -> Tensor:
    """Every entry beside its partner, shape (2, n), of values, shape (n,)."""
    return torch.stack([values, values.index_select(0, partner)])


def paste(
    images: Tensor, partner: Tensor, lam: Tensor, rng: np.random.Generator, *, per_batch: bool = False
) -> tuple[Tensor, Tensor]:
    """A rectangle of the partner's image in place of one's own (CutMix, Yun et al., ICCV 2019).

    Its sides are √(1 − λ) of the image's and its centre is anywhere, so an edge of the image may clip it.

    Parameters
    ----------
    images : tensor, shape (n, channels, height, width)
    partner : tensor of int, shape (n,)
    lam : tensor, shape (n,)
    per_batch : bool, default=False
        One centre for all; with one λ for all, also one rectangle.

    Returns
    -------
    images : tensor, shape (n, channels, height, width)
    lam : tensor, shape (n,)
        The share of an image that is its own, counted in pixels.
    """
    if images.dim() != 4:
        raise ValueError(
            "A rectangle can be cut out of images of shape (channels, height, width), found items of "
            f'shape {tuple(images.shape[1:])}. Choose mix="input" or mix="manifold" for them.'
        )
    n = len(images)
    centre = torch.from_numpy(rng.random((1 if per_batch else n, 2), dtype=np.float32)).to(lam.device)
    half = (1 - lam).sqrt().unsqueeze(1) / 2
    size = torch.tensor(images.shape[2:], device=lam.device)
    first, last = ((edge.clamp(0, 1) * size).round() for edge in (centre - half, centre + half))
    inside = [
        (first[:, i, None] <= (at := torch.arange(length, device=lam.device))) & (at < last[:, i, None])
        for i, length in enumerate(images.shape[2:])
    ]
    pasted = inside[0].unsqueeze(2) & inside[1].unsqueeze(1)  # (n, height, width)
    own = 1 - pasted.to(lam.dtype).mean(dim=(1, 2))
    return torch.where(pasted.unsqueeze(1), images[partner], images), own
