"""The base class of approaches: a module with a loss and predictions about annotators."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from annotmix.labels.annotations import Annotations
from annotmix.labels.shrunken import Gold
from annotmix.networks import Classifier
from annotmix.networks.losses import annotator_log_proba

if TYPE_CHECKING:
    from annotmix.networks.features import Features

#: How an approach defines p_perf, the chance that an annotator's label is right (see docs/approaches.md).
PerfDefinition = Literal["diagonal", "agreement", "reliability"]

#: The methods that predict something about pairs (item, annotator).
About = Literal["annotator_log_proba", "annotator_perf", "log_confusion"]


class Batch(NamedTuple):
    """B items with all their P labels.

    Parameters
    ----------
    x : tensor, shape (B, ...)
        The items as the classifier takes them.
    item : tensor of int, shape (P,)
        Row of `x` that a label belongs to, ascending.
    annotator, label : tensor of int, shape (P,)
    rows : tensor of int, shape (B,)
        Numbers of the items in the training data.
    weight : tensor, shape (P,), optional
        Weight of each label; None stands for 1. With weights, an annotator may have several labels for an
        item: a distribution over classes. `annotmix.networks.losses.label_mean` is the weighted mean.
    """

    x: Tensor
    item: Tensor
    annotator: Tensor
    label: Tensor
    rows: Tensor | None = None
    weight: Tensor | None = None


class Approach(nn.Module):
    """A classification model, usually an annotator model beside it, and a loss for both.

    A subclass has a `name`, takes its hyper-parameters as keyword-only arguments of `__init__` (they become
    the parameters of its estimator), builds its annotator model there, and defines `loss`. Everything in
    `classifier` is the classification model; every other parameter belongs to the annotator model.

    An approach with an annotator model also sets `perf` and defines `log_confusion`. `annotator_log_proba`
    and `annotator_perf` follow from it, and are overridden where the approach defines them otherwise.

    The other members have defaults that most approaches keep.

    Parameters
    ----------
    classifier : Classifier
    n_annotators : int
    """

    #: Name in the registry, as in the paper.
    name: ClassVar[str]
    #: Definition of p_perf; None where there is no annotator model.
    perf: ClassVar[PerfDefinition | None] = None
    #: Rows of items whose true classes are known, and these classes; set before `begin`.
    gold: Gold | None = None
    #: The approach for label sets, items with several classes; None where there is none.
    for_sets: ClassVar[type[Approach] | None] = None

    def __init__(self, classifier: Classifier, n_annotators: int):
        super().__init__()
        self.classifier = classifier
        self.n_annotators = n_annotators

    @classmethod
    def hyper_parameters(cls) -> dict[str, inspect.Parameter]:
        """The keyword-only arguments of `__init__`."""
        parameters = inspect.signature(cls.__init__).parameters.values()
        return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}

    # ---------------------------------------------------------------- training

    @classmethod
    def prepare(cls, annotations: Annotations, rng: np.random.Generator) -> Annotations:
        """The labels to train on; two-stage approaches replace the labels of each item by a single one."""
        return annotations

    def begin(self, annotations: Annotations, rng: np.random.Generator) -> None:
        """Called once before training, with the labels to train on. Buffers set here are in checkpoints."""

    def loss(self, batch: Batch, rng: np.random.Generator) -> Tensor:
        """The loss of a batch, shape (); training follows its gradient, which autograd computes."""
        raise NotImplementedError

    def after_step(self) -> None:
        """Called after every step of the optimiser, for constraints on parameters."""

    def after_epoch(self, X: Features, done: float) -> None:
        """Called after every epoch with the training items and the share of the epochs that are done."""

    def unseen_log_proba(self, X: Features) -> Tensor | None:
        """log p̂ of the training items, shape (N, C), by classifiers that have not seen them.

        Called after training. None where an approach has no such classifiers: what its only one says about an
        item it has learnt is no evidence besides the item's labels.
        """
        return None

    def finish(self) -> None:
        """Drop the state that only training needs; called before a trained model is used or loaded."""

    # ---------------------------------------------------------------- annotators

    def log_confusion(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log P(label k | item, annotator, true class c), shape (n, C, C), indexed [c, k].

        Parameters
        ----------
        h : tensor, shape (n, H)
            Features of the items.
        annotator : tensor of int, shape (n,)
        """
        raise NotImplementedError

    def annotator_log_proba(self, h: Tensor, annotator: Tensor) -> Tensor:
        """log p_annot, shape (n, C): the label that the annotator will give."""
        return annotator_log_proba(self.classifier.log_proba(h), self.log_confusion(h, annotator))

    def annotator_perf(self, h: Tensor, annotator: Tensor) -> Tensor:
        """p_perf, shape (n,): the chance that the annotator's label is right."""
        if self.perf == "agreement":
            return (self.classifier.log_proba(h) + self.annotator_log_proba(h, annotator)).exp().sum(dim=-1)
        diagonal = torch.diagonal(self.log_confusion(h, annotator), dim1=-2, dim2=-1)
        return (self.classifier.log_proba(h) + diagonal).exp().sum(dim=-1)


class DescribedAnnotators(Approach):
    """An approach that also learns from features of annotators.

    Only its subclasses get `annotator_features`; `fit` refuses them for other approaches.
    """

    def describe_annotators(self, features: Tensor | None) -> None:
        """Take the features of the annotators, shape (M, F), or None; called once, after `__init__`."""
        raise NotImplementedError

    def for_unseen(self, features: Tensor, weight: Tensor) -> Approach:
        """The same model for other annotators, of whom only the features are known.

        Parameters
        ----------
        features : tensor, shape (m, F)
        weight : tensor, shape (M,)
            Weight of each known annotator where an average stands in.
        """
        raise NotImplementedError
