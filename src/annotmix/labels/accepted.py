"""The label formats that `fit` accepts, converted to `Annotations` whose item n is row n of X."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, column_or_1d

from annotmix._common.words import some
from annotmix.labels.annotations import Annotations
from annotmix.labels.columns import guess_column
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.names import plain, same_names

#: How items are matched to rows: "either" is by name, or by position where items are only numbered.
Match = Literal["name", "position", "either"]
#: Different fractions, such as 0.5, that labels may be (half stars from 0 to 10); with more, y is features.
MOST_FRACTIONS = 10


def as_annotations(
    y: Any,
    n_rows: int,
    row_names: Iterable[Any] | None = None,
    *,
    missing_label: Any = -1,
    classes: Iterable[Any] | None = None,
    annotators: Iterable[Any] | None = None,
) -> Annotations:
    """Labels in any accepted form as `Annotations` of the rows of X.

    Parameters
    ----------
    y : Annotations, DataFrame or array-like
        A long table (columns item, annotator, label, and weight if labels have one), a label matrix (one row
        per item, one column per annotator), soft labels of shape (n, n_annotators, n_classes), or a vector
        with one label per row. In a vector every entry is a label, as everywhere in scikit-learn.
    n_rows : int
        Rows of X.
    row_names : iterable, optional
        Their names. Items are matched by name where both sides have names, otherwise by position: an array
        has no names, a long table has only names.
    missing_label : any
        Marks a missing label in a matrix, besides `nan` and `None`.
    classes, annotators : iterable, optional
        Names in their order, where they are already known.
    """
    names = None if row_names is None else list(row_names)
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    match: Match = "either"
    if isinstance(y, LabelSets):
        raise ValueError(
            "This needs one class per label, found LabelSets. AnnotMixPlusClassifier, CrowdClassifier and "
            "annotmix.posterior take label sets; label_sets.binary(name) are the labels about one class."
        )
    if isinstance(y, Annotations):
        annotations = y
    elif isinstance(y, pd.DataFrame) and is_long(y):
        if names is None:
            raise ValueError(
                "Labels in a long table are matched to the rows of X by name: pass X as a DataFrame indexed "
                "by item, or items= with the name of every row. In a pipeline, whose steps drop the names, "
                'call pipeline.set_output(transform="pandas") first, or pass STEP__items=X.index to its fit.'
            )
        annotations, match = read_table(y), "name"
    elif (y := y if isinstance(y, pd.DataFrame) else plain(y)).ndim == 2:
        if np.shape(y)[1] == 1 and not isinstance(y, pd.DataFrame):
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. It is read as the labels of one "
                "annotator.",
                DataConversionWarning,
                stacklevel=4,
            )
        refuse_features(y, classes)
        annotations = Annotations.from_matrix(y, missing_label, annotators=_columns(y, annotators))
        match = "either" if isinstance(y, pd.DataFrame) else "position"
    elif y.ndim == 3:
        annotations = Annotations.from_soft(y, classes=classes, annotators=_columns(y, annotators))
        match = "position"
    else:
        vector = column_or_1d(y)
        if (missing := pd.isna(vector)).any():
            raise ValueError(
                f"Input y contains NaN: entry {int(missing.argmax())} of the vector is missing, but every "
                "entry must be a label. Leave the row out, or pass a matrix with one column."
            )
        assert_all_finite(vector, input_name="y")
        column, match = vector.reshape(-1, 1), "position"
        annotations = Annotations.from_matrix(column, None, annotators=_columns(column, annotators))
        check_classification_targets(annotations.classes[annotations.label])
    return _place(annotations.align(classes=classes, annotators=annotators), n_rows, names, match)


def place_sets(
    sets: LabelSets,
    n_rows: int,
    row_names: Iterable[Any] | None = None,
    *,
    classes: Iterable[Any] | None = None,
    annotators: Iterable[Any] | None = None,
) -> LabelSets:
    """Label sets of the rows of X; parameters as in `as_annotations`."""
    answers = as_annotations(sets.answers, n_rows, row_names, annotators=annotators)
    placed = sets._with(answers).align(classes=classes)
    if not len(placed) or not placed.n_classes:
        raise ValueError("There are no label sets to learn from: nobody answered, or there are no classes.")
    return placed


def require_labels(annotations: Annotations, gold: Iterable[int] = ()) -> None:
    """Refuse labels from which nothing can be learnt; warn about items without labels that are not `gold`."""
    if not len(annotations):
        raise ValueError("There are no labels at all: every entry is missing.")
    if annotations.n_classes < 2:
        raise ValueError(
            f"All labels are of one class, {some(annotations.classes)}; a classifier needs at least two. "
            "Name classes that the labels do not contain with classes=."
        )
    warn_unlabelled(annotations, gold)


def warn_unlabelled(annotations: Annotations, gold: Iterable[int] = ()) -> None:
    """Warn about items without labels that are not `gold`."""
    unlabelled = annotations.labels_per_item == 0
    unlabelled[list(gold)] = False
    empty = int(unlabelled.sum())
    if empty:
        warnings.warn(
            f"{empty} of {annotations.n_items} items have no labels and are left out of training.",
            UserWarning,
            stacklevel=4,
        )


def read_table(table: pd.DataFrame, items: Iterable[Any] | None = None) -> Annotations:
    """The labels of a long table; `items` are all items in their order."""
    annotations = Annotations.from_long(table, items=items)
    refuse_features(annotations.classes)
    return annotations


def refuse_features(labels: Any, classes: Iterable[Any] | None = None) -> None:
    """Refuse numbers that cannot be labels: many different fractions, as when X and y are swapped.

    Parameters
    ----------
    labels : array-like
        A label matrix, or labels in any other form that holds them alone.
    classes : iterable, optional
        The classes, where they are known: what is among them is a label.
    """
    values = plain(labels)
    if classes is not None or values.dtype.kind != "f":
        return
    known = values[np.isfinite(values)]
    fractions = np.unique(known[known != np.floor(known)])
    if len(fractions) > MOST_FRACTIONS:
        raise ValueError(
            f"y holds {len(fractions)} different fractions, such as {some(fractions, 3)}: these are "
            "features, not labels. X comes first and the labels second: fit(X, y). If the numbers are "
            "classes, name all of them with classes=, or convert them to text."
        )


def holds_true_classes(y: Any) -> bool:
    """Whether y is one true class per row, for `score`; otherwise it is labels of annotators."""
    if y is None:
        raise ValueError("score needs y: one true class per row, or labels of annotators as fit takes them.")
    return not isinstance(y, Annotations | LabelSets | pd.DataFrame) and np.ndim(y) == 1


def is_long(table: pd.DataFrame) -> bool:
    """Whether a DataFrame is a long table; otherwise it is a label matrix."""
    return all(guess_column(table.columns, role) is not None for role in ("item", "annotator", "label"))


def _columns(y: Any, annotators: Iterable[Any] | None) -> list[Any] | None:
    """Names for the columns of a matrix that has none of its own."""
    if annotators is None or isinstance(y, pd.DataFrame):
        return None
    known = list(annotators)
    if len(known) != np.shape(y)[1]:
        raise ValueError(
            f"The labels have {np.shape(y)[1]} columns, the model knows {len(known)} annotators. Pass a "
            "DataFrame whose columns are the annotators' names."
        )
    return known


def _place(annotations: Annotations, n_rows: int, names: Any, match: Match) -> Annotations:
    """Move items to their rows: by name, or by position where a side has no names of its own."""
    if names is not None and match != "position" and same_names(names, annotations.items):
        return annotations
    index = None if names is None else pd.Index(names, tupleize_cols=False)
    named = index is not None and index.is_unique and not index.hasnans
    if index is not None and match != "position":
        if not named:
            unfit = index[index.duplicated() | index.isna()]
            raise ValueError(
                "Labels are matched to the rows of X by name, so every row needs a name of its own; "
                f"repeated or missing: {some(unfit)}."
            )
        labelled = annotations.items[annotations.labels_per_item > 0]
        lost = labelled[index.get_indexer(pd.Index(labelled, tupleize_cols=False)) < 0]
        if not len(lost):
            return annotations.align(items=names)
        if match == "name" or not (_unnamed(annotations.items) and annotations.n_items == n_rows):
            raise ValueError(
                f"{len(lost)} of {len(labelled)} labelled items have no row in X: {some(lost)}. The rows of "
                f"X are named {some(index)}. Index X by item, or pass items= with the name of every row."
            )
    if annotations.n_items != n_rows:
        raise ValueError(
            f"X and y must have the same number of rows: X has {n_rows} rows, the labels are about "
            f"{annotations.n_items} items (inconsistent numbers of samples)."
        )
    return replace(annotations, items=names) if named else annotations


def _unnamed(items: Any) -> bool:
    return items.dtype.kind in "iu" and np.array_equal(items, np.arange(len(items)))
