"""What a fitted model believes about items and annotators once it has seen the labels.

With p the classifier's probabilities and Π the annotator model, an item's classes have the posterior
q_c ∝ p_c Π_m Π_m[c, z_m] over the labels z_m it got. An approach without an annotator model has q = p.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from annotmix.annotations import Annotations
from annotmix.inference import PAIR_BUDGET, Features, about_pairs, encode, log_posterior
from annotmix.multi_annotator import MultiAnnotatorClassifier

Floats = NDArray[np.float64]
#: Labels by the average annotator that every annotator's confusion matrix begins with, for each class.
PSEUDO_LABELS = 2.0


@dataclass(frozen=True, eq=False)
class Beliefs:
    """A model's beliefs about the items of `annotations`.

    Attributes
    ----------
    model : MultiAnnotatorClassifier
    annotations : Annotations
        Aligned with the model: row n of X is item n, annotators and classes are the model's.
    h : tensor, shape (N, H)
        Features of the items.
    p, q : array, shape (N, C)
        Probabilities of the classes by the classifier alone, and after the labels.
    """

    model: MultiAnnotatorClassifier
    annotations: Annotations
    h: Tensor
    p: Floats
    q: Floats

    @property
    def knows_annotators(self) -> bool:
        """Whether the approach has an annotator model."""
        return self.model._approach.perf is not None

    @cached_property
    def right(self) -> Floats:
        """Probability that each label is right, shape (n_labels,)."""
        return np.asarray(self.q[self.annotations.item, self.annotations.label])

    @cached_property
    def counts(self) -> Floats:
        """Expected number of items of class c that annotator m called k, shape (M, C, C)."""
        a = self.annotations
        n_classes = a.n_classes
        said = csr_array(
            (np.ones(len(a)), (a.annotator * n_classes + a.label, a.item)),
            shape=(a.n_annotators * n_classes, a.n_items),
        )
        by_label = np.asarray(said @ self.q).reshape(a.n_annotators, n_classes, n_classes)
        return np.ascontiguousarray(by_label.transpose(0, 2, 1))

    @cached_property
    def confusion(self) -> Floats:
        """P(label k | true class c) of every annotator, shape (M, C, C).

        From the expected counts, drawn towards the average annotator by two labels a class, so that little
        evidence makes no extreme claims.
        """
        total = self.counts.sum(axis=0) + np.eye(self.annotations.n_classes)
        average = total / total.sum(axis=1, keepdims=True)
        smooth = self.counts + PSEUDO_LABELS * average
        return np.asarray(smooth / smooth.sum(axis=2, keepdims=True))

    def confusion_on(
        self, row: NDArray[np.int64], annotator: NDArray[np.int64]
    ) -> Iterator[tuple[slice, Floats]]:
        """Confusion matrices of pairs (item, annotator), a chunk of shape (n, C, C) at a time."""
        if self.knows_annotators:
            for chunk, log_pi in about_pairs(self.model.module_, "log_confusion", self.h, row, annotator):
                yield chunk, log_pi.double().exp().cpu().numpy()
            return
        step = max(1, PAIR_BUDGET // self.annotations.n_classes**2)
        for first in range(0, len(row), step):
            chunk = slice(first, first + step)
            yield chunk, self.confusion[annotator[chunk]]


def beliefs(model: MultiAnnotatorClassifier, X: Any, y: Any, tasks: Any = None) -> Beliefs:
    """What a fitted model believes about X and the labels y, which `fit` would also take.

    Parameters
    ----------
    model : MultiAnnotatorClassifier
    X : array-like, shape (n, ...)
    y : label matrix, long table or Annotations
    tasks : iterable, optional
        Names of the rows of X.
    """
    rows, names = model._check_X(X, tasks)
    annotations = model._annotations(y, len(rows), names)
    h, log_p = encode(model.module_, Features(rows, model._device))
    log_q = log_p
    if model._approach.perf is not None:
        log_q = log_posterior(model.module_, h, log_p, annotations)
    p, q = (torch.softmax(log.double(), dim=-1).cpu().numpy() for log in (log_p, log_q))
    return Beliefs(model, annotations, h, p, q)
