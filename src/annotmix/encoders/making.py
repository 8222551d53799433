"""Encoders by their names, or from the files of a model."""

from __future__ import annotations

from typing import Any

import msgspec

from annotmix._common.schema import decode
from annotmix._common.words import did_you_mean
from annotmix.encoders.encoder import Encoder
from annotmix.encoders.image import ImageEncoder
from annotmix.encoders.pretrained import OFFLINE
from annotmix.encoders.saved import SavedEncoder, SavedImage, SavedText
from annotmix.encoders.text import TextEncoder

_KINDS: dict[str, type[Encoder]] = {"text": TextEncoder, "image": ImageEncoder}


def make_encoder(encoder: str | Encoder, **settings: Any) -> Encoder:
    """An encoder by its name, such as "text:minilm", "image:/folder", or "text" for the default model.

    Parameters
    ----------
    encoder : str or Encoder
        An encoder is returned as it is.
    **settings
        Further settings of an encoder that is given by its name.
    """
    if isinstance(encoder, Encoder):
        return encoder
    kind, _, model = encoder.partition(":") if isinstance(encoder, str) else ("", "", "")
    if kind not in _KINDS:
        raise ValueError(
            f'encoder must be an encoder or a name such as "text:minilm" or "image:efficientnet-lite0", '
            f"found {encoder!r}.{did_you_mean(encoder, (*OFFLINE, *_KINDS))}"
        )
    return _KINDS[kind](**({"model": model} if model else {}), **settings)


def encoder_from_dict(saved: dict[str, Any] | SavedEncoder, **settings: Any) -> Encoder:
    """The encoder that `to_dict` described; its weights are read when they are first needed."""
    facts = saved if isinstance(saved, SavedText | SavedImage) else decode(saved, SavedEncoder)
    kind = TextEncoder if isinstance(facts, SavedText) else ImageEncoder
    encoder: Encoder = kind(**msgspec.structs.asdict(facts.params), **settings)
    encoder._expected = facts.fingerprint
    return encoder
