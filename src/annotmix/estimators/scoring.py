"""`score` of a classifier: accuracy on true classes, or the likelihood of annotators' labels."""

from __future__ import annotations

from typing import Any

from annotmix.labels.accepted import holds_true_classes
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.metrics import set_scores


class CrowdScore:
    """The method `score`, which scikit-learn's model selection calls with what `fit` gets as y."""

    predict: Any
    _label_likelihood: Any
    _learnt_sets: bool = False

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, y_true: Any = None) -> float:
        """Accuracy on true classes; on labels of annotators their mean log-likelihood (label-ll).

        The likelihood of labels of items that were not learnt judges a classifier without any true class:
        log Σ_c p_c(x) P(label | class c, annotator), with the true class summed out. So
        `GridSearchCV(clf, grid).fit(X, Z)` and `cross_val_score(clf, X, Z)` work with a label matrix or
        `Annotations` as Z.

        Parameters
        ----------
        X : n rows, as `fit` takes them
        y : array-like, shape (n,), or labels as `fit` takes them
            A vector is true classes. A label matrix, soft labels, a long table, Annotations or LabelSets are
            labels of the annotators of the training data. A classifier that has learnt label sets takes true
            classes as 0 and 1, shape (n, n_classes): the score is the share of sets that are exactly right.
        sample_weight : array-like, shape (n,), optional
            Weights of true classes. A classifier of label sets takes none.
        y_true : array-like, shape (n,), optional
            True classes, in place of `y`. For model selection, where scikit-learn hands the annotators'
            labels on as `y`: `GridSearchCV(clf.set_score_request(y_true=True), …).fit(X, Z, y_true=truth)`
            with scikit-learn's metadata routing enabled.
        """
        truth = y if y_true is None else y_true
        if self._learnt_sets and not isinstance(truth, LabelSets):
            return set_scores(truth, self.predict(X))["subset-acc"]
        if holds_true_classes(truth):
            from sklearn.metrics import accuracy_score

            return float(accuracy_score(truth, self.predict(X), sample_weight=sample_weight))
        if y_true is not None:
            raise ValueError("y_true must be one true class per row; labels of annotators go in as y.")
        if sample_weight is not None:
            raise ValueError(
                "sample_weight is for true classes; labels of annotators have their own weights."
            )
        return float(self._label_likelihood(X, y))
