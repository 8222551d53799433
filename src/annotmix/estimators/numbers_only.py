"""Texts and pictures in place of numbers: the error says what turns them into numbers."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.words import show

_PICTURES = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp")
_SWAPPED = "If these are labels: X comes first, the labels second."


def refuse_texts(X: Any, remedy: str = "encoder=") -> None:
    """Refuse texts, names of image files and pictures in X.

    Parameters
    ----------
    X : items as they were passed
    remedy : {"encoder=", "pipeline"}
        Whether the classifier takes an encoder itself, or a pipeline with one.
    """
    column, value = _first(X)
    picture = isinstance(value, os.PathLike) or type(value).__module__.partition(".")[0] == "PIL"
    if not picture and not isinstance(value, str):
        return
    picture = picture or str(value).lower().endswith(_PICTURES)
    where = "X holds" if column is None else f"Column {show(column)} of X holds"
    if column is not None:
        raise ValueError(
            f"{where} {show(value)}, which is no number. Turn categories into numbers first, for example "
            "with scikit-learn's OneHotEncoder in a pipeline; pass a column of texts alone, with "
            f"{_how('text:minilm', remedy)}. {_SWAPPED}"
        )
    kind, encoder = ("pictures", "image:efficientnet-lite0") if picture else ("texts", "text:minilm")
    raise ValueError(
        f"{where} {kind}, such as {show(value)}, but numbers are needed. {_how(encoder, remedy)} turns them "
        f"into numbers. {_SWAPPED}"
    )


def _how(encoder: str, remedy: str) -> str:
    kind, _, model = encoder.partition(":")
    if remedy == "encoder=":
        return f'encoder="{encoder}"'
    return (
        f'CrowdClassifier(make_pipeline(annotmix.{kind.title()}Encoder("{model}"), '
        "LogisticRegression(max_iter=1000)))"
    )


def _first(X: Any) -> tuple[Any, Any]:
    """The column of a table that is not numbers, if any, and the first value that is known in X or in it."""
    if isinstance(X, pd.DataFrame):
        for column, values in X.items():
            if not pd.api.types.is_numeric_dtype(values.dtype):
                known = values[values.notna().to_numpy()]
                if len(known) and isinstance(known.iloc[0], str):
                    return column, known.iloc[0]
        return None, None
    if isinstance(X, pd.Series):
        X = X.to_numpy()
    if isinstance(X, np.ndarray):
        if X.dtype.kind not in "OU" or X.ndim > 2:
            return None, None
        if X.ndim == 2:
            strings = [(n, v) for n, v in enumerate(X[:1].ravel().tolist()) if isinstance(v, str)]
            return strings[0] if strings and not _is_number(strings[0][1]) else (None, None)
    return (None, X[0]) if isinstance(X, list | tuple | np.ndarray) and len(X) else (None, None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
