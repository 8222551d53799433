"""Layers of the small networks: PyTorch's own, with less around the numbers.

A step of a small network on a CPU is spent on calls. So a linear layer, its batch normalisation and its ReLU
are one node of the graph here, whose gradient is written out, and dropout draws bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

#: The eight entries of a mask, 0 or 2, that a byte of random bits stands for.
EIGHT = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * np.float32(2)


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that also takes a batch of one row.

    One row has no spread, so it is normalised by the running statistics, which stay as they are. Batches are
    not counted (`num_batches_tracked`): running statistics with a fixed momentum do not depend on it.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalise `input`, shape (n, d)."""
        over_batch = self.training and len(input) > 1
        return F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, over_batch,
            self.momentum or 0.0, self.eps,
        )  # fmt: skip


class Dropout(nn.Dropout):
    """Dropout that draws 16 bits an entry instead of a float, and one bit for p = 1/2: faster on a CPU.

    The chance is p to the nearest 1/65536. On other devices it is PyTorch's own.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Zero entries with chance p and scale the rest; shape as `input`."""
        if not self.training or input.device.type != "cpu" or not 0 < self._cut < 65536:
            return super().forward(input)
        return input * self.mask(input)

    @property
    def _cut(self) -> int:
        return round(self.p * 65536)

    def mask(self, input: Tensor) -> Tensor:
        """What a CPU multiplies `input` by."""
        n, cut = input.numel(), self._cut
        a_word = 64 if cut == 32768 else 4
        bits = torch.empty(-(-n // a_word), dtype=torch.int64).random_(-(2**63), None)
        if cut == 32768:
            mask = torch.from_numpy(EIGHT.take(bits.numpy().view(np.uint8), axis=0).ravel()[:n])
            return mask.view_as(input).to(input.dtype)
        keep = bits.view(torch.int16)[:n] >= cut - 32768
        return keep.view(input.shape).to(input.dtype).mul_(65536 / (65536 - cut))


class AllRows(nn.Identity):
    """All rows of a batch, for what goes over them: its input, or, of several processes, those of all."""


class Block(NamedTuple):
    """What of Linear, BatchNorm and ReLU goes into `LinearNormReLU`."""

    weight: Tensor
    bias: Tensor
    scale: Tensor
    shift: Tensor
    running_mean: Tensor
    running_var: Tensor
    momentum: float
    eps: float


class Layers(nn.Sequential):
    """Layers one after the other, as `through` takes them."""

    def forward(self, input: Tensor) -> Tensor:
        """The last layer's output."""
        return through(self, input)

    def blocks(self) -> list[Block | Dropout] | None:
        """Dropout as it is, and blocks of Linear, BatchNorm and ReLU; None if there are other layers."""
        layers, at = list(self), 0
        found: list[Block | Dropout] = []
        while at < len(layers):
            layer = layers[at]
            if isinstance(layer, Dropout) and 0 < layer.p < 1:
                found.append(layer)
                at += 1
            elif _kinds(layers[at : at + 3]):
                found.append(_block(layer, layers[at + 1]))
                at += 3
            else:
                return None
        return found


def through(layers: Iterable[nn.Module], x: Tensor) -> Tensor:
    """Put x through layers, taking Linear → BatchNorm → ReLU in one go where they train on a CPU."""
    waiting = list(layers)
    at = 0
    while at < len(waiting):
        if _one_step(waiting[at : at + 3], x):
            x = LinearNormReLU.apply(x, *_block(waiting[at], waiting[at + 1]))  # type: ignore[no-untyped-call]
            at += 3
        else:
            x = waiting[at](x)
            at += 1
    return x


def _one_step(layers: list[nn.Module], x: Tensor) -> bool:
    """Whether these are Linear, BatchNorm and ReLU as they come, which train on several rows on a CPU.

    Several processes put a `forward` of their own into a layer that must see the rows of all.
    """
    return (
        _kinds(layers)
        and layers[1].training
        and len(x) > 1
        and x.device.type == "cpu"
        and "forward" not in vars(layers[1])
        and not torch.is_autocast_enabled("cpu")
    )


def _kinds(layers: list[nn.Module]) -> bool:
    return [type(layer) for layer in layers] == [nn.Linear, BatchNorm, nn.ReLU]


def _block(linear: Any, norm: Any) -> Block:
    return Block(
        linear.weight, linear.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var,
        norm.momentum, norm.eps,
    )  # fmt: skip


class LinearNormReLU(torch.autograd.Function):
    """ReLU(BatchNorm(W x + b)) with the statistics of the batch."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        scale: Tensor,
        shift: Tensor,
        running_mean: Tensor,
        running_var: Tensor,
        momentum: float,
        eps: float,
    ) -> Tensor:
        """The output, shape (n, width), of x, shape (n, d); running statistics move along."""
        a = torch.addmm(bias, x, weight.t())
        out, mean, invstd = torch.native_batch_norm(
            a, scale, shift, running_mean, running_var, True, momentum, eps
        )
        out.relu_()
        ctx.save_for_backward(x, weight, scale, a, out, mean, invstd)
        ctx.eps = eps
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Gradients of x, if it needs one, and of the four parameters."""
        x, weight, scale, a, out, mean, invstd = ctx.saved_tensors
        grad = torch.ops.aten.threshold_backward.default(grad, out, 0)
        grad, grad_scale, grad_shift = torch.ops.aten.native_batch_norm_backward.default(
            grad, a, scale, None, None, mean, invstd, True, ctx.eps, [True, True, True]
        )
        grad_x = torch.mm(grad, weight) if ctx.needs_input_grad[0] else None
        grad_weight, grad_bias = torch.mm(grad.t(), x), grad.sum(dim=0)
        return grad_x, grad_weight, grad_bias, grad_scale, grad_shift, None, None, None, None
