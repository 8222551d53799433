"""Layers of the small networks: PyTorch's own, with fewer calls.

A small network on a CPU spends most of a step on calls, not on arithmetic. So a linear layer, its batch
normalisation and its ReLU are one node of the graph here, whose gradient is written out, and dropout draws
bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

#: The eight entries of a mask, 0 or 2, that a byte of random bits stands for.
BYTE_MASKS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * np.float32(2)


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
    """Dropout that draws 16 bits per entry instead of a float, and one bit for p = 1/2: faster on a CPU.

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
        """The factors of the entries on a CPU, shape as `input`: 0 or 1 / (1 − p)."""
        n, cut = input.numel(), self._cut
        per_word = 64 if cut == 32768 else 4
        bits = torch.empty(-(-n // per_word), dtype=torch.int64).random_(-(2**63), None)
        if cut == 32768:
            mask = torch.from_numpy(BYTE_MASKS.take(bits.numpy().view(np.uint8), axis=0).ravel()[:n])
            return mask.view_as(input).to(input.dtype)
        keep = bits.view(torch.int16)[:n] >= cut - 32768
        return keep.view(input.shape).to(input.dtype).mul_(65536 / (65536 - cut))


class StackedLinear(nn.Module):
    """K linear layers: (n, d), the same input for all, or (n, K, d) to (n, K, width)."""

    def __init__(self, linear: nn.Linear, n_members: int):
        super().__init__()
        self.weight = nn.Parameter(linear.weight.detach().repeat(n_members, 1, 1))  # (K, width, d)
        self.bias = nn.Parameter(linear.bias.detach().repeat(n_members, 1))  # (K, width)

    def forward(self, input: Tensor) -> Tensor:
        """The K products, each with its own weights."""
        return _product(input, self.weight, self.bias).view(len(input), *self.bias.shape)


class StackedBatchNorm(BatchNorm):
    """Batch normalisation of K members at once, shape (n, K, width), each by its own statistics."""

    def __init__(self, norm: BatchNorm, n_members: int):
        super().__init__(n_members * norm.num_features, eps=norm.eps, momentum=norm.momentum)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise `input` as K · width features."""
        return super().forward(input.flatten(1)).view(input.shape)


class Layers(nn.Sequential):
    """Layers one after the other, as `apply_layers` takes them."""

    def forward(self, input: Tensor) -> Tensor:
        """The last layer's output."""
        return apply_layers(self, input)


def apply_layers(layers: Iterable[nn.Module], x: Tensor) -> Tensor:
    """The last layer's output; in training on a CPU, Linear → BatchNorm → ReLU is one node of the graph."""
    waiting: list[Any] = list(layers)
    fused = len(x) > 1 and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    at = 0
    while at < len(waiting):
        layer = waiting[at]
        if (
            fused
            and isinstance(layer, nn.Linear | StackedLinear)
            and _norm_and_relu(waiting[at + 1 : at + 3])
        ):
            norm = waiting[at + 1]
            x = LinearNormReLU.apply(  # type: ignore[no-untyped-call]
                x, layer.weight, layer.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var,
                norm.momentum, norm.eps,
            )  # fmt: skip
            at += 3
        else:
            x = layer(x)
            at += 1
    return x


def _norm_and_relu(layers: list[nn.Module]) -> bool:
    return (
        len(layers) == 2
        and isinstance(layers[0], BatchNorm)
        and layers[0].training
        and isinstance(layers[1], nn.ReLU)
    )


class LinearNormReLU(torch.autograd.Function):
    """ReLU(BatchNorm(W x + b)) with the statistics of the batch, of one layer or of K stacked ones."""

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
        """The output, shape (n, width) or (n, K, width); running statistics move along.

        Parameters
        ----------
        x : tensor, shape (n, d) or (n, K, d)
        weight : tensor, shape (width, d) or (K, width, d)
        bias : tensor, shape (width,) or (K, width)
        scale, shift, running_mean, running_var : tensor, shape (width,) or (K · width,)
        """
        a = _product(x, weight, bias)
        out, mean, invstd = torch.native_batch_norm(
            a, scale, shift, running_mean, running_var, True, momentum, eps
        )
        out.relu_()
        ctx.save_for_backward(x, weight, scale, a, out, mean, invstd)
        ctx.eps = eps
        return out if bias.dim() == 1 else out.view(len(x), *bias.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Gradients of x, if it needs one, and of the four parameters."""
        x, weight, scale, a, out, mean, invstd = ctx.saved_tensors
        grad = torch.ops.aten.threshold_backward.default(grad.reshape(a.shape), out, 0)
        grad, grad_scale, grad_shift = torch.ops.aten.native_batch_norm_backward.default(
            grad, a, scale, None, None, mean, invstd, True, ctx.eps, [True, True, True]
        )
        grad_x, grad_bias = None, grad.sum(dim=0).view(weight.shape[:-1])
        if x.dim() == 2:
            grad_weight = torch.mm(grad.t(), x).view(weight.shape)
            if ctx.needs_input_grad[0]:
                grad_x = torch.mm(grad, weight.flatten(0, -2))
        else:
            each = grad.view(len(x), *weight.shape[:-1]).transpose(0, 1)  # (K, n, width)
            grad_weight = torch.bmm(each.transpose(1, 2), x.transpose(0, 1))
            if ctx.needs_input_grad[0]:
                grad_x = torch.bmm(each, weight).transpose(0, 1)
        return grad_x, grad_weight, grad_bias, grad_scale, grad_shift, None, None, None, None


def _product(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """W x + b of one layer, shape (n, width), or of K stacked ones, shape (n, K · width)."""
    if x.dim() == 2:
        return torch.addmm(bias.flatten(), x, weight.flatten(0, -2).t())
    each = torch.baddbmm(bias.unsqueeze(1), x.transpose(0, 1), weight.transpose(1, 2))  # (K, n, width)
    return each.transpose(0, 1).flatten(1)
