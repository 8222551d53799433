"""Layers of the small networks: PyTorch's own, with fewer calls, and for several networks at once."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

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
        return torch.batch_norm(
            input, self.weight, self.bias, self.running_mean, self.running_var, over_batch,
            self.momentum or 0.0, self.eps, False,
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


def _copies(values: Tensor, n: int) -> Tensor:
    """n copies, shape (n, ...). On the meta device `repeat` would import sympy, which takes a second."""
    return values.detach().expand(n, *values.shape).clone(memory_format=torch.contiguous_format)


class StackedLinear(nn.Module):
    """K linear layers: (n, d), the same input for all, or (K, d, n) to (K, width, n)."""

    def __init__(self, linear: nn.Linear, n_members: int):
        super().__init__()
        self.weight = nn.Parameter(_copies(linear.weight, n_members))  # (K, width, d)
        self.bias = nn.Parameter(_copies(linear.bias, n_members))  # (K, width)

    def forward(self, input: Tensor) -> Tensor:
        """The K products, each with its own weights; items come last."""
        K, width, d = self.weight.shape
        if input.dim() == 2:
            product = torch.addmm(self.bias.view(-1, 1), self.weight.view(K * width, d), input.t())
            return product.view(K, width, -1)
        return torch.baddbmm(self.bias.unsqueeze(2), self.weight, input)


class StackedBatchNorm(BatchNorm):
    """Batch normalisation of K members at once, shape (K, width, n), each by its own statistics."""

    def __init__(self, norm: BatchNorm, n_members: int):
        super().__init__(n_members * norm.num_features, eps=norm.eps, momentum=norm.momentum)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise `input` as K · width features."""
        over_batch = self.training and input.shape[2] > 1
        return torch.batch_norm(
            input.reshape(1, -1, input.shape[2]), self.weight, self.bias, self.running_mean,
            self.running_var, over_batch, self.momentum or 0.0, self.eps, False,
        ).view(input.shape)  # fmt: skip
