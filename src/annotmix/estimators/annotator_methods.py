"""Methods of a fitted classifier about annotators and their labels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from annotmix.approaches import Approach, get_approach, list_approaches
from annotmix.estimators.learnt_items import LearntItems
from annotmix.estimators.unseen_annotators import AnnotatorQuery, find_annotators
from annotmix.labels.named import annotator_columns, confusion_table, label_table
from annotmix.labels.posterior import Posterior
from annotmix.networks.features import Features
from annotmix.training.inference import (
    annotator_perf,
    annotator_proba,
    encode,
    mean_confusion,
)


class AnnotatorMethods:
    """The methods of `MultiAnnotatorClassifier` about annotators and labels."""

    _approach: ClassVar[type[Approach]]
    module_: Approach
    progress: bool
    classes_: NDArray[Any]
    unseen_proba_: NDArray[np.float32]
    _learnt: LearntItems
    _reference: torch.Tensor
    _check_X: Any
    _annotations: Any
    _device: Any
    _learnt_sets: bool
    _probabilities: Any
    _set_posterior: Any
    _sets_of: Any

    # ---------------------------------------------------------------- annotators

    def predict_annotator_proba(
        self,
        X: Any,
        annotators: Iterable[Any] | None = None,
        *,
        items: Iterable[Any] | None = None,
        annotator_features: pd.DataFrame | None = None,
        unseen: str = "error",
    ) -> pd.DataFrame:
        """Probability that an annotator gives a label to an item, for all or the named annotators.

        Parameters
        ----------
        X : array-like, shape (n, ...)
        annotators : iterable, optional
            Their names; by default the annotators of the training data, or of `annotator_features`.
        items : iterable, optional
            Names of the rows of X.
        annotator_features : DataFrame, optional
            As in `fit`, for annotators who were absent in training; known ones keep their features.
        unseen : {"error", "population"}, default="error"
            Unknown annotators without features are refused, or get the mean of the known annotators, weighted
            by their labels (with more than 200 annotators, the mean of a sample).

        Returns
        -------
        DataFrame, one row per `item` and `annotator`, one column per `label`
            `table.loc[(item, annotator)]` is a distribution, `table.xs(annotator, level="annotator")` the
            distributions of one annotator; `table.to_numpy().reshape(n, m, C)` is the array.
        """
        h, names = self._features_of(X, items)
        query = self._query(annotators, annotator_features, unseen)
        proba = query.evaluate(lambda model, who: annotator_proba(model, h, who), axis=1)
        return label_table(proba, names, query.names, self.classes_)

    def predict_annotator_perf(
        self,
        X: Any,
        annotators: Iterable[Any] | None = None,
        *,
        items: Iterable[Any] | None = None,
        annotator_features: pd.DataFrame | None = None,
        unseen: str = "error",
    ) -> pd.DataFrame:
        """Probability that an annotator's label is right, for all or the named annotators.

        Parameters as in `predict_annotator_proba`.

        Returns
        -------
        DataFrame, one row per item, one column per annotator
        """
        h, names = self._features_of(X, items)
        query = self._query(annotators, annotator_features, unseen)
        perf = query.evaluate(lambda model, who: annotator_perf(model, h, who), axis=1)
        return annotator_columns(perf, names, query.names)

    def annotator_confusion(
        self,
        X: Any = None,
        annotators: Iterable[Any] | None = None,
        *,
        annotator_features: pd.DataFrame | None = None,
        unseen: str = "error",
    ) -> pd.DataFrame:
        """Confusion matrices P(label | true class) of all or the named annotators.

        Averaged over the items X; without X over a sample of 256 training items. The row of a class weighs
        the items by their probability of that class. Other parameters as in `predict_annotator_proba`.

        Returns
        -------
        DataFrame, one row per `annotator` and true `class`, one column per `label`
            `table.loc[annotator]` is the matrix of one annotator; `table.to_numpy().reshape(m, C, C)` is the
            array [annotator, class, label].
        """
        if X is None:
            check_is_fitted(self)
            h = self._reference
        else:
            h, _ = self._features_of(X)
        query = self._query(annotators, annotator_features, unseen)
        matrices = query.evaluate(lambda model, who: mean_confusion(model, h, who), axis=0)
        return confusion_table(matrices, query.names, self.classes_)

    # ---------------------------------------------------------------- labels

    @cached_property
    def posterior_(self) -> Any:
        """What the labels and the classifier say together about the training items (`annotmix.posterior`).

        The classifier's part are predictions by networks that have not seen the item, `unseen_proba_`. An
        approach without such networks has none of items that it has learnt, where `unseen_proba_` is nan:
        what it says about them repeats their labels, so these alone count. After label sets it is a
        `MultiLabelPosterior`.
        """
        check_is_fitted(self)
        if self._learnt_sets:
            return self._set_posterior()
        alone = vars(self).get("_alone")
        return self._learnt.posterior(self.unseen_proba_, alone, progress=bool(self.progress))

    def consensus(self, X: Any = None, y: Any = None, *, items: Iterable[Any] | None = None) -> pd.DataFrame:
        """The most probable true class of every item, given the classifier and the labels it received.

        Parameters
        ----------
        X, y : optional
            Items and their labels, as in `fit`; by default the training items. Rows of X that were learnt
            are recognised and judged by networks that have not seen them, new ones by the final classifier.
        items : iterable, optional
            Names of the rows of X.

        Returns
        -------
        DataFrame, one row per item
            `label`, its `probability`, `n_labels`, and `agreement`: the share of the item's labels that
            are this label (`nan` without labels).
        """
        return self.judge(X, y, items=items).consensus

    def label_quality(
        self, X: Any = None, y: Any = None, *, items: Iterable[Any] | None = None
    ) -> pd.DataFrame:
        """The probability that a label is right, given the classifier and all labels of its item.

        Parameters as in `consensus`.

        Returns
        -------
        DataFrame, one row per label
            `item`, `annotator`, `label`, `weight` where labels have one, `probability`.
        """
        return self.judge(X, y, items=items).label_quality

    def judge(self, X: Any = None, y: Any = None, *, items: Iterable[Any] | None = None) -> Any:
        """The posterior of items and their labels, `Posterior` or, after label sets, `MultiLabelPosterior`.

        Parameters as in `consensus`.
        """
        check_is_fitted(self)
        if X is None:
            if y is not None:
                raise ValueError("X is missing: pass the items that y labels, or neither of them.")
            return self.posterior_
        rows, names = self._check_X(X, items)
        _, log_p = encode(self.module_, Features(rows, self._device))
        p, row = self._probabilities(log_p), self._learnt.find(rows)
        if not np.isnan(self.unseen_proba_).any():
            p[row >= 0] = self.unseen_proba_[row[row >= 0]]
        if self._learnt_sets:
            return self.posterior_.judge(self._sets_of(y, len(rows), names), p, row)
        annotations, answer = self._annotations(y, len(rows), names), self.posterior_.answer
        return Posterior(annotations, replace(answer, q=answer.judge(annotations, p, row)))

    # ---------------------------------------------------------------- inside

    def _features_of(self, X: Any, items: Iterable[Any] | None = None) -> tuple[torch.Tensor, Iterable[Any]]:
        """h of the rows of X, shape (n, H), and their names, 0 to n − 1 where they have none."""
        check_is_fitted(self)
        rows, names = self._check_X(X, items)
        h, _ = encode(self.module_, Features(rows, self._device))
        return h, range(len(rows)) if names is None else names

    def _query(
        self, annotators: Iterable[Any] | None, features: pd.DataFrame | None, unseen: str
    ) -> AnnotatorQuery:
        self._require_annotator_model()
        return find_annotators(self, annotators, features, unseen)

    def _require_annotator_model(self) -> None:
        if self._learnt_sets:
            raise AttributeError(
                "After label sets, annotators are in posterior_: annotators, annotators_by_class, and "
                "confusion(class_name)."
            )
        if self._approach.perf is None:
            with_one = [name for name in list_approaches() if get_approach(name).perf is not None]
            raise AttributeError(
                f"{self._approach.name} has no annotator model, so it knows nothing about annotators. "
                f"These approaches do: {', '.join(with_one)}."
            )
