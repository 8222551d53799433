"""The step of annot-mix with its gradient by hand, for the networks it mostly has.

Autograd takes longer than the numbers in a step of small networks: some two hundred calls and their graph.
Where both networks are `Layers` on a CPU in single precision, the chain rule is written out here instead,
over the same functions (`annotmix.networks.layers`) and the same random draws. `AnnotMix.loss` stays what is
meant: both have the same gradients, up to rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from annotmix.networks.annotators import SPARSE_FROM, AnnotatorEmbedding
from annotmix.networks.confusion import ConfusionHead, likelihood_and_gradients
from annotmix.networks.layers import Block, Dropout, Layers, LinearNormReLU

if TYPE_CHECKING:
    from annotmix.approaches.annot_mix import AnnotMix
    from annotmix.approaches.base import Batch

#: Annotators up to whom one-hot vectors are quicker than looking up rows.
ONE_HOT_UP_TO = 100


def make_step(model: AnnotMix) -> Step | None:
    """The step by hand, if the model has the networks and the mix that it is written for."""
    written = (
        (model.mix == "input" or model.alpha == 0)
        and isinstance(model.annotator_model.embed_annotator, AnnotatorEmbedding)
        and isinstance(model.annotator_model.head, ConfusionHead)
        and isinstance(model.classifier.backbone, Layers)
        and model.classifier.backbone.blocks() is not None
        and all(
            p.requires_grad and p.device.type == "cpu" and p.dtype == torch.float32
            for p in model.parameters()
        )
    )
    return Step(model) if written else None


class Step:
    """Loss and gradients of batches.

    Parameters
    ----------
    model : AnnotMix
        All parameters are looked up in it once.
    """

    def __init__(self, model: AnnotMix):
        classifier, annotators = model.classifier, model.annotator_model
        self.draw = model.draw
        self.backbone, self.trunk = _blocks(classifier.backbone), _blocks(annotators.trunk)
        self.classes = classifier.head.weight, classifier.head.bias
        self.embed = annotators.embed_instance.weight, annotators.embed_instance.bias
        self.table = _parameters(annotators.embed_annotator)
        self.head = _parameters(annotators.head)

    @torch.no_grad()
    def __call__(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """The loss of a batch, shape (); every parameter's gradient is left in its `grad`."""
        (W_c, b_c), (W_x, b_x), (W_a, b_a), (W, b) = self.classes, self.embed, self.table, self.head
        partner, lam = self.draw(batch.item, rng)
        n, d = len(lam), len(b_x)
        lam2 = torch.cat([lam, 1 - lam]).view(2, n)
        mixed = _Mixed(W_a, batch.annotator, partner, lam2)

        x = batch.x.index_select(0, batch.item)
        to_h, to_u = Tape(), Tape()
        h = to_h.through(self.backbone, torch.lerp(x.index_select(0, partner), x, lam.unsqueeze(1)))
        z = torch.addmm(b_c, h, W_c.t())
        e = h.new_empty(n, 2 * d)
        torch.addmm(b_x, h, W_x.t(), out=e[:, :d])
        mixed.rows(b_a, out=e[:, d:])
        u = to_u.through(self.trunk, e)
        labels = torch.cat([batch.label, batch.label.index_select(0, partner)]).view(2, n)
        if batch.weight is None:
            share = lam2
        else:
            share = lam2 * torch.cat([batch.weight, batch.weight.index_select(0, partner)]).view(2, n)
        loss, g_z, g_u, W.grad, b.grad = likelihood_and_gradients(z, u, W, b, labels, share)

        g_e = to_u.back(g_u)
        of_x, total = g_e[:, :d], g_e.sum(dim=0)
        W_x.grad, b_x.grad, b_a.grad = torch.mm(of_x.t(), h), total[:d], total[d:]
        W_a.grad = mixed.gradient(g_e[:, d:])
        W_c.grad, b_c.grad = torch.mm(g_z.t(), h), g_z.sum(dim=0)
        to_h.back(torch.mm(g_z, W_c), to_input=False)
        return loss


class Tape:
    """A pass through blocks of layers that remembers what the way back needs."""

    def __init__(self) -> None:
        self._kept: list[tuple[Block | Dropout, Any]] = []

    def through(self, blocks: list[Block | Dropout], x: Tensor) -> Tensor:
        """The last block's output."""
        for block in blocks:
            if isinstance(block, Dropout):
                mask = block.mask(x)
                self._kept.append((block, mask))
                x = x * mask
            else:
                context = _Context()
                self._kept.append((block, context))
                x = LinearNormReLU.forward(context, x, *block)
        return x

    def back(self, grad: Tensor, to_input: bool = True) -> Tensor:
        """The gradient of the input, if it is wanted; parameters get theirs in `grad`."""
        for place in range(len(self._kept) - 1, -1, -1):
            block, kept = self._kept[place]
            if isinstance(block, Dropout):
                grad = grad * kept
            else:
                kept.needs_input_grad = (to_input or place > 0,)
                grad, weight, bias, scale, shift, *_ = LinearNormReLU.backward(kept, grad)
                block.weight.grad, block.bias.grad, block.scale.grad, block.shift.grad = (
                    weight, bias, scale, shift,
                )  # fmt: skip
        return grad


class _Context:
    """What autograd gives its functions to remember by."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]

    def save_for_backward(self, *tensors: Tensor) -> None:
        self.saved_tensors = tensors


class _Mixed:
    """Rows of a table for the annotators of a batch, each mixed with a partner's.

    Of few annotators, they are the product with mixed one-hot vectors; of many, rows are looked up.

    Parameters
    ----------
    table : tensor, shape (M, d)
    annotator, partner : tensor of int, shape (n,)
    share : tensor, shape (2, n)
    """

    def __init__(self, table: Tensor, annotator: Tensor, partner: Tensor, share: Tensor):
        self.table, self.annotator, self.partner, self.share = table, annotator, partner, share
        self.one_hot: Tensor | None = None
        if len(table) <= ONE_HOT_UP_TO:
            pair = torch.cat([annotator, annotator.index_select(0, partner)]).view_as(share)
            self.one_hot = share.new_zeros(len(table), len(partner)).scatter_add_(0, pair, share)

    def rows(self, bias: Tensor, out: Tensor) -> None:
        """The mixed rows plus a bias, shape (n, d)."""
        if self.one_hot is not None:
            torch.addmm(bias, self.one_hot.t(), self.table, out=out)
        else:
            own = self.table.index_select(0, self.annotator)
            mixed = torch.lerp(own.index_select(0, self.partner), own, self.share[0].unsqueeze(1))
            torch.add(mixed, bias, out=out)

    def gradient(self, grad: Tensor) -> Tensor:
        """The gradient of the table, sparse where it is large."""
        if self.one_hot is not None:
            return torch.mm(self.one_hot, grad)
        own = grad * self.share[0].unsqueeze(1)
        own.index_add_(0, self.partner, grad - own)
        if len(self.table) > SPARSE_FROM:
            at = self.annotator.unsqueeze(0)
            return torch.sparse_coo_tensor(at, own, self.table.shape, check_invariants=False)
        return torch.zeros_like(self.table).index_add_(0, self.annotator, own)


def _blocks(layers: Any) -> list[Block | Dropout]:
    blocks: list[Block | Dropout] | None = layers.blocks()
    assert blocks is not None
    return blocks


def _parameters(module: Any) -> tuple[Tensor, Tensor]:
    return module.weight, module.bias
