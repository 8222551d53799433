"""Methods of a fitted classifier about annotators and their labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from annotmix.approaches import Approach, get_approach, list_approaches
from annotmix.estimators.unseen_annotators import AnnotatorQuery, find_annotators
from annotmix.labels.annotations import Annotations
from annotmix.networks.features import Features
from annotmix.training.inference import (
    annotator_perf,
    annotator_proba,
    encode,
    log_posterior,
    mean_confusion,
    probabilities,
)


class AnnotatorMethods:
    """The methods of `MultiAnnotatorClassifier` about annotators and labels."""

    _approach: ClassVar[type[Approach]]
    module_: Approach
    classes_: NDArray[Any]
    _reference: torch.Tensor
    _check_X: Any
    _annotations: Any
    _encode: Any
    _device: Any

    # ---------------------------------------------------------------- annotators

    def predict_annotator_proba(
        self,
        X: Any,
        annotators: Iterable[Any] | None = None,
        *,
        annotator_features: pd.DataFrame | None = None,
        unseen: str = "error",
    ) -> NDArray[np.float64]:
        """Probability that an annotator gives a label, shape (n, m, C), for all or the named annotators.

        Parameters
        ----------
        X : array-like, shape (n, ...)
        annotators : iterable, optional
            Their names; by default the annotators of the training data, or of `annotator_features`.
        annotator_features : DataFrame, optional
            As in `fit`, for annotators who were absent in training; known ones keep their features.
        unseen : {"error", "population"}, default="error"
            Unknown annotators without features are refused, or get the mean of the known annotators, weighted
            by their labels (with more than 200 annotators, the mean of a sample).
        """
        h, _ = self._encode(X)
        query = self._query(annotators, annotator_features, unseen)
        return query.evaluate(lambda model, who: annotator_proba(model, h, who), axis=1)

    def predict_annotator_perf(
        self,
        X: Any,
        annotators: Iterable[Any] | None = None,
        *,
        annotator_features: pd.DataFrame | None = None,
        unseen: str = "error",
    ) -> NDArray[np.float64]:
        """Probability that an annotator's label is right, shape (n, m), for all or the named annotators.

        Parameters as in `predict_annotator_proba`.
        """
        h, _ = self._encode(X)
        query = self._query(annotators, annotator_features, unseen)
        return query.evaluate(lambda model, who: annotator_perf(model, h, who), axis=1)

    def annotator_confusion(
        self,
        X: Any = None,
        annotators: Iterable[Any] | None = None,
        *,
        annotator_features: pd.DataFrame | None = None,
        unseen: str = "error",
    ) -> NDArray[np.float64]:
        """Confusion matrices P(label k | true class c), shape (m, C, C), indexed [annotator, c, k].

        Averaged over the items X; without X over a sample of 256 training items. Row c weighs the
        items by their probability of class c. Other parameters as in `predict_annotator_proba`.
        """
        if X is None:
            check_is_fitted(self)
            h = self._reference
        else:
            h, _ = self._encode(X)
        query = self._query(annotators, annotator_features, unseen)
        return query.evaluate(lambda model, who: mean_confusion(model, h, who), axis=0)

    # ---------------------------------------------------------------- labels

    def consensus(self, X: Any, y: Any, *, items: Iterable[Any] | None = None) -> pd.DataFrame:
        """The most probable true class of every item, given the classifier and the labels it received.

        Labels count in full for most approaches, and less for annot-mix-plus (`AnnotMixPlus.label_weight`).
        `items.csv` of `annotmix fit` counts them by a tenth (`annotmix.estimators.beliefs`): it is less
        sure, and its label can be another.

        Returns
        -------
        DataFrame, one row per item
            `label`, its `probability`, `n_labels`, and `agreement`: the share of the item's labels that
            are this label (`nan` without labels).
        """
        annotations, log_q = self._posterior(X, y, items)
        best = log_q.argmax(dim=-1).cpu().numpy()
        return pd.DataFrame(
            {
                "label": self.classes_[best],
                "probability": probabilities(log_q).max(axis=1, initial=0.0),
                "n_labels": annotations.labels_per_item,
                "agreement": annotations.agreement_with(best),
            },
            index=pd.Index(annotations.items, name="item"),
        )

    def label_quality(self, X: Any, y: Any, *, items: Iterable[Any] | None = None) -> pd.DataFrame:
        """The probability that a label is right, given the classifier and all labels of its item.

        Labels count as in `consensus`; `labels.csv` of `annotmix fit` counts them by a tenth.

        Returns
        -------
        DataFrame, one row per label
            `item`, `annotator`, `label`, `weight` where labels have one, `probability`.
        """
        annotations, log_q = self._posterior(X, y, items)
        table = annotations.to_long()
        table["probability"] = probabilities(log_q)[annotations.item, annotations.label]
        return table

    # ---------------------------------------------------------------- inside

    def _posterior(self, X: Any, y: Any, items: Iterable[Any] | None) -> tuple[Annotations, torch.Tensor]:
        check_is_fitted(self)
        self._require_annotator_model()
        rows, names = self._check_X(X, items)
        annotations = self._annotations(y, len(rows), names)
        h, log_p = encode(self.module_, Features(rows, self._device))
        return annotations, log_posterior(self.module_, h, log_p, annotations)

    def _query(
        self, annotators: Iterable[Any] | None, features: pd.DataFrame | None, unseen: str
    ) -> AnnotatorQuery:
        self._require_annotator_model()
        return find_annotators(self, annotators, features, unseen)

    def _require_annotator_model(self) -> None:
        if self._approach.perf is None:
            with_one = [name for name in list_approaches() if get_approach(name).perf is not None]
            raise AttributeError(
                f"{self._approach.name} has no annotator model, so it knows nothing about annotators. "
                f"These approaches do: {', '.join(with_one)}."
            )
