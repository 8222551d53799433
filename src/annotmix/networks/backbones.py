"""Backbones, and the classification model on top of one."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.networks.layers import BatchNorm, Dropout


class MLP(nn.Sequential):
    """Linear → BatchNorm → ReLU → Dropout, once for every entry of `hidden`.

    Maps (n, n_features) to (n, hidden[-1]).
    """

    def __init__(self, n_features: int, hidden: Sequence[int] = (256, 128), dropout: float = 0.0):
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.Linear(n_features, width), BatchNorm(width), nn.ReLU(inplace=True)]
            if dropout > 0:
                layers.append(Dropout(dropout))
            n_features = width
        super().__init__(*layers)


class CNN(nn.Sequential):
    """3×3 convolution → BatchNorm → ReLU → max-pooling, once for every entry of `hidden`; for small images.

    Maps (n, channels, height, width) to (n, hidden[-1]), the mean over the remaining positions.
    """

    def __init__(self, n_channels: int, hidden: Sequence[int]):
        layers: list[nn.Module] = []
        for width in hidden:
            layers += [nn.Conv2d(n_channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)]
            layers += [nn.ReLU(inplace=True), nn.MaxPool2d(2, ceil_mode=True)]
            n_channels = width
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class _Block(nn.Module):
    """Two 3×3 convolutions and a shortcut around them."""

    def __init__(self, n_in: int, n_out: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.around: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.around = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.bn1(self.conv1(x)), inplace=True)
        h = self.bn2(self.conv2(h)) + self.around(x)
        return F.relu(h, inplace=True)


class ResNet18(nn.Sequential):
    """ResNet-18 for small images (He et al. 2016): a 3×3 stem with stride 1 and no max-pooling.

    Maps (n, channels, height, width) to (n, 512).
    """

    def __init__(self, n_channels: int = 3):
        layers: list[nn.Module] = [
            nn.Conv2d(n_channels, 64, 3, 1, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
        ]
        width = 64
        for n_out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [_Block(width, n_out, stride), _Block(n_out, n_out, 1)]
            width = n_out
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def make_backbone(
    backbone: str | nn.Module, shape: Sequence[int], hidden: Sequence[int], dropout: float
) -> tuple[nn.Module, int]:
    """The backbone f and the width H of its features for items of the given shape.

    Parameters
    ----------
    backbone : {"mlp", "cnn", "resnet18"} or nn.Module
        A module maps (n, *shape) to (n, H). It is copied, so one module can start many runs.
    """
    if isinstance(backbone, nn.Module):
        module = copy.deepcopy(backbone)
        module.eval()
        with torch.no_grad():
            h = module(torch.zeros(2, *shape))
        if not isinstance(h, Tensor) or h.dim() != 2 or len(h) != 2:
            returned = f"shape {tuple(h.shape)}" if isinstance(h, Tensor) else type(h).__name__
            raise ValueError(
                f"backbone must map a batch of shape (n, {', '.join(map(str, shape))}) to features of "
                f"shape (n, H); for n=2 it gave {returned}."
            )
        return module, h.shape[1]
    if backbone == "mlp":
        if len(shape) != 1:
            raise ValueError(
                f'backbone="mlp" takes one feature vector per item, found items of shape '
                f'{tuple(shape)}. Flatten them, or choose backbone="resnet18" or a module of your own.'
            )
    elif backbone in ("cnn", "resnet18"):
        if len(shape) != 3:
            raise ValueError(
                f'backbone="{backbone}" takes images of shape (channels, height, width), found items of '
                f"shape {tuple(shape)}."
            )
        if backbone == "resnet18":
            return ResNet18(shape[0]), 512
    else:
        raise ValueError(
            'backbone must be "mlp", "cnn", "resnet18" or a torch.nn.Module that returns features, found '
            f"{backbone!r}."
        )
    if not hidden or any(width < 1 for width in hidden):
        raise ValueError(f"hidden must hold at least one positive width, found {tuple(hidden)}.")
    return (MLP(shape[0], hidden, dropout) if backbone == "mlp" else CNN(shape[0], hidden)), hidden[-1]


def depths(backbone: nn.Module) -> list[int]:
    """The depths at which the state of a backbone can be mixed; 0 is the input, the last one is h.

    After every block of "mlp" and "cnn", after the stem and the stages of
    "resnet18", after every child of another `nn.Sequential`. Pooling at the end belongs to the layer before
    it: it is linear, so that mixing before it or after it is the same.
    """
    if isinstance(backbone, ResNet18):
        return [0, 3, 5, 7, 9, len(backbone)]
    if isinstance(backbone, MLP | CNN):
        first = [i for i, layer in enumerate(backbone) if isinstance(layer, nn.Linear | nn.Conv2d)]
        return [*first, len(backbone)]
    if isinstance(backbone, nn.Sequential) and type(backbone).forward is nn.Sequential.forward:
        return list(range(len(backbone) + 1))
    raise ValueError(
        'mix="manifold" mixes between the layers of a backbone: of "mlp", "cnn", "resnet18" or a '
        f"torch.nn.Sequential of your own, found {type(backbone).__name__}, whose layers are not known. "
        'Write it as a torch.nn.Sequential, or choose mix="input".'
    )


class Classifier(nn.Module):
    """The classification model: features h = f(x), class probabilities p = softmax(W h + b)."""

    def __init__(self, backbone: nn.Module, n_hidden: int, n_classes: int):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(n_hidden, n_classes)

    @property
    def n_hidden(self) -> int:
        """Width H of the features."""
        return self.head.in_features

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return self.head.out_features

    def features(self, x: Tensor) -> Tensor:
        """The penultimate features h, shape (n, H), of items x, shape (n, ...)."""
        return self.backbone(x)  # type: ignore[no-any-return]

    def log_proba(self, h: Tensor) -> Tensor:
        """log p, shape (n, C), of features h, shape (n, H)."""
        return F.log_softmax(self.logits(h), dim=-1)

    def logits(self, h: Tensor) -> Tensor:
        """W h + b, shape (n, C), of features h, shape (n, H), in single precision at least."""
        z: Tensor = self.head(h)
        return z.float() if z.dtype.itemsize < 4 else z
