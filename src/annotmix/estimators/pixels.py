"""annot-mix for every pixel: a fully convolutional backbone, and masks instead of labels.

A pixel is an item. Its features h come from a network that sees the whole image; classes, confusion matrices
and p_perf follow from them as they do for any item. A triple is (image, annotator, mask): two of them are
mixed as annot-mix mixes triples, with one λ for the image, the annotator and every pixel of the mask:

    x̃ = λ x_i + (1−λ) x_î,   ã = λ a_i + (1−λ) a_î,   z̃_v = λ z_iv + (1−λ) z_îv      for every pixel v
    loss = −(1/V) Σ_v [Σ_k z̃_vk log Σ_c p_c(h_v) Π_ck(h_v, ã) + (κ/C) Σ_c Σ_k Π⁰_ck log Π_ck(h_v, ã)]

with h = f(x̃), over V pixels of the batch, all of them or a sample. A pixel that was not marked is left out.

The second sum, of weight κ = `prior`, is not in the paper: a Dirichlet prior around Π⁰, the matrix that
annotators start with, η on its diagonal. Most pixels are plain background, and an annotator model without a
prior learns from them that nobody ever marks background. Then any marked pixel must be the object, and all
other annotators miss it. With the prior this is no better than the opposite; annotators who agree decide.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.approaches.annot_mix import AnnotMix
from annotmix.approaches.base import Batch
from annotmix.networks import Classifier, mixup
from annotmix.networks.losses import label_log_likelihood


class UNet(nn.Module):
    """A small U-Net (Ronneberger et al. 2015): halve the image for every further width, and come back.

    Maps (n, channels, height, width) to (n, widths[0], height, width), for any height and width.
    """

    def __init__(self, n_channels: int, widths: Sequence[int] = (16, 32, 64)):
        super().__init__()
        self.down = nn.ModuleList(
            _convolutions(n_in, n_out) for n_in, n_out in zip((n_channels, *widths), widths, strict=False)
        )
        self.up = nn.ModuleList(
            _convolutions(low + high, high) for high, low in zip(widths[-2::-1], widths[:0:-1], strict=True)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Features of every pixel."""
        levels: list[Tensor] = []
        for block in self.down:
            levels.append(block(F.max_pool2d(levels[-1], 2, ceil_mode=True) if levels else x))
        h = levels.pop()
        for block in self.up:
            high = levels.pop()
            h = block(torch.cat([F.interpolate(h, size=high.shape[2:], mode="nearest"), high], dim=1))
        return h


def _convolutions(n_in: int, n_out: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in (n_in, n_out):
        layers += [
            nn.Conv2d(width, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(inplace=True),
        ]
    return nn.Sequential(*layers)


def make_pixel_backbone(backbone: str | nn.Module, shape: Sequence[int]) -> tuple[nn.Module, int]:
    """The backbone f and the width d of its features for images of the given shape.

    Parameters
    ----------
    backbone : "unet-small" or nn.Module
        A module maps (n, channels, height, width) to (n, d, height, width). It is copied.
    shape : (channels, height, width)
    """
    if isinstance(backbone, nn.Module):
        module = copy.deepcopy(backbone).eval()
        with torch.no_grad():
            h = module(torch.zeros(2, *shape))
        if not isinstance(h, Tensor) or h.dim() != 4 or h.shape[0] != 2 or h.shape[2:] != tuple(shape[1:]):
            returned = f"shape {tuple(h.shape)}" if isinstance(h, Tensor) else type(h).__name__
            raise ValueError(
                f"backbone must map images of shape (n, {', '.join(map(str, shape))}) to features of every "
                f"pixel, shape (n, d, {shape[1]}, {shape[2]}); for n=2 it gave {returned}."
            )
        return module, h.shape[1]
    if backbone == "unet-small":
        return UNet(shape[0]), 16
    raise ValueError(
        'backbone must be "unet-small" or a torch.nn.Module that returns features of every pixel, found '
        f"{backbone!r}."
    )


class PixelClassifier(Classifier):
    """The classification model for pixels: a pixel is an item."""

    def features(self, x: Tensor) -> Tensor:
        """Features h, shape (n · height · width, d), of images x, shape (n, channels, height, width)."""
        return super().features(x).movedim(1, -1).flatten(0, -2)


class AnnotMixPixels(AnnotMix):
    """annot-mix whose labels are masks: `batch.label` points into them.

    Parameters
    ----------
    alpha, eta
        As for annot-mix.
    prior : float, default=1.0
        How strongly confusion matrices are held near their start, in labels per pixel; 0 is plain annot-mix.
    pixels : int, optional
        Pixels in the loss of a step, drawn anew from the batch's masks; None takes all.
    """

    name = "annot-mix-pixels"
    masks: Tensor
    start: Tensor

    def __init__(
        self,
        classifier: Classifier,
        n_annotators: int,
        *,
        alpha: float = 1.0,
        eta: float = 0.9,
        prior: float = 1.0,
        pixels: int | None = None,
    ):
        super().__init__(classifier, n_annotators, alpha=alpha, eta=eta, confusion_rank=0)
        if not prior >= 0:
            raise ValueError(f"prior must be 0 (none) or positive, found {prior}.")
        self.prior, self.pixels = prior, pixels
        C = classifier.n_classes
        start = torch.full((C, C), (1 - eta) / (C - 1)).fill_diagonal_(eta)
        self.register_buffer("start", start, persistent=False)
        self.finish()

    def see(self, masks: Tensor) -> None:
        """Take the masks to learn from, shape (n_masks, height, width), -1 where nothing was marked."""
        self.register_buffer("masks", masks, persistent=False)

    def finish(self) -> None:
        """Drop the masks."""
        self.see(torch.zeros(0, 0, 0, dtype=torch.int8))

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """Mean negative log-likelihood of the pixels of the mixed triples."""
        x, e_a = batch.x[batch.item], self.annotator_model.embed_annotator(batch.annotator)
        labels = self.masks[batch.label].flatten(1).unsqueeze(-1)  # (P, height · width, 1)
        weight = torch.ones(len(x), 1, device=x.device)
        if self.alpha > 0:
            partner, lam = self.draw(batch.item, rng)
            x, e_a = mixup.mix(x, partner, lam), mixup.mix(e_a, partner, lam)
            labels = torch.cat([labels, labels[partner]], dim=-1)
            weight = torch.stack([lam, 1 - lam], dim=-1)
        pixel = self._some_pixels((labels >= 0).any(dim=-1).flatten(), rng)
        triple = pixel // labels.shape[1]
        labels = labels.flatten(0, 1)[pixel].long()
        h = self.classifier.features(x)[pixel]
        said = self.said(h, e_a[triple], labels.clamp(min=0))
        return -(said * weight[triple] * (labels >= 0)).sum(dim=-1).mean()

    def said(self, h: Tensor, e_a: Tensor, labels: Tensor) -> Tensor:
        """Log-likelihood of J labels per pixel, and the prior, shape (n, J).

        Parameters
        ----------
        h : tensor, shape (n, d)
            Features of the pixels.
        e_a : tensor, shape (n, 128)
            Embeddings of the annotators.
        labels : tensor of int, shape (n, J)
        """
        log_p, logits = self.classifier.log_proba(h), self.annotator_model.head(self.annotator_model(h, e_a))
        likelihood = label_log_likelihood(log_p, logits, labels)
        if not self.prior:
            return likelihood
        log_confusion = F.log_softmax(logits, dim=-1, dtype=log_p.dtype)
        held = (self.start * log_confusion).sum(dim=-1).mean(dim=-1)
        return likelihood + self.prior * held.unsqueeze(1)

    def _some_pixels(self, marked: Tensor, rng: np.random.Generator) -> Tensor:
        """The marked pixels of the batch that enter the loss."""
        pixel = marked.nonzero().squeeze(1)
        if self.pixels is None or len(pixel) <= self.pixels:
            return pixel
        chosen = np.sort(rng.choice(len(pixel), self.pixels, replace=False))
        return pixel[torch.from_numpy(chosen).to(pixel.device)]
