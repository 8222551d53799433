"""RAdam (Liu et al., ICLR 2020) through PyTorch's fused Adam, with late steps for large tables.

The rectified step of RAdam is a step of Adam with another learning rate and another ε. So PyTorch's fused
Adam computes it in one pass over memory, which `torch.optim.RAdam` does not have: on letter a whole epoch is
1.3 times as fast with it. The arithmetic is that of `torch.optim.RAdam` with coupled weight decay.

A table of 100 000 annotators would still be updated as a whole in every step, though a batch has labels of a
hundred annotators. A parameter with a sparse gradient therefore gets *late* steps. A row without a gradient
for g steps has

    m_k = β₁^k m,   v_k = β₂^k v,   and is at   w − Σ_k c_k m_k / (√v_k + ε),   k = 1 … g,

with c_k the sizes of the steps that it has missed. They are done at once when the row is needed again: the
sum is m Σ_k c_k (β₁/√β₂)^k / (√v + ε β₂^(−k/2)), taken with the weighted mean of β₂^(−k/2), which stays
between 1 and 1.1.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotmix.networks.annotators import AnnotatorEmbedding

BETAS, EPS = (0.9, 0.999), 1e-8
#: Missed steps that still move a row: after them, (β₁/√β₂)^k is below single precision.
TAIL = 160
#: Rows that catch up at a time.
BLOCK = 8192
#: ε of the first steps, in which RAdam does not divide by √v: next to it √v is nothing.
NO_DENOMINATOR = 1e12

Tensors = list[Tensor]


class RAdam:
    """RAdam for the trained parameters of an approach.

    Weight decay is for the classification model only. Tables of annotators with sparse gradients get late
    steps: before their rows are read, `catch_up` must be called. Any other parameter without a gradient
    counts as one with gradient zero.

    Parameters
    ----------
    model : Approach
    weight_decay : float, default=0.0
        As in `torch.optim.RAdam`.
    """

    def __init__(self, model: nn.Module, weight_decay: float = 0.0):
        trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
        tables = {m.weight for m in model.modules() if isinstance(m, AnnotatorEmbedding) and m.sparse}
        self.tables = [_Table(p) for _, p in trained if p in tables]
        self.params: Tensors = [p for _, p in trained if p not in tables]
        decayed = {p for name, p in trained if name.startswith("classifier.")}
        self.decay = [weight_decay if p in decayed else 0.0 for p in self.params]
        self.m, self.v = ([torch.zeros_like(p, requires_grad=False) for p in self.params] for _ in range(2))
        self.n_steps = 0

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for p in self.params:
            p.grad = None
        for table in self.tables:
            table.p.grad = None

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """One step with the given learning rate."""
        self.n_steps += 1
        size, eps = step_size(self.n_steps, lr)
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.params]
        for p, grad, decay in zip(self.params, grads, self.decay, strict=True):
            if decay:
                grad.add_(p, alpha=decay)
        _adam(self.params, grads, self.m, self.v, size, eps)
        for table in self.tables:
            table.step(self.n_steps, size, eps)

    def catch_up(self, rows: Tensor | None = None) -> None:
        """Do the steps that rows without gradients have missed: those of some rows of every table, or of all.

        Parameters
        ----------
        rows : tensor of int, optional
        """
        for table in self.tables:
            every = torch.arange(len(table.p), device=table.p.device) if rows is None else torch.unique(rows)
            for block in torch.split(every, BLOCK):
                table.catch_up(block, self.n_steps)

    def state(self) -> dict[str, Tensor]:
        """The state for `load_state`, after `catch_up`."""
        state = {
            f"{number}.{name}": x for name, moments in self._moments() for number, x in enumerate(moments)
        }
        return state | {"n_steps": torch.tensor(self.n_steps)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an optimiser that had caught up."""
        self.n_steps = int(state["n_steps"])
        for name, moments in self._moments():
            for number, x in enumerate(moments):
                x.copy_(state[f"{number}.{name}"])
        for table in self.tables:
            table.done.fill_(self.n_steps)

    def _moments(self) -> list[tuple[str, list[Tensor]]]:
        """Both moments of all parameters."""
        return [("m", self.m + [t.m for t in self.tables]), ("v", self.v + [t.v for t in self.tables])]


class _Table:
    """A parameter with sparse gradients, its moments, and the step that each row is at."""

    def __init__(self, p: nn.Parameter):
        self.p = p
        self.m, self.v = (torch.zeros_like(p, requires_grad=False) for _ in range(2))
        self.done = torch.zeros(len(p), dtype=torch.long, device=p.device)
        self.missed = _MissedSteps()

    def step(self, t: int, size: float, eps: float) -> None:
        """Step t for the rows that have a gradient, or for all rows while ε is not that of late steps."""
        assert self.p.grad is not None
        grad = self.p.grad.coalesce()
        if eps != EPS:
            _adam([self.p], [grad.to_dense()], [self.m], [self.v], size, eps)
            self.done.fill_(t)
            return
        rows = grad.indices()[0]
        self.catch_up(rows, t - 1)
        here, m, v = (x.index_select(0, rows) for x in (self.p, self.m, self.v))
        _adam([here], [grad.values()], [m], [v], size, eps)
        for x, new in ((self.p, here), (self.m, m), (self.v, v)):
            x.index_copy_(0, rows, new)
        self.done.index_fill_(0, rows, t)
        self.missed.add(t, size)

    @torch.no_grad()
    def catch_up(self, rows: Tensor, t: int) -> None:
        """Bring rows, each named once, to where step t leaves them, if they have no gradient until then."""
        beta1, beta2 = BETAS
        done = self.done.index_select(0, rows).cpu().numpy()
        gap = t - done
        if not gap.any():
            return
        distance, stretch = self.missed.since(done)
        factors = np.stack([distance, EPS * stretch, beta1**gap, beta2**gap])
        of_p, eps, of_m, of_v = torch.from_numpy(factors).to(self.p.device, self.p.dtype).unsqueeze(2)
        m, v = self.m.index_select(0, rows), self.v.index_select(0, rows)
        self.p.index_add_(0, rows, (m * of_p).div_(v.sqrt().add_(eps)), alpha=-1)
        self.m.index_copy_(0, rows, m.mul_(of_m))
        self.v.index_copy_(0, rows, v.mul_(of_v))
        self.done.index_fill_(0, rows, t)


class _MissedSteps:
    """The steps that rows have missed since they were last moved, m / (√v + ε) being the unit of a step.

    Row s of `missed` is Σ_k c_k (β₁/√β₂)^k over the steps after `first + s`, without and with β₂^(−k/2) in
    the sum.
    """

    def __init__(self) -> None:
        (beta1, beta2), k = BETAS, np.arange(TAIL, 0, -1)
        decay = (beta1 / math.sqrt(beta2)) ** k
        self.weights = np.stack([decay, decay * beta2 ** (-k / 2)], axis=1)  # of a step for those before it
        self.first, self.size = 0, 0
        self.missed = np.zeros((2 * TAIL, 2))

    def add(self, t: int, size: float) -> None:
        """Step t of the given size."""
        if not self.size:
            self.first = t - 1  # all rows are up to date here: after the first steps, or in a resumed run
        self.size += 1
        if self.size == len(self.missed):
            self.missed = np.concatenate([self.missed, np.zeros_like(self.missed)])
        recent = min(self.size, TAIL)
        self.missed[self.size - recent : self.size] += size * self.weights[TAIL - recent :]

    def since(self, done: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How far rows move that are where step `done` left them, and how ε is stretched; shapes (n,)."""
        distance, stretched = self.missed[np.maximum(done - self.first, 0)].T
        return distance, np.maximum(stretched / np.maximum(distance, 1e-300), 1)  # 1 where nothing moved


def step_size(t: int, lr: float) -> tuple[float, float]:
    """The factor of m / (√v + ε) in step t, and ε, which is huge while the variance is not to be trusted."""
    beta1, beta2 = BETAS
    size = lr / (1 - beta1**t)
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * t * beta2**t / (1 - beta2**t)
    if rho <= 5:
        return size * NO_DENOMINATOR, NO_DENOMINATOR
    rectification = math.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
    return size * rectification * math.sqrt(1 - beta2**t), EPS


def _adam(p: Tensors, g: Tensors, m: Tensors, v: Tensors, size: float, eps: float) -> None:
    """PyTorch's fused Adam, told that it is so late that its own corrections for the start are one.

    Called without `torch.optim`, which would sort the parameters anew in every step.
    """
    late = [torch.tensor(1e9, device=x.device) for x in p[:1]] * len(p)
    torch._fused_adam_(
        p, g, m, v, [], late, lr=size, beta1=BETAS[0], beta2=BETAS[1], eps=eps,
        weight_decay=0.0, amsgrad=False, maximize=False,
    )  # fmt: skip
