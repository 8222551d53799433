"""What every approach is: a module with a loss, and what it says about annotators."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from annotmix.labels.annotations import Annotations
from annotmix.networks import Classifier
from annotmix.networks.losses import annotator_log_proba

if TYPE_CHECKING:
    from annotmix.networks.features import Features

#: How an approach defines p_perf, the chance that an annotator's label is right (see docs/approaches.md).
PerfDefinition = Literal["diagonal", "agreement", "reliability"]

#: What can be asked about pairs (instance, annotator): the methods of this name.
About = Literal["annotator_log_proba", "annotator_perf", "log_confusion"]


class Batch(NamedTuple):
    """B instances with all their P labels.

    Parameters
    ----------
    x : tensor, shape (B, ...)
        The instances.
    item : tensor of int, shape (P,)
        Row of `x` that a label belongs to, ascending.
    annotator, label : tensor of int, shape (P,)
    rows : tensor of int, shape (B,)
        Which items of the training data the instances are.
    weight : tensor, shape (P,), optional
        How much each label counts; None is one each. With weights, an annotator may have several labels for
        an instance: a distribution over classes. `annotmix.networks.losses.label_mean` is
        the mean that respects them.
    own_rows, own_labels : slice
        Which of the instances and labels this process answers for: all, unless there are several processes
        and the approach mixes.
    """

    x: Tensor
    item: Tensor
    annotator: Tensor
    label: Tensor
    rows: Tensor | None = None
    weight: Tensor | None = None
    own_rows: slice = slice(None)
    own_labels: slice = slice(None)


class Approach(nn.Module):
    """A classification model, usually an annotator model beside it, and a loss for both.

    A subclass names itself, takes its hyper-parameters as keyword-only arguments of `__init__` (they become
    the parameters of its estimator), builds its annotator model there, and writes `loss`. Everything in
    `classifier` is the classification model; every other parameter belongs to the annotator model.

    An approach with an annotator model also sets `perf` and writes `log_confusion`; the rest of what can be
    asked about annotators follows from it, and is overridden where the approach defines it otherwise.

    Parameters
    ----------
    classifier : Classifier
    n_annotators : int
    """

    #: Name in the registry, as in the paper.
    name: ClassVar[str]
    #: Definition of p_perf; None where there is no annotator model.
    perf: ClassVar[PerfDefinition | None] = None
    #: Whether labels or instances of a batch are mixed with each other. In several processes `loss` then gets
    #: the whole batch, and after mixing goes on with `batch.own_rows` or `batch.own_labels`.
    mixes: ClassVar[bool] = False
    #: What the loss is a mean over; several processes weigh their parts of a batch by it.
    mean_over: ClassVar[Literal["labels", "items"]] = "labels"

    def __init__(self, classifier: Classifier, n_annotators: int):
        super().__init__()
        self.classifier = classifier
        self.n_annotators = n_annotators

    @classmethod
    def hyper_parameters(cls) -> dict[str, inspect.Parameter]:
        """The keyword-only arguments of `__init__`."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}

    @classmethod
    def prepare(cls, annotations: Annotations, rng: np.random.Generator) -> Annotations:
        """What is trained on; two-stage approaches replace the labels of each item by one of their own."""
        return annotations

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """The loss of a batch, shape ()."""
        raise NotImplementedError

    def gradients(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """The loss of a batch, shape (); its gradients are left with the parameters, which have none before.

        An approach may write them out where that is quicker.
        """
        loss = self.loss(batch, rng)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def forward(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """The loss of a batch: `forward`, so that wrappers around the module see the training step."""
        return self.loss(batch, rng)

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log P(label k | instance, annotator, true class c), shape (n, C, C), indexed [c, k].

        Parameters
        ----------
        h : tensor, shape (n, H)
            Features of the instances.
        annotator : tensor of int, shape (n,)
        """
        raise NotImplementedError

    def annotator_log_proba(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log p_annot, shape (n, C): what label the annotator will give."""
        return annotator_log_proba(self.classifier.log_proba(h), self.log_confusion(h, annotator))

    def annotator_perf(self, h: Tensor, annotator: Tensor) -> Tensor:
        """p_perf, shape (n,): the chance that the annotator's label is right."""
        if self.perf == "agreement":
            return (self.classifier.log_proba(h) + self.annotator_log_proba(h, annotator)).exp().sum(dim=-1)
        diagonal = torch.diagonal(self.log_confusion(h, annotator), dim1=-2, dim2=-1)
        return (self.classifier.log_proba(h) + diagonal).exp().sum(dim=-1)

    def numbers_a_pair(self, about: About) -> int:
        """How many numbers an answer takes on the way for every pair: by default a confusion matrix."""
        return self.classifier.n_classes**2

    def label_weight(self, n_labels: Tensor) -> Tensor:
        """Exponent of a label's likelihood where it meets the classifier, by how many labels its item has.

        One: labels of an item are independent given its class. Less, where an approach thinks otherwise.
        """
        return torch.ones_like(n_labels, dtype=torch.float32)

    def describe_annotators(self, features: Tensor | None) -> None:
        """Take what is known about the annotators, shape (M, F), or None; called once, after `__init__`.

        An approach that does not override it never gets any: `fit` refuses annotator_features for it.
        """

    def for_unseen(self, features: Tensor, weight: Tensor) -> Approach:
        """The same model for other annotators, of whom only the features are known.

        Parameters
        ----------
        features : tensor, shape (m, F)
        weight : tensor, shape (M,)
            How much each known annotator counts where an average stands in.
        """
        raise NotImplementedError

    def freeze(self, *parts: str) -> None:
        """Leave parts of the annotator model as they start; everything else is trained."""
        for part in parts:
            getattr(self, part).requires_grad_(False)

    def begin(self, annotations: Annotations, rng: np.random.Generator) -> None:
        """Called once before training, with the labels that are trained on."""

    def after_step(self) -> None:
        """Called after every step of the optimiser, for constraints on parameters."""

    def after_epoch(self, X: Features, done: float) -> None:
        """Called after every epoch with the training instances and the share of the epochs that are done."""

    def finish(self) -> None:
        """Let go of what only training needs; called before a trained model is used or loaded."""

    def parameter_groups(self, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """The two models as groups for the optimiser; weight decay is for the classification model only."""
        groups: dict[bool, list[nn.Parameter]] = {True: [], False: []}
        for name, parameter in self.named_parameters():
            if parameter.requires_grad:
                groups[name.startswith("classifier.")].append(parameter)
        decay = {True: weight_decay, False: 0.0}
        return [{"params": p, "lr": lr, "weight_decay": decay[k]} for k, p in groups.items() if p]
