"""Several copies of a classifier that train side by side on the same items.

K small networks one after the other spend their time on calls, not on arithmetic. The layers of K MLPs become
one layer here: K weight matrices in one tensor, multiplied at once. Any other backbone is applied in a loop,
with the same result.
"""

from __future__ import annotations

import copy
import math

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
        if isinstance(classifier.backbone, MLP):
            self.features = nn.Sequential(*[_stacked(layer, n_members) for layer in classifier.backbone])
        else:
            self.features = _Loop(classifier.backbone, n_members)
        self.head = StackedLinear(classifier.head, n_members)

    def forward(self, x: Tensor) -> Tensor:
        """log p of every member, shape (n, K, C), for items x, shape (n, ...)."""
        return F.log_softmax(self.logits(x), dim=-1)

    def logits(self, x: Tensor) -> Tensor:
        """Logits of every member, shape (n, K, C), for items x, shape (n, ...)."""
        return self.head(self.features(x)).float()  # type: ignore[no-any-return]


class Committee(Classifier):
    """A classifier with K copies beside it, which train at the same time.

    Parameters
    ----------
    own : Classifier
        The original of all others.
    n_others : int
        K, which may be 0.
    averages : bool
        Whether class probabilities are averaged over all networks, or come from `own` alone.
    """

    def __init__(self, own: Classifier, n_others: int, averages: bool = False):
        nn.Module.__init__(self)
        self.own, self.averages = own, averages and n_others > 0
        self.others = ClassifierStack(own, n_others) if n_others else None

    @property
    def n_hidden(self) -> int:
        """Width of the features: of one network, or of all side by side where they are averaged."""
        return self.own.n_hidden * (1 + self._n_averaged)

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return self.own.n_classes

    @property
    def _n_averaged(self) -> int:
        return self.others.n_members if self.averages and self.others is not None else 0

    def features(self, x: Tensor) -> Tensor:
        """Features, shape (n, n_hidden), of items x, shape (n, ...)."""
        h = self.own.features(x)
        if not self.averages or self.others is None:
            return h
        return torch.cat([h, self.others.features(x).flatten(1)], dim=1)

    def every_log_proba(self, x: Tensor) -> Tensor:
        """log p of all classifiers, shape (n, 1 + K, C), `own` first, for items x, shape (n, ...)."""
        assert self.others is not None
        own = self.own.logits(self.own.features(x)).unsqueeze(1)
        return F.log_softmax(torch.cat([own, self.others.logits(x)], dim=1), dim=-1)

    def log_proba(self, h: Tensor) -> Tensor:
        """log p, shape (n, C), of features h, shape (n, n_hidden)."""
        if not self.averages or self.others is None:
            return self.own.log_proba(h)
        width = self.own.n_hidden
        members = h[:, width:].reshape(len(h), -1, width)
        log_p = F.log_softmax(self.others.head(members).float(), dim=-1)
        every = torch.cat([self.own.log_proba(h[:, :width]).unsqueeze(1), log_p], dim=1)
        return every.logsumexp(dim=1) - math.log(every.shape[1])

    def every_logits(self, x: Tensor) -> Tensor:
        """Logits of all classifiers, shape (n, 1 + K, C), `own` first, for items x, shape (n, ...)."""
        own = self.own.logits(self.own.features(x)).unsqueeze(1)
        return own if self.others is None else torch.cat([own, self.others.logits(x)], dim=1)

    def drop_folds(self) -> None:
        """Drop the others once training is over, unless their probabilities are averaged."""
        if not self.averages:
            self.others = None


class SigmoidCommittee(Committee):
    """A committee whose classes do not exclude each other: every class has a probability of its own."""

    def log_proba(self, h: Tensor) -> Tensor:
        """log p that a class belongs to an item, shape (n, C), of features h, shape (n, n_hidden)."""
        if not self.averages or self.others is None:
            return F.logsigmoid(self.own.logits(h))
        width = self.own.n_hidden
        members = h[:, width:].reshape(len(h), -1, width)
        logits = torch.cat(
            [self.own.logits(h[:, :width]).unsqueeze(1), self.others.head(members).float()], dim=1
        )
        return F.logsigmoid(logits).logsumexp(dim=1) - math.log(logits.shape[1])


class _Loop(nn.Module):
    """Copies of a module, one after the other: (n, ...) to (n, K, H)."""

    def __init__(self, module: nn.Module, n_members: int):
        super().__init__()
        self.members = nn.ModuleList(copy.deepcopy(module) for _ in range(n_members))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([member(x) for member in self.members], dim=1)


def _stacked(layer: nn.Module, n_members: int) -> nn.Module:
    """K layers as one; ReLU and dropout work on any shape, with a mask for every member."""
    if isinstance(layer, nn.Linear):
        return StackedLinear(layer, n_members)
    if isinstance(layer, BatchNorm):
        return StackedBatchNorm(layer, n_members)
    return copy.deepcopy(layer)
