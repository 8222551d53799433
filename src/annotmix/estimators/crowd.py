"""`CrowdClassifier`: any scikit-learn classifier, taught by the labels of many annotators; without torch."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags, indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from annotmix._common.progress import Progress
from annotmix._common.seeds import seed_of
from annotmix.estimators.cross_fitting import OutOfFold, cross_fit, draw_folds, fit_soft
from annotmix.estimators.numbers_only import refuse_texts
from annotmix.estimators.scoring import CrowdScore
from annotmix.labels.accepted import as_annotations, place_sets, require_labels
from annotmix.labels.annotations import Annotations
from annotmix.labels.evidence import Evidence
from annotmix.labels.heldout import label_likelihood, set_likelihood
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.named import gold_positions
from annotmix.labels.posterior import Posterior

if TYPE_CHECKING:
    from typing import Self  # since Python 3.11

    from sklearn.utils import Tags

Floats = NDArray[np.float64]

#: C of the default logistic regression, to choose from.
STRENGTHS = (1.0, 0.1, 0.01, 0.001)


class CrowdClassifier(CrowdScore, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any scikit-learn classifier or pipeline, taught by the labels of many annotators.

    The labels alone suggest classes of the items. Clones of the classifier learn these classes and predict
    items that they have not seen, and `annotmix.posterior` joins predictions and labels into better classes.
    This is repeated as long as the labels become more likely. A classifier that does not make them more
    likely is not believed: the classes are then those of the labels alone.

    Parameters
    ----------
    estimator : "logistic", "boosting" or classifier with `predict_proba`, default="logistic"
        "logistic" is logistic regression on standardised features, with the penalty of `STRENGTHS` that makes
        labels most likely; "boosting" are gradient boosted trees, which take missing values and need no
        scaling. X is whatever the estimator takes. If its `fit` has
        `sample_weight` (in a pipeline: that of the last step), it learns every probable class of an item with
        its probability as the weight; otherwise it learns the most probable class.
    cv : int, default=5
        Folds; fewer where there are fewer labelled items.
    rounds : int, default=5
        The largest number of rounds.
    classes : sequence, optional
        All classes; by default those that occur among the labels.
    missing_label : any, default=-1
        Marks a missing label in a label matrix, besides `nan` and `None`.
    random_state : int, RandomState instance or None, default=None
        Draws the folds, and seeds every `random_state` of the estimator that is None.
    progress : bool, default=True
        Show progress where fitting takes longer than two seconds.

    Attributes
    ----------
    classes_ : array, shape (C,)
    annotators_ : array, shape (M,)
    estimator_ : classifier
        Fitted on all labelled items and their final class probabilities. After label sets a list, one for
        each class.
    posterior_ : Posterior, or MultiLabelPosterior after label sets
        Consensus, label quality, annotators, weights and likelihood of the training items.
    unseen_proba_ : array, shape (N, C)
        Class probabilities of the training items by classifiers that have not seen them.
    n_rounds_ : int
        Rounds until the likelihood of the labels no longer rose; after label sets, of the last class to stop.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.2], [0.4], [5.0], [5.2], [5.4]])
    >>> Z = np.array([[0, 0], [0, -1], [0, 0], [1, 1], [-1, 1], [1, 1]])
    >>> clf = CrowdClassifier(random_state=0).fit(X, Z)
    >>> clf.consensus()["label"].tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self,
        estimator: Any = "logistic",
        *,
        cv: int = 5,
        rounds: int = 5,
        classes: Iterable[Any] | None = None,
        missing_label: Any = -1,
        random_state: Any = None,
        progress: bool = True,
    ):
        self.estimator = estimator
        self.cv = cv
        self.rounds = rounds
        self.classes = classes
        self.missing_label = missing_label
        self.random_state = random_state
        self.progress = progress

    posterior_: Any

    # ---------------------------------------------------------------- training

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        items: Iterable[Any] | None = None,
        gold: pd.Series | Mapping[Any, Any] | None = None,
    ) -> Self:
        """Learn from items and the labels that annotators gave them.

        Parameters
        ----------
        X : array, DataFrame, Series, sparse matrix or list, n rows
            Items, as the estimator takes them.
        y : label matrix, long table, Annotations or vector
            A matrix has one row per item and one column per annotator. A long table (columns `item`,
            `annotator`, `label`, and `weight` if labels have one) is matched to X by its index or by `items`.
            A vector is the labels of one annotator, an array of shape (n, n_annotators, n_classes) soft
            labels. Items without labels are predicted, and not learnt from. LabelSets are answers with any
            number of classes: every class gets an estimator of its own.
        items : iterable, optional
            Names of the rows of X.
        gold : Series or dict, optional
            Item name → true class, where it is known; for LabelSets, the list of true classes.
        """
        self._check_parameters()
        if isinstance(self.estimator, str):
            refuse_texts(X, remedy="pipeline")
        self._learnt_sets = isinstance(y, LabelSets)
        if self._learnt_sets:
            return self._fit_sets(X, y, items, gold)
        X, annotations = self._read(X, y, items, self.classes)
        require_labels(annotations)
        evidence = Evidence(annotations, gold_positions(annotations, gold))
        learnable = evidence.labelled.labelled.copy()
        learnable[evidence.gold[0]] = True
        if learnable.sum() < 2:
            raise ValueError("Folds need at least two labelled items, found n_samples=1.")
        self.classes_, self.annotators_ = _plain(annotations.classes), np.array(annotations.annotators)
        seed = self._seed = seed_of(self.random_state)
        n_folds = min(int(self.cv), int(learnable.sum()))
        fold = draw_folds(evidence.alone.q, learnable, n_folds, np.random.default_rng(seed))
        estimators = [seeded(estimator, seed) for estimator in self._estimators(X)]
        n_fits = (self.rounds - 1 + len(estimators)) * n_folds
        with Progress("Cross-fitting", n_fits, show=self.progress) as progress:
            candidates = [
                OutOfFold(estimator, X, learnable, fold, self.classes_, progress.advance)
                for estimator in estimators
            ]
            best, self._chosen = cross_fit(evidence, candidates, self.rounds)
        answer, self.unseen_proba_, self.n_rounds_ = best
        self.posterior_ = Posterior(annotations, answer)
        self._finish(X, estimators[self._chosen])
        return self

    def _fit_sets(
        self, X: Any, y: LabelSets, items: Iterable[Any] | None, gold: pd.Series | Mapping[Any, Any] | None
    ) -> Self:
        """`fit` for label sets: one estimator per class."""
        from annotmix.estimators.crowd_sets import fit_classes

        (X,) = indexable(X)
        names = self._row_names(X, items)
        placed = place_sets(y, _num_samples(X), names, classes=self.classes)
        sets, known = placed.with_gold(gold)
        self.classes_, self.annotators_ = _plain(sets.classes), np.array(sets.annotators)
        self._seed = seed_of(self.random_state)
        fit_classes(self, X, sets, known)
        return self

    def _finish(self, X: Any, estimator: Any) -> None:
        """Fit the final estimator on all items with labels or true classes."""
        answer, self._X = self.posterior_.answer, X
        learnable = self.posterior_.annotations.labels_per_item > 0
        learnable[answer.gold[0]] = True
        self._model = fit_soft(estimator, X, answer.q, np.flatnonzero(learnable), self.classes_)
        self.estimator_ = self._model.estimator
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save the model as safetensors and JSON; `annotmix.load` reads it and fits the estimator again.

        Items and labels are saved with it. Only for `estimator="logistic"` or "boosting", and X an array of
        numbers: other estimators cannot be saved without running code from the file when it is read.
        """
        from annotmix.estimators.crowd_files import save  # it knows this class

        check_is_fitted(self)
        save(self, folder)

    # ---------------------------------------------------------------- classes

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, shape (n, C); of label sets the probability of each class on its own."""
        check_is_fitted(self)
        if self._learnt_sets:
            return np.stack([model.predict_proba(X)[:, 1] for model in self._models], axis=1)
        return self._model.predict_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every item, shape (n,).

        After label sets: 1 for every class with a probability of one half or more, else 0, shape (n, C).
        """
        p = self.predict_proba(X)
        if self._learnt_sets:
            return (p >= 0.5).astype(np.int64)
        return np.asarray(self.classes_[p.argmax(axis=1)])

    def _label_likelihood(self, X: Any, y: Any) -> float:
        """label-ll by the classifier and the confusion matrices of the posterior."""
        check_is_fitted(self)
        if self._learnt_sets:
            return set_likelihood(self._sets_of(X, y, None), self.predict_proba(X), self.posterior_)
        X, annotations = self._read(X, y, None, self.classes_, self.annotators_)
        return label_likelihood(annotations, self.predict_proba(X), self.posterior_)

    # ---------------------------------------------------------------- labels and annotators

    def consensus(self, X: Any = None, y: Any = None, *, items: Iterable[Any] | None = None) -> pd.DataFrame:
        """The most probable class of every item, given classifier and labels.

        Without arguments the items are the training items, judged by classifiers that have not seen them.
        With X and y they are other items, labelled by the same annotators.

        Returns
        -------
        DataFrame, one row per item
            `label`, its `probability`, `n_labels`, and `agreement`: the share of the item's labels that are
            this label (`nan` without labels).
        """
        return self.judge(X, y, items=items).consensus

    def label_quality(
        self, X: Any = None, y: Any = None, *, items: Iterable[Any] | None = None
    ) -> pd.DataFrame:
        """The probability that a label is right, given the classifier and all labels of its item.

        Arguments as for `consensus`.

        Returns
        -------
        DataFrame, one row per label
            `item`, `annotator`, `label`, `weight` where labels have one, `probability`.
        """
        return self.judge(X, y, items=items).label_quality

    def annotator_confusion(self, annotators: Iterable[Any] | None = None) -> pd.DataFrame:
        """P(label | true class) of all or the named annotators, the same as `posterior_.confusion`.

        Returns
        -------
        DataFrame, one row per `annotator` and true `class`, one column per `label`
            `table.loc[annotator]` is the matrix of one annotator.
        """
        check_is_fitted(self)
        if self._learnt_sets:
            raise AttributeError(
                "After label sets there is a confusion matrix per class: posterior_.confusion(class_name)."
            )
        return self.posterior_.confusion(annotators)

    def judge(self, X: Any = None, y: Any = None, *, items: Iterable[Any] | None = None) -> Any:
        """The posterior of items and their labels, `Posterior` or `MultiLabelPosterior`.

        Arguments as for `consensus`.
        """
        check_is_fitted(self)
        training = self.posterior_
        if X is None and y is None:
            return training
        if X is None or y is None:
            raise ValueError("Pass both X and y for other items, or neither for the training items.")
        if self._learnt_sets:
            sets = self._sets_of(X, y, items)
            return training.judge(sets, self.predict_proba(X), np.full(sets.n_items, -1))
        X, annotations = self._read(X, y, items, self.classes_, self.annotators_)
        if _same_labels(annotations, training.annotations):
            warnings.warn(
                "These are the labels that the classifier has learnt: it is too sure about them. Call "
                "without X and y for the training items.",
                UserWarning,
                stacklevel=3,
            )
        answer, new = training.answer, np.full(annotations.n_items, -1)
        q = answer.judge(annotations, self.predict_proba(X), new)
        return Posterior(annotations, replace(answer, q=q))

    # ---------------------------------------------------------------- inside

    def _read(
        self, X: Any, y: Any, items: Iterable[Any] | None, classes: Any, annotators: Any = None
    ) -> tuple[Any, Annotations]:
        """X with rows that can be indexed, and the labels of its rows."""
        (X,) = indexable(X)
        names = self._row_names(X, items)
        known = {"classes": classes, "annotators": annotators}
        return X, as_annotations(y, _num_samples(X), names, missing_label=self.missing_label, **known)

    def _sets_of(self, X: Any, y: Any, items: Iterable[Any] | None) -> LabelSets:
        """Label sets of the rows of X, by the known annotators and classes."""
        if not isinstance(y, LabelSets):
            raise ValueError(f"This classifier has learnt label sets and takes LabelSets, found {type(y)}.")
        names = self._row_names(X, items)
        known = {"classes": self.classes_, "annotators": self.annotators_}
        return place_sets(y, _num_samples(X), names, **known)

    def _row_names(self, X: Any, items: Iterable[Any] | None) -> list[Any] | None:
        """Names of the rows of X, None where they have none."""
        n, named = _num_samples(X), isinstance(X, pd.DataFrame | pd.Series)
        names = list(items) if items is not None else list(X.index) if named else None
        if names is not None and len(names) != n:
            raise ValueError(f"items must name the {n} rows of X, found {len(names)} names.")
        return names

    def _check_parameters(self) -> None:
        for name, least in (("cv", 2), ("rounds", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be an integer of {least} or more, found {value!r}.")
        if not (self.estimator in ("logistic", "boosting") or hasattr(self.estimator, "predict_proba")):
            raise ValueError(
                f'estimator must be "logistic", "boosting" or a classifier with predict_proba, found '
                f"{self.estimator!r}. CalibratedClassifierCV of scikit-learn adds it to a classifier."
            )

    def _estimators(self, X: Any = None) -> list[Any]:
        """The estimator, or those to choose from."""
        if not isinstance(self.estimator, str):
            return [self.estimator]
        if self.estimator == "boosting":
            return [_boosting()]
        return [_logistic(strength, centre=not issparse(X)) for strength in STRENGTHS]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimators()[0]).input_tags
        inner.sparse = inner.sparse or self.estimator == "logistic"
        inner.pairwise = False  # rows are taken out of X, never columns
        tags.input_tags = inner
        return tags


def _boosting() -> Any:
    """Trees without early stopping, as its held-out sample would hold copies of items that are learnt.

    Eight leaves: see Hastie et al., The Elements of Statistical Learning, 10.11. Few bins, which are slow to
    find for weighted items.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # takes half a second

    return HistGradientBoostingClassifier(early_stopping=False, max_leaf_nodes=8, max_bins=63)


def _logistic(strength: float, centre: bool) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(with_mean=centre), LogisticRegression(C=strength, max_iter=1000))


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Class names as numbers or strings, as scikit-learn expects them."""
    if classes.dtype == object and all(isinstance(c, str) for c in classes):
        return classes.astype(str)
    return np.array(classes)


def seeded(estimator: Any, seed: int) -> Any:
    """A copy of the estimator, in which every `random_state` has a value."""
    copy = clone(estimator)
    unset = [
        name
        for name, value in copy.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    ]
    return copy.set_params(**dict.fromkeys(unset, seed))


def _same_labels(one: Annotations, other: Annotations) -> bool:
    same = (
        np.array_equal(getattr(one, name), getattr(other, name)) for name in ("item", "annotator", "label")
    )
    return one.n_items == other.n_items and all(same)
