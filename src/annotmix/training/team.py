"""Several processes that train one model together, to the result that one process has.

Every process holds the same model and draws the same batches from the same seeds. It puts its own part of a
batch's items, with their labels, through the networks. Where a computation goes over the rows of the whole
batch, the processes exchange what it needs:

    batch statistics   means and variances of the parts, joined; their gradients, summed
    dropout            the mask of the whole batch is drawn everywhere, and each process takes its rows
    gradients          summed, each process's loss weighted by its share of the batch

So all processes hold the same bits after every step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from annotmix.approaches.base import Approach, Batch
from annotmix.networks.layers import AllRows, BatchNorm
from annotmix.networks.stack import ClassifierStack
from annotmix.training.processes import PATIENCE, by_torchrun

Forward = Callable[[Tensor], Tensor]


class Team:
    """This process among those that train the model together, of which there may be one.

    Parameters
    ----------
    fabric : Fabric
    model : Approach
    """

    def __init__(self, fabric: Fabric, model: Approach):
        self.fabric, self.model = fabric, model
        self.rank, self.size = fabric.global_rank, fabric.world_size
        self._shared, self._weight = False, 1.0
        self._counts: list[list[int]] = []
        self._rows_are: dict[nn.Module, list[int]] = {}

    def part(self, batch: Batch) -> Batch:
        """What of a batch this process computes: items of its own, with all their labels.

        An approach that mixes gets the whole batch, in which its part is marked. A batch with fewer items
        than processes is computed by every one.
        """
        n = len(batch.x)
        self._shared = 1 < self.size <= n
        if not self._shared:
            self._weight = 1 / self.size
            return batch
        items = [n * rank // self.size for rank in range(self.size + 1)]
        ends = torch.searchsorted(batch.item, torch.tensor(items, device=batch.item.device)).tolist()
        self._counts = [[b - a for a, b in pairwise(bounds)] for bounds in (items, ends)]
        rows, labels = (slice(bounds[self.rank], bounds[self.rank + 1]) for bounds in (items, ends))
        counts = self._counts[0 if self.model.mean_over == "items" else 1]
        self._weight = counts[self.rank] / sum(counts)
        if self.model.mixes:
            return batch._replace(own_rows=rows, own_labels=labels)
        return Batch(
            batch.x[rows],
            batch.item[labels] - rows.start,
            batch.annotator[labels],
            batch.label[labels],
            None if batch.rows is None else batch.rows[rows],
            None if batch.weight is None else batch.weight[labels],
        )

    def weigh(self, loss: Tensor) -> Tensor:
        """This process's share of the batch's loss."""
        return loss if self.size == 1 else self._weight * loss

    def sum(self, values: Tensor) -> Tensor:
        """Sum over the processes, in place."""
        if self.size > 1:
            with self._watch():
                dist.all_reduce(values)
        return values

    def sum_gradients(self, optimizer: torch.optim.Optimizer) -> None:
        """Sum the gradients over the processes, dense ones in one vector."""
        if self.size == 1:
            return
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        dense = [grad for grad in grads if not grad.is_sparse]
        flat = self.sum(torch.cat([grad.reshape(-1) for grad in dense]))
        parts = torch.split(flat, [grad.numel() for grad in dense])
        torch._foreach_copy_(dense, [part.view_as(grad) for part, grad in zip(parts, dense, strict=True)])
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is not None and p.grad.is_sparse:
                    p.grad = self.sum(p.grad.coalesce())

    def gather(self, values: Tensor) -> Tensor:
        """The values of all processes, shape (processes, ...), for values of one shape."""
        every = values.new_zeros(self.size, *values.shape)
        every[self.rank] = values
        return self.sum(every)

    def agree(self, facts: Any) -> Any:
        """What the first process says."""
        if self.size == 1:
            return facts
        with self._watch():
            return self.fabric.broadcast(facts)

    def line_up(self, epoch: int) -> None:
        """Begin with the weights of the first process, and refuse others that go on from another epoch."""
        if epoch != (first := self.agree(epoch)):
            raise ValueError(
                f"Process {self.rank + 1} of {self.size} goes on from epoch {epoch}, the first one from "
                f"epoch {first}: the checkpoint folder must be one that all processes see."
            )
        if self.size > 1:
            with self._watch():
                for tensor in self.model.state_dict().values():
                    dist.broadcast(tensor, 0)

    @contextmanager
    def layers(self) -> Iterator[None]:
        """Let the layers that go over rows see the rows of all processes, for as long as this lasts."""
        changed: list[nn.Module] = []
        stacked = _stacked_dropout(self.model)
        if self.size > 1:
            for layer in self.model.modules():
                forward: Any = layer.forward
                if isinstance(layer, _BatchNorm):
                    together: Any = partial(self._batch_norm, layer, forward)
                elif isinstance(layer, nn.Dropout | nn.Dropout1d | nn.Dropout2d | nn.Dropout3d):
                    together = partial(self._dropout, layer, forward, int(layer in stacked))
                elif isinstance(layer, AllRows):
                    together = partial(self._all_rows, layer)
                else:
                    continue
                layer.forward = together  # type: ignore[method-assign]
                changed.append(layer)
        try:
            yield
        finally:
            for layer in changed:
                del layer.forward

    def _batch_norm(self, norm: _BatchNorm, forward: Forward, x: Tensor) -> Tensor:
        if not (self._shared and norm.training):
            return forward(x)
        over = [dim for dim in range(x.dim()) if dim != 1]
        with torch.no_grad():
            var, mean = torch.var_mean(x.float(), dim=over, correction=0)
            n = torch.full_like(mean[:1], x.numel() / x.shape[1])
            parts = self.gather(torch.cat([n, mean, var]))  # (processes, 1 + 2 C)
            share, means, vars = parts[:, :1] / parts[:, 0].sum(), *parts[:, 1:].chunk(2, dim=1)
            total = int(parts[:, 0].sum())
            mean = (share * means).sum(dim=0)
            var = (share * (vars + (means - mean).square())).sum(dim=0)
            if norm.track_running_stats and norm.running_mean is not None and norm.running_var is not None:
                if not isinstance(norm, BatchNorm):
                    norm.num_batches_tracked.add_(1)  # type: ignore[union-attr]
                momentum = norm.momentum
                if momentum is None:
                    momentum = 1 / float(norm.num_batches_tracked)  # type: ignore[arg-type]
                norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), momentum)
                norm.running_var.lerp_((var * (total / (total - 1))).to(norm.running_var.dtype), momentum)
        result: Tensor = _Normalise.apply(x, norm.weight, norm.bias, mean, var, norm.eps, total, self)  # type: ignore[no-untyped-call]
        return result

    def _dropout(self, dropout: nn.Module, forward: Forward, dim: int, x: Tensor) -> Tensor:
        if not (self._shared and dropout.training):
            return forward(x)
        first, total = self._place(dropout, x.shape[dim], x.device)
        mask = forward(x.new_ones([*x.shape[:dim], total, *x.shape[dim + 1 :]]))
        return x * mask.narrow(dim, first, x.shape[dim])

    def _all_rows(self, layer: nn.Module, x: Tensor) -> Tensor:
        if not self._shared:
            return x
        first, total = self._place(layer, len(x), x.device)
        result: Tensor = _Together.apply(x, first, total, self)  # type: ignore[no-untyped-call]
        return result

    def _place(self, layer: nn.Module, n: int, device: torch.device) -> tuple[int, int]:
        """Where n rows of this process begin among those of all, and how many these are.

        The processes tell each other how many rows they have, until it is clear whether those of the layer
        are the items or the labels of the batch.
        """
        kinds = self._rows_are.get(layer, [])
        known = [self._counts[kind] for kind in kinds]
        if known and known.count(known[0]) == len(known):
            counts = known[0]
        else:
            counts = self.gather(torch.tensor(n, device=device)).tolist()
            self._rows_are[layer] = [kind for kind in kinds or (0, 1) if self._counts[kind] == counts]
        if counts[self.rank] != n:
            raise ValueError(
                f"{layer} got items in one step and labels in another, or both in one; in several processes "
                "a layer of its own is needed for each."
            )
        return sum(counts[: self.rank]), sum(counts)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            if not by_torchrun():
                time.sleep(PATIENCE)  # `start` sees which process is lost, and ends this one
            raise ChildProcessError(
                f"Process {self.rank + 1} of {self.size} lost another one, which ended or failed ({error})."
            ) from error


class _Normalise(torch.autograd.Function):
    """(x − mean) / √(var + ε) · weight + bias, with mean and variance those of the rows of all processes."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        var: Tensor,
        eps: float,
        total: int,
        team: Team,
    ) -> Tensor:
        ctx.save_for_backward(x, weight, mean, (var + eps).rsqrt())
        ctx.total, ctx.team = total, team
        return F.batch_norm(x.float(), mean, var, weight, bias, eps=eps).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, scale = ctx.saved_tensors
        over = [dim for dim in range(x.dim()) if dim != 1]
        shape = [-1 if dim == 1 else 1 for dim in range(x.dim())]
        g = grad.float()
        z = (x.float() - mean.view(shape)) * scale.view(shape)
        own = torch.stack([g.sum(dim=over), (g * z).sum(dim=over)])
        along = (ctx.team.sum(own.clone()) / ctx.total).view(2, *shape)
        factor = scale if weight is None else scale * weight
        grad_x = ((g - along[0] - z * along[1]) * factor.view(shape)).to(x.dtype)
        if weight is None:
            return grad_x, *[None] * 7
        return grad_x, own[1].to(weight.dtype), own[0].to(weight.dtype), *[None] * 5


class _Together(torch.autograd.Function):
    """The rows of all processes, one process after the other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, first: int, total: int, team: Team) -> Tensor:
        ctx.rows, ctx.team = slice(first, first + len(x)), team
        whole = x.new_zeros(total, *x.shape[1:])
        whole[ctx.rows] = x
        return team.sum(whole)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return ctx.team.sum(grad.clone())[ctx.rows], None, None, None


def _stacked_dropout(model: nn.Module) -> set[nn.Module]:
    """Dropout of networks side by side, whose rows are along the second dimension."""
    stacks = [m.features for m in model.modules() if isinstance(m, ClassifierStack)]
    return {layer for features in stacks if isinstance(features, nn.Sequential) for layer in features}
