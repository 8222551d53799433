"""Frozen pretrained networks that turn texts and images into features.

Names are imported when they are first used, so that commands which run no encoder need no torch.
"""

from typing import TYPE_CHECKING

from annotmix._common.lazy import lazy

if TYPE_CHECKING:
    from annotmix.encoders.encoder import Encoder
    from annotmix.encoders.image import ImageEncoder
    from annotmix.encoders.making import encoder_from_dict, make_encoder
    from annotmix.encoders.saved import SavedEncoder
    from annotmix.encoders.text import TextEncoder

__all__ = ["Encoder", "ImageEncoder", "SavedEncoder", "TextEncoder", "encoder_from_dict", "make_encoder"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Encoder": "encoder",
        "ImageEncoder": "image",
        "SavedEncoder": "saved",
        "TextEncoder": "text",
        "encoder_from_dict": "making",
        "make_encoder": "making",
    },
)
