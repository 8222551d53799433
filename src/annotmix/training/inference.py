"""What a trained model says, in pieces that fit into memory.

Pairs (instance, annotator) are worked off in chunks, so that no more than about `PAIR_BUDGET` numbers about
pairs exist at a time, however many annotators and classes there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from annotmix.approaches.base import About, Approach
from annotmix.labels import metrics
from annotmix.labels.annotations import Annotations
from annotmix.networks.features import Features

#: Numbers about pairs, confusion matrices and features, that may exist at a time (64 MB of float32).
PAIR_BUDGET = 1 << 24

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class EvaluationSet:
    """Instances with true classes (codes, shape (n,)) and the labels of annotators, either may be absent."""

    X: Features
    y: NDArray[np.int64] | None = None
    annotations: Annotations | None = None

    def to(self, device: torch.device) -> EvaluationSet:
        """The same set on another device."""
        return replace(self, X=self.X.to(device))


@torch.inference_mode()
def encode(model: Approach, X: Features) -> tuple[Tensor, Tensor]:
    """Features h, shape (n, H), and class log-probabilities, shape (n, C)."""
    model.eval()
    h = torch.cat([model.classifier.features(x).float() for _, x in X.chunks()])
    return h, model.classifier.log_proba(h)


@torch.inference_mode()
def about_pairs(
    model: Approach, about: About, h: Tensor, row: NDArray[np.int64], annotator: NDArray[np.int64]
) -> Iterator[tuple[slice, Tensor]]:
    """What the model says about pairs (row of h, annotator), a chunk at a time."""
    model.eval()
    step = max(1, PAIR_BUDGET // (model.classifier.n_classes**2 + h.shape[1]))
    for first in range(0, len(row), step):
        chunk = slice(first, first + step)
        yield chunk, getattr(model, about)(h[_index(row[chunk], h)], _index(annotator[chunk], h))


def annotator_proba(model: Approach, h: Tensor, who: NDArray[np.int64]) -> NDArray[np.float64]:
    """Probability that an annotator gives a label, shape (n, m, C)."""
    result = np.empty((len(h) * len(who), model.classifier.n_classes))
    for chunk, log_p in _grid(model, "annotator_log_proba", h, who):
        result[chunk] = probabilities(log_p)
    return result.reshape(len(h), len(who), model.classifier.n_classes)


def annotator_perf(model: Approach, h: Tensor, who: NDArray[np.int64]) -> NDArray[np.float64]:
    """Probability that an annotator's label is right, shape (n, m)."""
    result = np.empty(len(h) * len(who))
    for chunk, perf in _grid(model, "annotator_perf", h, who):
        result[chunk] = perf.double().cpu().numpy()
    return result.reshape(len(h), len(who))


def probabilities(log_p: Tensor) -> NDArray[np.float64]:
    """Probabilities that sum to one in double precision."""
    return torch.softmax(log_p.double(), dim=-1).cpu().numpy()


def _grid(model: Approach, about: About, h: Tensor, who: NDArray[np.int64]) -> Iterator[tuple[slice, Tensor]]:
    """About every instance and annotator, instance first."""
    rows = np.repeat(np.arange(len(h)), len(who))
    return about_pairs(model, about, h, rows, np.tile(who, len(h)))


@torch.inference_mode()
def mean_confusion(model: Approach, h: Tensor, annotators: NDArray[np.int64]) -> NDArray[np.float64]:
    """Confusion matrix of every annotator over the instances, shape (m, C, C).

    Row c averages over instances weighted by their probability of class c: P(label k | true class c).
    """
    weight = model.classifier.log_proba(h).double().exp()
    n = len(h)
    total = np.zeros((len(annotators), weight.shape[1], weight.shape[1]))
    for m, annotator in enumerate(annotators):
        pairs = about_pairs(model, "log_confusion", h, np.arange(n), np.full(n, annotator))
        for chunk, confusion in pairs:
            total[m] += torch.einsum("nc,nck->ck", weight[chunk], confusion.double().exp()).cpu().numpy()
    norm = weight.sum(dim=0).cpu().numpy()[None, :, None]
    result: NDArray[np.float64] = total / np.maximum(norm, np.finfo(float).tiny)
    return result


def scores(model: Approach, data: EvaluationSet) -> dict[str, float]:
    """clf-acc where true classes are known, annot-acc and label-ll where labels are, perf-auroc with both."""
    h, log_p = encode(model, data.X)
    result: dict[str, float] = {}
    if data.y is not None:
        result["clf-acc"] = metrics.clf_acc(data.y, log_p.argmax(dim=-1).cpu().numpy())
    labels = data.annotations
    if labels is not None and len(labels) and model.perf is not None:
        pairs = about_pairs(model, "annotator_log_proba", h, labels.item, labels.annotator)
        predicted, likelihood = [], []
        for chunk, said in pairs:
            predicted.append(said.argmax(dim=-1))
            likelihood.append(said.gather(1, _index(labels.label[chunk], h).unsqueeze(1)).squeeze(1))
        result["annot-acc"] = metrics.annot_acc(
            labels.label, torch.cat(predicted).cpu().numpy(), labels.weight
        )
        result["label-ll"] = metrics.label_ll(torch.cat(likelihood).cpu().numpy(), labels.weight)
        if data.y is not None:
            perf = [p for _, p in about_pairs(model, "annotator_perf", h, labels.item, labels.annotator)]
            correct = labels.label == data.y[labels.item]
            result["perf-auroc"] = metrics.perf_auroc(correct, torch.cat(perf).cpu().numpy(), labels.weight)
    return result


def _index(values: NDArray[Any], like: Tensor) -> Tensor:
    return torch.tensor(np.ascontiguousarray(values), device=like.device)
