"""Reading images from files or arrays, their hashes, and random views of them."""

from __future__ import annotations

import hashlib
import io
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from annotmix.encoders.pretrained import require

#: A view shows this share of the area; its shape is the image's, stretched by a factor in this range.
_AREA, _STRETCH = (0.4, 1.0), (3 / 4, 4 / 3)

T = TypeVar("T")


class UnreadableImageError(ValueError):
    """Images that cannot be read, by name."""


def read_all(sources: Iterable[Any], read: Callable[[Any], T]) -> list[T]:
    """`read` of every source; one error that names all sources that could not be read."""
    results, wrong = [], []
    broken = (OSError, ValueError, SyntaxError, _pillow().DecompressionBombError)  # what Pillow raises
    for n, source in enumerate(sources):
        try:
            results.append(read(source))
        except broken as error:
            name = repr(os.fspath(source)) if isinstance(source, str | os.PathLike) else f"image {n}"
            wrong.append(f"{name}: {getattr(error, 'strerror', None) or error}")
    if wrong:
        more = f"\n  … and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise UnreadableImageError(
            f"{len(wrong)} of {len(results) + len(wrong)} images cannot be read; remove or replace them:\n  "
            + "\n  ".join(wrong[:5])
            + more
        )
    return results


def content(source: Any) -> bytes:
    """The hash of an image's file or pixels. A file that is no image is an error."""
    if isinstance(source, str | os.PathLike):
        data = Path(source).read_bytes()
        try:
            _pillow().open(io.BytesIO(data))
        except _pillow().UnidentifiedImageError:
            raise ValueError("not an image, or of an unknown format") from None
        return hashlib.sha256(data).digest()
    pixels = _pixels(source)
    return hashlib.sha256(f"{pixels.shape}\0".encode() + pixels.tobytes()).digest()


def read(source: Any) -> Any:
    """An image as a PIL image in RGB, upright."""
    pillow = _pillow()
    if not isinstance(source, str | os.PathLike):
        return pillow.fromarray(_pixels(source)).convert("RGB")
    with pillow.open(source) as image:
        return require("PIL.ImageOps", "image").exif_transpose(image).convert("RGB")


def augmented(image: Any, key: bytes) -> Any:
    """A random crop of a PIL image, mirrored or not; the same for the same key."""
    rng = np.random.default_rng(list(key))
    area, stretch = rng.uniform(*_AREA), math.exp(rng.uniform(*np.log(_STRETCH)))
    width = max(1, round(image.width * min(1.0, math.sqrt(area * stretch))))
    height = max(1, round(image.height * min(1.0, math.sqrt(area / stretch))))
    left, top = (int(rng.integers(margin + 1)) for margin in (image.width - width, image.height - height))
    crop = image.crop((left, top, left + width, top + height))
    return crop.transpose(_pillow().Transpose.FLIP_LEFT_RIGHT) if rng.random() < 0.5 else crop


def _pixels(image: Any) -> NDArray[np.uint8]:
    """Pixels as Pillow takes them, shape (height, width) or (height, width, channels)."""
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise TypeError(
            "The image encoder takes paths or uint8 arrays of shape (height, width), (height, width, 3) or "
            f"(3, height, width), found {type(image).__name__} with dtype {pixels.dtype} and shape "
            f"{pixels.shape}."
        )
    if pixels.ndim == 3 and pixels.shape[-1] not in (1, 3, 4):
        pixels = np.moveaxis(pixels, 0, -1)
    return np.ascontiguousarray(pixels[..., 0] if pixels.shape[-1] == 1 and pixels.ndim == 3 else pixels)


def _pillow() -> Any:
    return require("PIL.Image", "image")
