"""Encoders as the files of a model describe them, which are read without torch."""

from __future__ import annotations

from typing import Literal

from annotmix._common.schema import Count, Positive, Strict


class TextParams(Strict):
    """The settings of a saved text encoder."""

    model: str
    pooling: Literal["mean", "cls"]
    max_length: Positive
    batch_size: Positive


class SavedText(Strict, tag_field="kind", tag="text"):
    """A text encoder as JSON."""

    params: TextParams
    fingerprint: str


class ImageParams(Strict):
    """The settings of a saved image encoder."""

    model: str
    pooling: Literal["cls", "mean"]
    views: Count
    seed: Count
    batch_size: Positive


class SavedImage(Strict, tag_field="kind", tag="image"):
    """An image encoder as JSON."""

    params: ImageParams
    fingerprint: str


#: An encoder as the files of a model describe it. They never say where features are kept.
SavedEncoder = SavedText | SavedImage
