"""The paper's scores, clf-acc, annot-acc and perf-auroc; label-ll; scores of sets of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def clf_acc(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """clf-acc: the share of items whose class is predicted right.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n,)
    """
    return _share_equal(y_true, y_pred, "y_true", "y_pred")


def annot_acc(z: ArrayLike, z_pred: ArrayLike, weight: ArrayLike | None = None) -> float:
    """annot-acc: the share of annotators' labels that are predicted right.

    On training labels it shows overfitting: not every error of an annotator should be predictable.

    Parameters
    ----------
    z, z_pred : array-like, shape (n_labels,)
        The annotators' and the predicted labels, one entry per label.
    weight : array-like, shape (n_labels,), optional
        How much each label counts.
    """
    return _share_equal(z, z_pred, "z", "z_pred", weight)


def label_ll(log_p: ArrayLike, weight: ArrayLike | None = None) -> float:
    """label-ll: the mean log-likelihood of annotators' labels, the true class being summed out.

    A proper score on labels that were not trained on; on training labels it only shows overfitting.

    Parameters
    ----------
    log_p : array-like, shape (n_labels,)
        log p_annot of the annotator's label.
    weight : array-like, shape (n_labels,), optional
        How much each label counts.
    """
    weights = None if weight is None else np.asarray(weight, dtype=float)
    return float(np.average(np.asarray(log_p, dtype=float), weights=weights))


def perf_auroc(correct: ArrayLike, p_perf: ArrayLike, weight: ArrayLike | None = None) -> float:
    """perf-auroc: how well p_perf tells right labels from false ones, as area under the ROC curve.

    Parameters
    ----------
    correct : array-like of bool, shape (n_labels,)
        Whether the annotator's label equals the true class, one entry per label.
    p_perf : array-like, shape (n_labels,)
        Estimated chance that it does.
    weight : array-like, shape (n_labels,), optional
        How much each label counts.

    Returns
    -------
    float
        `nan` where all labels are right or all are false.
    """
    right, scores = np.asarray(correct, dtype=bool), np.asarray(p_perf, dtype=float)
    if right.shape != scores.shape or right.ndim != 1:
        raise ValueError(
            f"correct and p_perf must be vectors of one length, found {right.shape}, {scores.shape}."
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"p_perf must be finite, found {scores[~np.isfinite(scores)][0]}.")
    weights = np.ones(len(right)) if weight is None else np.asarray(weight, dtype=float)
    # scikit-learn's roc_auc_score is the same, and takes a second to import
    rank = np.unique(scores, return_inverse=True)[1]
    n_right, n_false = (np.bincount(rank, weights * of) for of in (right, ~right))
    pairs = n_right.sum() * n_false.sum()
    lower = np.cumsum(n_false) - n_false
    return float(n_right @ (lower + n_false / 2) / pairs) if pairs > 0 else float("nan")


def _share_equal(
    a: ArrayLike, b: ArrayLike, name_a: str, name_b: str, weight: ArrayLike | None = None
) -> float:
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(
            f"{name_a} and {name_b} must be vectors of one length, not empty, found {a.shape} and {b.shape}."
        )
    return float(np.average(a == b, weights=None if weight is None else np.asarray(weight, dtype=float)))


# ---------------------------------------------------------------- several classes per item


def set_scores(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """Scores of sets of classes, both given as 0 and 1 of shape (n, n_classes).

    Returns
    -------
    dict
        "subset-acc": the share of items whose set is exactly right. "macro-f1": the mean over classes of F1,
        the harmonic mean of the share of chosen items that have the class and the share of items with the
        class that are chosen; a class that is neither true nor chosen anywhere does not count. "micro-f1":
        F1 of all decisions together. "hamming": the share of decisions, yes or no about one class, that are
        wrong.
    """
    true, chosen = np.asarray(y_true, dtype=bool), np.asarray(y_pred, dtype=bool)
    if true.shape != chosen.shape or true.ndim != 2 or not true.size:
        raise ValueError(
            "y_true and y_pred must have one row per item and one column per class, and not be empty, found "
            f"{true.shape} and {chosen.shape}."
        )
    both, either = (true & chosen).sum(axis=0), true.sum(axis=0) + chosen.sum(axis=0)
    occurs = either > 0
    return {
        "subset-acc": float((true == chosen).all(axis=1).mean()),
        "macro-f1": float((2 * both[occurs] / either[occurs]).mean()) if occurs.any() else float("nan"),
        "micro-f1": float(2 * both.sum() / either.sum()) if occurs.any() else float("nan"),
        "hamming": float((true != chosen).mean()),
    }
