"""RAdam in one pass over memory, and rows of large tables only when they are needed.

The rectified step of RAdam is a step of Adam with another learning rate and another ε, so PyTorch's fused
kernel of Adam does it: parameters, gradients and moments are read and written once. The arithmetic is that of
`torch.optim.RAdam` with coupled weight decay.

A table of 100 000 annotators would still be gone over in every step, though a batch knows a hundred of them.
A parameter with a sparse gradient therefore gets *late* steps. A row without a gradient for g steps has

    m_k = β₁^k m,   v_k = β₂^k v,   and is at   w − Σ_k c_k m_k / (√v_k + ε),   k = 1 … g,

with c_k the sizes of the steps that it has missed. All of that is done at once when the row is needed again:
the sum is m Σ_k c_k (β₁/√β₂)^k / (√v + ε β₂^(−k/2)), taken with the weighted mean of β₂^(−k/2), which stays
between 1 and 1.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Tensors = list[Tensor]
#: Missed steps that still move a row: what is left of (β₁/√β₂)^k after them is below single precision.
TAIL = 160
#: Rows that are brought up to date at a time.
BLOCK = 8192


class RAdam(torch.optim.Optimizer):
    """RAdam (Liu et al., ICLR 2020), fused, with late steps for the rows of sparse gradients.

    Every trained parameter must get a gradient in every step (a missing one counts as zero). Before rows of a
    parameter with sparse gradients are read, `catch_up` must be called.

    Parameters
    ----------
    params : iterable of dict
        Groups with `params` and, if wanted, their own `lr` and `weight_decay`.
    lr, betas, eps, weight_decay
        As in `torch.optim.RAdam`.
    """

    def __init__(
        self,
        params: Iterable[dict[str, Any]],
        lr: float = 1e-2,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self._moves = [_Moves(*group["betas"]) for group in self.param_groups]
        self._tables: list[tuple[nn.Parameter, dict[str, Any], _Moves]] = []
        self._held: dict[nn.Parameter, _Held] = {}
        self._t = 0  # steps
        # parameters and their moments, a triple of lists a group once it has any
        self._lists: list[list[Tensors]] = [[] for _ in self.param_groups]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = None

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step for all groups."""
        self.update()

    @torch.no_grad()
    def update(self) -> None:
        """`step` without PyTorch's hooks around it, which take a tenth of a small one."""
        self._t += 1
        t = self._t
        for group, moves, lists in zip(self.param_groups, self._moves, self._lists, strict=True):
            if not lists:
                self._start(group, moves, lists)
            move, adaptive = _move(t, group)
            p, m, v = lists
            g: Any = [parameter.grad for parameter in p]
            if any(grad is None or grad.is_sparse for grad in g):
                p, g, m, v = self._dense(group, moves, t, move, adaptive)
            if p:
                (_fused if adaptive else _plain)(p, g, m, v, move, group)
            if any(owner is group for _, owner, _ in self._tables):
                moves.add(t, move)

    def _dense(
        self, group: dict[str, Any], moves: _Moves, t: int, move: float, adaptive: bool
    ) -> tuple[Tensors, Tensors, Tensors, Tensors]:
        """Parameters, gradients and moments that take a dense step, after the step of all sparse ones."""
        dense = []
        for p in group["params"]:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            if not p.grad.is_sparse:
                dense.append(p)
            elif adaptive and not group["weight_decay"]:
                self._step_rows(p, p.grad.coalesce(), t, group, moves, move)
            else:
                self._put_back(p)
                p.grad = p.grad.to_dense()
                dense.append(p)
                self.state[p]["done"].fill_(t)
        state = [self.state[p] for p in dense]
        return (
            dense,
            [p.grad for p in dense],
            [s["exp_avg"] for s in state],
            [s["exp_avg_sq"] for s in state],
        )

    def catch_up(self, rows: Tensor | None = None) -> None:
        """Do the steps that rows without gradients have missed: these rows of every table, or all.

        Parameters
        ----------
        rows : tensor of int, optional
            Rows that are about to be read.
        """
        for p, group, moves in self._tables:
            self._put_back(p)
            if rows is not None:
                self._late(p, torch.unique(rows), self._t, group, moves)
                continue
            for block in torch.split(torch.arange(len(p), device=p.device), BLOCK):
                self._late(p, block, self._t, group, moves)
                self._put_back(p)

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs, after `catch_up`; the number of steps is with every parameter."""
        for p in [p for lists in self._lists if lists for p in lists[0]]:
            self._put_back(p)  # type: ignore[arg-type]
            self.state[p]["step"] = torch.tensor(float(self._t))
        return super().state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from the state of an optimiser that had caught up."""
        super().load_state_dict(state_dict)
        self._tables, self._held, self._lists = [], {}, [[] for _ in self.param_groups]
        for group, moves in zip(self.param_groups, self._moves, strict=True):
            for p in group["params"]:
                state = self.state[p]
                self._t = int(state.get("step", self._t))
                if "done" in state:
                    state["done"] = torch.full((len(p),), self._t, device=p.device)
                    self._tables.append((p, group, moves))

    def _start(self, group: dict[str, Any], moves: _Moves, lists: list[Tensors]) -> None:
        """Moments at zero, unless they were loaded."""
        params, first = group["params"], group["params"][0]
        if not self.state[first]:
            for p in params:
                state = self.state[p]
                state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(p), torch.zeros_like(p)
                if p.grad is not None and p.grad.is_sparse:
                    state["done"] = torch.zeros(len(p), dtype=torch.long, device=p.device)
                    self._tables.append((p, group, moves))
        lists += [params, *([self.state[p][key] for p in params] for key in ("exp_avg", "exp_avg_sq"))]

    def _step_rows(
        self, p: nn.Parameter, grad: Tensor, t: int, group: dict[str, Any], moves: _Moves, move: float
    ) -> None:
        """Step t for the rows that have a gradient."""
        rows, g = grad.indices()[0], grad.values()
        held = self._held.get(p)
        if held is None or not torch.equal(held.rows, rows):
            self._put_back(p)
            self._late(p, rows, t - 1, group, moves)
        held = self._held[p]
        here = p.index_select(0, rows)
        _fused([here], [g], [held.m], [held.v], move, group)
        p.index_copy_(0, rows, here)
        self._held[p] = held._replace(t=t)
        self._put_back(p)

    @torch.no_grad()
    def _late(self, p: nn.Parameter, rows: Tensor, t: int, group: dict[str, Any], moves: _Moves) -> None:
        """Bring rows to where step t leaves them, without gradients since they were last moved.

        Their moments stay at hand for the step that is about to come.
        """
        state, (beta1, beta2) = self.state[p], group["betas"]
        done = state["done"].index_select(0, rows).cpu().numpy()
        far, stretch = moves.since(done)
        gap = t - done
        factors = np.stack([far, group["eps"] * stretch, beta1**gap, beta2**gap])
        far, eps, of_m, of_v = torch.from_numpy(factors).to(p.device, p.dtype).unsqueeze(2)
        m, v = state["exp_avg"].index_select(0, rows), state["exp_avg_sq"].index_select(0, rows)
        p.index_add_(0, rows, (m * far).div_(v.sqrt().add_(eps)), alpha=-1)
        self._held[p] = _Held(rows, m.mul_(of_m), v.mul_(of_v), t)

    def _put_back(self, p: nn.Parameter) -> None:
        """Write the moments that are at hand."""
        held = self._held.pop(p, None)
        if held is not None:
            state = self.state[p]
            state["exp_avg"].index_copy_(0, held.rows, held.m)
            state["exp_avg_sq"].index_copy_(0, held.rows, held.v)
            state["done"].index_fill_(0, held.rows, held.t)


class _Held(NamedTuple):
    """Moments of some rows, each named once, as step t leaves them."""

    rows: Tensor
    m: Tensor
    v: Tensor
    t: int


class _Moves:
    """What rows have missed since they were last moved, m / (√v + ε) being the way of a step.

    Row s of `missed` is Σ_k c_k (β₁/√β₂)^k over the steps after `first + s`, without and with β₂^(−k/2) in
    the sum.
    """

    def __init__(self, beta1: float, beta2: float):
        k = np.arange(TAIL, 0, -1)
        decay = (beta1 / math.sqrt(beta2)) ** k
        self.weights = np.stack([decay, decay * beta2 ** (-k / 2)], axis=1)  # of a step for those before it
        self.first, self.size = 0, 0
        self.missed = np.zeros((2 * TAIL, 2))

    def add(self, t: int, move: float) -> None:
        """Step t."""
        if not self.size:
            self.first = t - 1  # not 0 where a run goes on; its rows are up to date
        self.size += 1
        if self.size == len(self.missed):
            self.missed = np.concatenate([self.missed, np.zeros_like(self.missed)])
        recent = min(self.size, TAIL)
        self.missed[self.size - recent : self.size] += move * self.weights[TAIL - recent :]

    def since(self, done: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far rows have to move that are where step `done` left them, and how ε is stretched; (n,)."""
        far, stretched = self.missed[np.maximum(done - self.first, 0)].T
        return far, np.maximum(stretched / np.maximum(far, 1e-300), 1)  # 1 where there was no movement


def _move(t: int, group: dict[str, Any]) -> tuple[float, bool]:
    """What multiplies m / (√v + ε) in step t; or m alone, while the variance is not to be trusted."""
    beta1, beta2 = group["betas"]
    size = group["lr"] / (1 - beta1**t)
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t)
    if rho <= 5:
        return size, False
    rectification = math.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
    return size * rectification * math.sqrt(1 - beta2**t), True


def _fused(p: Tensors, g: Tensors, m: Tensors, v: Tensors, move: float, group: dict[str, Any]) -> None:
    """Adam's kernel, told that it is so late that its own corrections are one."""
    beta1, beta2 = group["betas"]
    torch._fused_adam_(
        p, g, m, v, [], [_late(p[0].device)] * len(p), lr=move, beta1=beta1, beta2=beta2,
        weight_decay=group["weight_decay"], eps=group["eps"], amsgrad=False, maximize=False,
    )  # fmt: skip


@cache
def _late(device: torch.device) -> Tensor:
    return torch.tensor(1e9, device=device)


def _plain(p: Tensors, g: Tensors, m: Tensors, v: Tensors, move: float, group: dict[str, Any]) -> None:
    """The first five steps: the mean of the gradients alone."""
    beta1, beta2 = group["betas"]
    if group["weight_decay"]:
        g = list(torch._foreach_add(g, p, alpha=group["weight_decay"]))
    torch._foreach_lerp_(m, g, 1 - beta1)
    torch._foreach_mul_(v, beta2)
    torch._foreach_addcmul_(v, g, g, value=1 - beta2)
    torch._foreach_add_(p, m, alpha=-move)
