"""Several copies of a classifier that train side by side on the same items.

K small networks one after the other spend their time on calls, not on arithmetic. The layers of K MLPs become
one layer here: K weight matrices in one tensor, multiplied at once. Any other backbone is applied in a loop,
with the same result.

Inside a stack the items come last, shape (K, width, n): then the first layer is one product for all members,
every further one is a batched product whose inputs, outputs and gradients lie in memory as they are needed,
and batch normalisation reads what it normalises in one go. Nothing is transposed on the way.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from annotmix.networks import MLP, Classifier
from annotmix.networks.layers import BatchNorm, StackedBatchNorm, StackedLinear


class ClassifierStack(nn.Module):
    """K classifiers of one kind, all starting from the weights of `classifier`.

    Parameters
    ----------
    classifier : Classifier
        The original, which stays as it is.
    n_members : int
        K.
    """

    def __init__(self, classifier: Classifier, n_members: int):
        super().__init__()
        self.n_members = n_members
        self.n_hidden, self.n_classes = classifier.n_hidden, classifier.n_classes
        self.features: nn.Module
        plain = copy.deepcopy(classifier)
        if isinstance(classifier.backbone, MLP):
            self.features = nn.Sequential(*[_stacked(layer, n_members) for layer in classifier.backbone])
        else:
            self.features = _Loop(classifier.backbone, n_members)
            plain.backbone = nn.Identity()
        self.head = StackedLinear(classifier.head, n_members)
        self._plain = (plain.to("meta"),)  # in a tuple: its parameters, without values, are nobody's

    def forward(self, x: Tensor) -> Tensor:
        """log p of every member, shape (n, K, C), for items x, shape (n, ...)."""
        return self.log_proba(self.features(x))

    def log_proba(self, h: Tensor) -> Tensor:
        """log p of every member, shape (n, K, C), of their features h, shape (K, n_hidden, n)."""
        return F.log_softmax(self.head(h).float(), dim=1).permute(2, 0, 1)

    def logits(self, h: Tensor) -> Tensor:
        """Logits of every member, shape (n, K, C), of their features h, shape (K, n_hidden, n)."""
        return self.head(h).float().permute(2, 0, 1)  # type: ignore[no-any-return]

    def member(self, k: int) -> Classifier:
        """A copy of member k as a classifier of its own."""
        alone = copy.deepcopy(self._plain[0])
        if isinstance(self.features, _Loop):
            alone.backbone = copy.deepcopy(self.features.members[k])
        else:
            alone.backbone.load_state_dict(self._of(self.features, k, alone.backbone), assign=True)
        alone.head.load_state_dict(self._of(self.head, k, alone.head), assign=True)
        return alone.train(self.training)

    def _of(self, stacked: nn.Module, k: int, plain: nn.Module) -> dict[str, Tensor]:
        """The state of a module of member k, whose names and shapes are those of `plain`."""
        every = stacked.state_dict()
        return {
            name: every[name].view(self.n_members, *own.shape)[k].clone() if own.dim() else every[name]
            for name, own in plain.state_dict().items()
        }


class Committee(Classifier):
    """A classifier with K copies beside it, which train at the same time, and may be dropped after that.

    Parameters
    ----------
    classifier : Classifier
        The original of all.
    n_others : int
        K, which may be 0.
    averages : bool
        Whether class probabilities are averaged over all networks, or come from the first one alone.
    """

    def __init__(self, classifier: Classifier, n_others: int, averages: bool = False):
        nn.Module.__init__(self)
        self._width, self._n_classes = classifier.n_hidden, classifier.n_classes
        self.averages = averages and n_others > 0
        self.stack = ClassifierStack(classifier, 1 + n_others) if n_others else None
        self.own = None if n_others else classifier

    @property
    def n_hidden(self) -> int:
        """Width of the features: of one network, or of all side by side where they are averaged."""
        return self._width * (self.stack.n_members if self.averages and self.stack is not None else 1)

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return self._n_classes

    def features(self, x: Tensor) -> Tensor:
        """Features, shape (n, n_hidden), of items x, shape (n, ...)."""
        if self.averages and self.stack is not None:
            return self.stack.features(x).permute(2, 0, 1).flatten(1)  # type: ignore[no-any-return]
        return self.first.features(x)

    def log_proba(self, h: Tensor) -> Tensor:
        """log p, shape (n, C), of features h, shape (n, n_hidden)."""
        if not self.averages or self.stack is None:
            return self.first.log_proba(h)
        members = h.view(len(h), -1, self._width).permute(1, 2, 0)
        return self.stack.log_proba(members).logsumexp(dim=1) - math.log(self.stack.n_members)

    @property
    def first(self) -> Classifier:
        """The first network: itself, or a copy of it while the others stand beside it."""
        if self.own is not None:
            return self.own
        assert self.stack is not None
        return self.stack.member(0)

    def every_logits(self, x: Tensor) -> Tensor:
        """Logits of all classifiers, shape (n, 1 + K, C), the final one first, of items x, shape (n, ...)."""
        if self.stack is None:
            return self.first.logits(self.first.features(x)).unsqueeze(1)
        return self.stack.logits(self.stack.features(x))

    def drop_folds(self) -> None:
        """Drop the others once training is over, unless their probabilities are averaged."""
        if not self.averages:
            self.own, self.stack = self.first, None

    def state_dict(self, *args: Any, prefix: str = "", **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """The state, in which the first network also stands by itself: it is what stays in the end."""
        state: dict[str, Any] = super().state_dict(*args, prefix=prefix, **kwargs)
        if self.stack is not None and not self.averages:
            state |= {f"{prefix}own.{name}": t for name, t in self.first.state_dict().items()}
        return state

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        if self.stack is not None:
            for name in [name for name in state_dict if name.startswith(f"{prefix}own.")]:
                del state_dict[name]
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


class SigmoidCommittee(Committee):
    """A committee whose classes do not exclude each other: every class has a probability of its own."""

    def log_proba(self, h: Tensor) -> Tensor:
        """log p that a class belongs to an item, shape (n, C), of features h, shape (n, n_hidden)."""
        if not self.averages or self.stack is None:
            return F.logsigmoid(self.first.logits(h))
        members = h.view(len(h), -1, self._width).permute(1, 2, 0)
        log_p = F.logsigmoid(self.stack.logits(members))
        return log_p.logsumexp(dim=1) - math.log(self.stack.n_members)


class _Loop(nn.Module):
    """Copies of a module, one after the other: (n, ...) to (K, H, n)."""

    def __init__(self, module: nn.Module, n_members: int):
        super().__init__()
        self.members = nn.ModuleList(copy.deepcopy(module) for _ in range(n_members))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([member(x) for member in self.members]).transpose(1, 2)


def _stacked(layer: nn.Module, n_members: int) -> nn.Module:
    """K layers as one; ReLU and dropout work on any shape, with a mask for every member."""
    if isinstance(layer, nn.Linear):
        return StackedLinear(layer, n_members)
    if isinstance(layer, BatchNorm):
        return StackedBatchNorm(layer, n_members)
    if isinstance(layer, nn.ReLU):
        return nn.ReLU()  # in place on a view, autograd would copy the gradient
    return copy.deepcopy(layer)
