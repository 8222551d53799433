"""Random changes of training images, a whole batch at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

#: Changes a batch of images, shape (n, channels, height, width), by the randomness of the epoch.
Augmentation = Callable[[Tensor, np.random.Generator], Tensor]


def crop_flip(x: Tensor, rng: np.random.Generator, padding: int = 4) -> Tensor:
    """Shift every image by up to `padding` pixels, zeros moving in, and mirror every other one, by chance.

    The same as a random crop of the padded image and a horizontal flip with chance one half.

    Parameters
    ----------
    x : tensor, shape (n, channels, height, width)
    rng : numpy Generator
    padding : int, default=4

    Returns
    -------
    tensor, shape (n, channels, height, width)
    """
    n, channels, height, width = x.shape
    top, left = rng.integers(2 * padding + 1, size=(2, n, 1))
    mirrored = rng.random((n, 1)) < 0.5
    row = top + np.arange(height)  # (n, height), in the padded image
    column = left + np.where(mirrored, np.arange(width)[::-1], np.arange(width))  # (n, width)
    pixel = row[:, :, None] * (width + 2 * padding) + column[:, None, :]  # (n, height, width)
    index = torch.from_numpy(pixel.reshape(n, 1, -1)).to(x.device).expand(-1, channels, -1)
    padded = F.pad(x, (padding,) * 4).flatten(2)
    return padded.gather(2, index).view(x.shape)


_AUGMENTATIONS: dict[str, Augmentation] = {"crop-flip": crop_flip}


def get_augmentation(name: str | None, shape: Sequence[int]) -> Augmentation | None:
    """The augmentation by name, for instances of the given shape; None for None."""
    if name is None:
        return None
    if name not in _AUGMENTATIONS:
        known = ", ".join(map(repr, _AUGMENTATIONS))
        raise ValueError(f"augment must be None or one of {known}, found {name!r}.")
    if len(shape) != 3:
        raise ValueError(
            f"augment={name!r} takes images of shape (channels, height, width), found instances of shape "
            f"{tuple(shape)}."
        )
    return _AUGMENTATIONS[name]
