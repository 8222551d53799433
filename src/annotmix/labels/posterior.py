"""`annotmix.posterior`: the right label of every item, how sure that is, and whom to trust."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd
from scipy.special import betaincinv

from annotmix._common.words import some
from annotmix.labels import display
from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import Confusion, Floats, Labelled
from annotmix.labels.err_together import ErrTogether
from annotmix.labels.evidence import Answer, Evidence, Weights
from annotmix.labels.forms import labels_alone
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.named import class_table, confusion_table, gold_positions, index_of
from annotmix.labels.names import Index, locate
from annotmix.labels.soft_labels import SoftLabels

if TYPE_CHECKING:
    from annotmix.labels.set_posterior import MultiLabelPosterior

#: Probability that an annotator's accuracy lies in its interval.
COVERAGE = 0.95


@dataclass(frozen=True, eq=False)
class Posterior:
    """What labels and a classifier say together; the result of `posterior`.

    Attributes
    ----------
    annotations : Annotations
        The labels.
    answer : Answer
        Class probabilities, and the weights and counts behind them.
    """

    annotations: Annotations
    answer: Answer

    @property
    def weights(self) -> Weights:
        """How much classifier, labels and class shares count."""
        return self.answer.weights

    @property
    def helps(self) -> bool:
        """Whether the classifier was found to help, and counts."""
        return self.answer.helps

    @property
    def likelihood(self) -> pd.Series:
        """Mean log-likelihood of a label given the others of its item, from labels alone and with p̂.

        `rise` is the difference in standard errors.
        """
        a = self.answer
        return pd.Series({"labels": a.without, "with classifier": a.likelihood, "rise": a.rise})

    @cached_property
    def probabilities(self) -> pd.DataFrame:
        """Probability of every class, one row per item."""
        return class_table(self.answer.q, self.annotations.items, self.annotations.classes)

    @cached_property
    def consensus(self) -> pd.DataFrame:
        """One row per item: `label`, its `probability`, `n_labels`, `agreement` (see `consensus_table`)."""
        return consensus_table(self.annotations, self.answer.q)

    @cached_property
    def label_quality(self) -> pd.DataFrame:
        """One row per label: `item`, `annotator`, `label`, its `probability` of being right."""
        return quality_table(self.annotations, self.answer.q)

    @property
    def n_wrong(self) -> int:
        """Number of labels that are probably wrong: with a probability of being right below one half."""
        return n_probably_wrong(self.label_quality["probability"])

    @cached_property
    def annotators(self) -> pd.DataFrame:
        """One row per annotator: `accuracy`, its 95 % interval `low` and `high`, and `n_labels`."""
        return annotator_table(self.annotations, self.answer.q)

    @cached_property
    def dependence(self) -> ErrTogether:
        """Annotators who err together: pairs, groups, and the effective number of votes of every item."""
        return ErrTogether(self.annotations, self.answer)

    def confusion(self, annotators: Iterable[Any] | None = None) -> pd.DataFrame:
        """P(label | class) of all or the named annotators: `confusion().loc[annotator]` is a matrix.

        One row per `annotator` and true `class`, one column per `label`.
        """
        known = self.annotations.annotators
        who = np.arange(len(known)) if annotators is None else self._places(annotators)
        return confusion_table(self.counted.matrices(who), known[who], self.annotations.classes)

    def soft_labels(self, annotators: Iterable[Any] | None = None) -> SoftLabels:
        """The labels that a further annotator of the crowd, or of the named group, would give every item.

        For questions without a single truth; see `SoftLabels`.
        """
        group = None if annotators is None else self._places(annotators)
        return SoftLabels(self.annotations, self.answer, group)

    def _places(self, annotators: Iterable[Any]) -> Index:
        known = self.annotations.annotators
        names = np.array(list(annotators), dtype=object)
        who = locate(names, known)
        if (who < 0).any():
            raise ValueError(f"Unknown annotators: {some(names[who < 0])}. Known are {some(known)}.")
        return who

    @cached_property
    def counted(self) -> Confusion:
        """The confusion matrices of the annotators, counted with the probabilities of the items' classes."""
        return Confusion(Labelled(self.annotations), self.answer.q, self.answer.confusion.shrinkage)

    def __repr__(self) -> str:
        return f"Posterior({self._summary})"

    def _repr_html_(self) -> str:
        a = self.annotations
        tables = (self.consensus, a.n_items, "items"), (self.annotators, a.n_annotators, "annotators")
        return display.html("Posterior", self._summary, *tables)

    @property
    def _summary(self) -> str:
        source = "labels and classifier" if self.helps else "labels alone"
        return (
            f"{display.counts(self.annotations)}, of which {self.n_wrong} are probably wrong; from {source}"
        )


@overload
def posterior(
    labels: LabelSets, pred_probs: Any = None, gold: pd.Series | Mapping[Any, Any] | None = None
) -> MultiLabelPosterior: ...
@overload
def posterior(
    labels: Any, pred_probs: Any = None, gold: pd.Series | Mapping[Any, Any] | None = None
) -> Posterior: ...
def posterior(
    labels: Any, pred_probs: Any = None, gold: pd.Series | Mapping[Any, Any] | None = None
) -> Posterior | MultiLabelPosterior:
    """The right label of every item with an honest probability, and the reliability of every annotator.

    Parameters
    ----------
    labels : Annotations, long table, label matrix, soft labels or LabelSets
        As `fit` takes them.
    pred_probs : array or DataFrame, shape (n_items, n_classes), optional
        Class probabilities of the items, in the order of `labels.items` and `labels.classes`, from a
        classifier that has *not* learnt from them: out of fold, for example by scikit-learn's
        `cross_val_predict(…, method="predict_proba")`. A DataFrame is matched by its index and columns. For
        `LabelSets`: the probability of each class on its own; rows need not sum to 1.
    gold : Series or dict, optional
        Item name → true class, where it is known. These items keep their class, count for annotators, and
        decide the weights where they are enough. For `LabelSets`: item name → list of its classes.

    Returns
    -------
    Posterior, or MultiLabelPosterior of `LabelSets`
        With `consensus`, `label_quality`, `annotators`, `confusion`, `dependence`, `weights` and
        `likelihood`. Without `pred_probs` it is a shrunken Dawid–Skene.

    Examples
    --------
    >>> result = posterior([["cat", "cat", "dog"], ["dog", "dog", "dog"], ["cat", "cat", "cat"]])
    >>> result.consensus["label"].tolist()
    ['cat', 'dog', 'cat']
    """
    if isinstance(labels, LabelSets):
        from annotmix.labels.set_posterior import set_posterior  # it is built on this module

        return set_posterior(labels, pred_probs, gold)
    items = pred_probs.index if isinstance(pred_probs, pd.DataFrame) else None
    annotations = labels_alone(labels, items)
    p = None if pred_probs is None else _probabilities(pred_probs, annotations)
    evidence = Evidence(annotations, gold_positions(annotations, gold))
    return Posterior(annotations, evidence.combine(p))


def consensus_table(annotations: Annotations, q: Floats) -> pd.DataFrame:
    """The most probable class of every item, `label`, and its `probability`.

    `n_labels` is the number of the item's labels, `agreement` the share of them that are this label (`nan`
    without labels).
    """
    best = q.argmax(axis=1) if len(q) else np.zeros(0, np.int64)
    return pd.DataFrame(
        {
            "label": annotations.classes[best],
            "probability": q.max(axis=1, initial=0.0),
            "n_labels": annotations.labels_per_item,
            "agreement": annotations.agreement_with(best),
        },
        index=index_of(annotations.items, "item"),
    )


def quality_table(annotations: Annotations, q: Floats) -> pd.DataFrame:
    """The labels as a long table, each with the `probability` that it is right."""
    return annotations.to_long().assign(probability=q[annotations.item, annotations.label])


def n_probably_wrong(probability: Any) -> int:
    """Number of labels with a probability of being right below one half."""
    return int((np.asarray(probability) < 0.5).sum())


def annotator_table(annotations: Annotations, q: Floats) -> pd.DataFrame:
    """The share of right labels of every annotator with its interval, best first by its lower end."""
    a = annotations
    weight = np.ones(len(a)) if a.weight is None else a.weight
    sure, M = q[a.item, a.label], a.n_annotators
    n, right = np.bincount(a.annotator, weight, M), np.bincount(a.annotator, weight * sure, M)
    unsure = np.bincount(a.annotator, weight * sure * (1 - sure), M)
    mean, low, high = accuracy_interval(n, right, unsure)
    table = pd.DataFrame(
        {"accuracy": mean, "low": low, "high": high, "n_labels": a.labels_per_annotator},
        index=index_of(a.annotators, "annotator"),
    )
    return table.sort_values("low", ascending=False, kind="stable")


def accuracy_interval(n: Any, right: Any, unsure: Any) -> tuple[Floats, Floats, Floats]:
    """Share of right labels, and the ends of its 95 % interval, of shape (M,) each.

    With r_p the probability that label p is right, r = Σ r_p of n labels are expected to be. The interval is
    that of a Beta distribution with the mean (r + 1/2) / (n + 1) of Jeffreys' and the variance of Jeffreys'
    plus Σ r_p (1 − r_p) / (n + 1)², as it is not known which labels are right.

    Parameters
    ----------
    n, right, unsure : array, shape (M,)
        Number of labels, Σ r_p and Σ r_p (1 − r_p) over them.
    """
    mean = (right + 0.5) / (n + 1)
    variance = mean * (1 - mean) / (n + 2) + unsure / (n + 1) ** 2
    return mean, *beta_interval(mean, variance)


def beta_interval(mean: Any, variance: Any) -> tuple[Floats, Floats]:
    """The ends of the 95 % interval of Beta distributions with these means and variances."""
    size = np.maximum(mean * (1 - mean) / variance - 1, 1e-3)
    low, high = (
        betaincinv(mean * size, (1 - mean) * size, p) for p in ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
    )
    return low, high


def _probabilities(pred_probs: Any, annotations: Annotations) -> Floats:
    shape = (annotations.n_items, annotations.n_classes)
    if isinstance(pred_probs, pd.DataFrame):
        for what, names, wanted in (
            ("row for items", pred_probs.index, annotations.items),
            ("column for classes", pred_probs.columns, annotations.classes),
        ):
            if (missing := locate(wanted, np.asarray(names, dtype=object)) < 0).any():
                raise ValueError(f"pred_probs has no {what} {list(np.asarray(wanted)[missing][:5])}.")
        pred_probs = pred_probs.loc[list(annotations.items), list(annotations.classes)]
    p = np.asarray(pred_probs, dtype=np.float64)
    if p.shape != shape:
        raise ValueError(
            f"pred_probs must have one row per item and one column per class, shape {shape}, found {p.shape}."
        )
    if not (np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(axis=1), 1, atol=1e-3)):
        bad = int(
            (~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1)) | (abs(p.sum(axis=1) - 1) > 1e-3)).argmax()
        )
        raise ValueError(
            f"pred_probs must hold probabilities that sum to 1 in every row; row {bad} is {p[bad]}."
        )
    return p
