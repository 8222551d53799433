"""The networks: backbones, the classification model, the annotator model's parts."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that also takes a batch of one row.

    One row has no spread, so it is normalised by the running statistics, which stay as they are.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalise `input`, shape (n, d)."""
        if self.training and len(input) == 1:
            return F.batch_norm(
                input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(input)


class Dropout(nn.Dropout):
    """Dropout that draws 16 bits an entry instead of a float: several times faster on a CPU.

    The chance is p to the nearest 1/65536. On other devices it is PyTorch's own.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Zero entries with chance p and scale the rest; shape as `input`."""
        cut = round(self.p * 65536)
        if not self.training or input.device.type != "cpu" or not 0 < cut < 65536:
            return super().forward(input)
        bits = torch.empty(-(-input.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        keep = (bits.view(torch.int16)[: input.numel()] >= cut - 32768).view(input.shape)
        return input * keep.to(input.dtype).mul_(65536 / (65536 - cut))


class AllRows(nn.Identity):
    """All rows of a batch, for what goes over them: its input, or, of several processes, those of all."""


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


class _Block(nn.Module):
    """Two 3×3 convolutions and a way around them."""

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
    """The backbone f and the width H of its features for instances of the given shape.

    Parameters
    ----------
    backbone : {"mlp", "resnet18"} or nn.Module
        A module maps (n, *shape) to (n, H). It is copied, so one module can start many runs.
    """
    if isinstance(backbone, nn.Module):
        module = copy.deepcopy(backbone)
        module.eval()
        with torch.no_grad():
            h = module(torch.zeros(2, *shape))
        if not isinstance(h, Tensor) or h.dim() != 2 or len(h) != 2:
            found = f"shape {tuple(h.shape)}" if isinstance(h, Tensor) else type(h).__name__
            raise ValueError(
                f"backbone must map a batch of shape (n, {', '.join(map(str, shape))}) to features of "
                f"shape (n, H); for n=2 it gave {found}."
            )
        return module, h.shape[1]
    if backbone == "mlp":
        if len(shape) != 1:
            raise ValueError(
                f'backbone="mlp" takes a feature vector an instance, found instances of shape '
                f'{tuple(shape)}. Flatten them, or choose backbone="resnet18" or a module of your own.'
            )
        if not hidden or any(width < 1 for width in hidden):
            raise ValueError(f"hidden must hold at least one positive width, found {tuple(hidden)}.")
        return MLP(shape[0], hidden, dropout), hidden[-1]
    if backbone == "resnet18":
        if len(shape) != 3:
            raise ValueError(
                'backbone="resnet18" takes images of shape (channels, height, width), found instances of '
                f"shape {tuple(shape)}."
            )
        return ResNet18(shape[0]), 512
    raise ValueError(
        f'backbone must be "mlp", "resnet18" or a torch.nn.Module that returns features, found {backbone!r}.'
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
        """The penultimate features h, shape (n, H), of instances x, shape (n, ...)."""
        return self.backbone(x)  # type: ignore[no-any-return]

    def log_proba(self, h: Tensor) -> Tensor:
        """log p, shape (n, C), of features h, shape (n, H)."""
        return F.log_softmax(self.head(h).float(), dim=-1)


class AnnotatorEmbedding(nn.Module):
    """Linear(M → d) applied to one-hot annotators, as a look-up of rows.

    The one-hot vectors never exist: annotator m is row m of the table, and a mix of two annotators is a
    mix of two rows. Initialised like PyTorch's Linear(M → d).
    """

    def __init__(self, n_annotators: int, n_dim: int):
        super().__init__()
        linear = nn.Linear(n_annotators, n_dim)
        self.weight = nn.Parameter(linear.weight.detach().T.contiguous())
        self.bias = linear.bias

    def forward(self, annotator: Tensor) -> Tensor:
        """Embeddings, shape (n, d), of annotator indices, shape (n,)."""
        return F.embedding(annotator, self.weight) + self.bias


class ConfusionHead(nn.Linear):
    """Linear(d → C²) whose confusion matrices start near η on the diagonal.

    Returns unnormalised logits; row-softmax makes them a confusion matrix [true class, given label].
    """

    def __init__(self, n_dim: int, n_classes: int, eta: float):
        super().__init__(n_dim, n_classes**2)
        self.n_classes = n_classes
        if not 1 / n_classes < eta < 1:
            raise ValueError(
                f"eta, the chance of a right label that annotators start with, must lie between 1/C = "
                f"{1 / n_classes:.3g} (C = {n_classes} classes) and 1, found {eta}."
            )
        with torch.no_grad():
            diagonal = torch.full((n_classes,), eta * (n_classes - 1) / (1 - eta)).log()
            self.bias.copy_(torch.diag(diagonal).flatten())

    def forward(self, input: Tensor) -> Tensor:
        """Logits, shape (n, C, C), of inputs, shape (n, d)."""
        return super().forward(input).view(-1, self.n_classes, self.n_classes)


class AnnotatorNetwork(nn.Module):
    """annot-mix's annotator model: confusion logits from features and an annotator's embedding."""

    def __init__(
        self,
        n_hidden: int,
        n_annotators: int,
        n_classes: int,
        eta: float,
        n_dim: int = 128,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.embed_instance = nn.Linear(n_hidden, n_dim)
        self.embed_annotator = AnnotatorEmbedding(n_annotators, n_dim)
        self.trunk = nn.Sequential(
            Dropout(dropout), nn.Linear(2 * n_dim, n_dim), BatchNorm(n_dim), nn.ReLU(inplace=True)
        )
        self.head = ConfusionHead(n_dim, n_classes, eta)

    def forward(self, h: Tensor, e_a: Tensor) -> Tensor:
        """Confusion logits, shape (n, C, C).

        Parameters
        ----------
        h : tensor, shape (n, H)
            Features of the instances; no gradient flows back into them.
        e_a : tensor, shape (n, d)
            Embeddings of the annotators.
        """
        e_x = self.embed_instance(h.detach())
        logits: Tensor = self.head(self.trunk(torch.cat([e_x, e_a], dim=1)))
        return logits
