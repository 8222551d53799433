"""The beliefs of a fitted model about items and annotators, given the labels.

With p the classifier's probabilities and Π_m the annotator model, an item that got the labels z_m has

    q_c ∝ p_c · ∏_m Π_m[c, z_m]^β,

a label of weight w having the exponent β w.

The classifier was trained on these very labels, so p holds their evidence already; with β = 1 it would count
twice, and q be far too sure. An annotator is judged by the q of the other labels, as a label is no evidence
for itself. An approach without an annotator model has q = p.

The files and the report of `annotmix fit` use these beliefs, with β = EVIDENCE for every approach.
`clf.consensus` and `clf.label_quality` are not: there β is the approach's own `label_weight`, 1 for most and
max(1/2, 1/number of labels) for annot-mix-plus. On the same model their probabilities are nearer to 0 and 1,
and where classifier and labels disagree the label can be another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from annotmix.estimators.multi_annotator import MultiAnnotatorClassifier
from annotmix.labels.annotations import Annotations
from annotmix.networks.features import Features
from annotmix.training.inference import PAIR_BUDGET, about_pairs, encode

Floats = NDArray[np.float64]
#: Labels by the average annotator that every annotator's confusion matrix begins with, for each class.
PSEUDO_LABELS = 2.0
#: β, the weight of the labels beside the classifier; chosen with the true labels of mgc and labelme in view.
#: annot-mix ranks annotators best at 0.1 on mgc and at 0 on labelme; 1 is worst on both.
EVIDENCE = 0.1


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
    others : array, shape (n_labels, C)
        For every label, the probabilities of its item's classes after the labels of all others.
    """

    model: MultiAnnotatorClassifier
    annotations: Annotations
    h: Tensor
    p: Floats
    q: Floats
    others: NDArray[np.float32]

    @property
    def knows_annotators(self) -> bool:
        """Whether the approach has an annotator model."""
        return self.model._approach.perf is not None

    @cached_property
    def right(self) -> Floats:
        """Probability that each label is right, shape (n_labels,)."""
        return np.asarray(self.q[self.annotations.item, self.annotations.label])

    @cached_property
    def right_by_others(self) -> Floats:
        """Probability that each label is right by all other evidence, shape (n_labels,)."""
        rows = np.arange(len(self.annotations))
        return np.asarray(self.others[rows, self.annotations.label], dtype=np.float64)

    @cached_property
    def counts(self) -> Floats:
        """Expected number of items of class c that annotator m called k, shape (M, C, C).

        The class is judged by all other evidence.
        """
        a = self.annotations
        rows = np.arange(len(a))
        said = csr_array(
            (np.ones(len(a)) if a.weight is None else a.weight, (a.annotator * a.n_classes + a.label, rows)),
            shape=(a.n_annotators * a.n_classes, len(a)),
        )
        by_label = np.asarray(said @ self.others, dtype=np.float64)
        return by_label.reshape(a.n_annotators, a.n_classes, a.n_classes).transpose(0, 2, 1)

    @cached_property
    def average(self) -> Floats:
        """P(label k | true class c) over the labels of all annotators, shape (C, C)."""
        total = self.counts.sum(axis=0) + np.eye(self.annotations.n_classes)
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    @cached_property
    def confusion(self) -> Floats:
        """P(label k | true class c) of every annotator, shape (M, C, C).

        From the expected counts, drawn towards the average annotator by two labels per class, so that few
        labels give no extreme estimates.
        """
        smooth = self.counts + PSEUDO_LABELS * self.average
        return np.asarray(smooth / smooth.sum(axis=2, keepdims=True))

    def confusion_on(
        self, row: NDArray[np.int64], annotator: NDArray[np.int64]
    ) -> Iterator[tuple[slice, Floats]]:
        """Confusion matrices of pairs (item, annotator), in chunks of shape (n, C, C)."""
        if self.knows_annotators:
            for chunk, log_pi in about_pairs(self.model.module_, "log_confusion", self.h, row, annotator):
                yield chunk, log_pi.double().exp().cpu().numpy()
            return
        step = max(1, PAIR_BUDGET // self.annotations.n_classes**2)
        for first in range(0, len(row), step):
            chunk = slice(first, first + step)
            yield chunk, self.confusion[annotator[chunk]]


def beliefs(model: MultiAnnotatorClassifier, X: Any, y: Any, items: Any = None) -> Beliefs:
    """The beliefs of a fitted model about X and the labels y, in any form that `fit` takes.

    Parameters
    ----------
    model : MultiAnnotatorClassifier
    X : array-like, shape (n, ...)
    y : label matrix, long table or Annotations
    items : iterable, optional
        Names of the rows of X.
    """
    rows, names = model._check_X(X, items)
    annotations = model._annotations(y, len(rows), names)
    h, log_p = encode(model.module_, Features(rows, model._device))
    joint = log_p.double().cpu().numpy()
    if model._approach.perf is None:
        p = _softmax(joint)
        return Beliefs(model, annotations, h, p, p, p[annotations.item].astype(np.float32))
    said = np.empty((len(annotations), joint.shape[1]), dtype=np.float32)
    pairs = about_pairs(model.module_, "log_confusion", h, annotations.item, annotations.annotator)
    for chunk, log_pi in pairs:
        label = annotations.label[chunk]
        said[chunk] = EVIDENCE * log_pi.cpu().numpy()[np.arange(len(label)), :, label]
        if annotations.weight is not None:
            said[chunk] *= annotations.weight[chunk, None]
    log_q = joint.copy()
    np.add.at(log_q, annotations.item, said)
    own = said
    if annotations.weight is not None:  # all labels of the annotator for the item
        own = np.zeros_like(said)
        np.add.at(own, annotations.pair, said)
        own = own[annotations.pair]
    others = _softmax(log_q[annotations.item] - own).astype(np.float32)
    return Beliefs(model, annotations, h, _softmax(joint), _softmax(log_q), others)


def _softmax(log: Floats) -> Floats:
    shifted = np.exp(log - log.max(axis=1, keepdims=True, initial=-np.inf))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
