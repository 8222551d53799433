"""The bridge to crowd-kit's aggregators of class labels."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from annotmix.labels.annotations import Annotations


def fit_predict(annotations: Annotations, name: str, random_state: Any = None, **params: Any) -> pd.Series:
    """The label of every item by crowd-kit's aggregator `name`; parameters as in `fit_predict_proba`."""
    return fit_predict_proba(annotations, name, random_state, **params)[0]


def fit_predict_proba(
    annotations: Annotations, name: str, random_state: Any = None, **params: Any
) -> tuple[pd.Series, pd.DataFrame | None]:
    """The label of every item by crowd-kit's aggregator `name`, and class probabilities where it has some.

    Parameters
    ----------
    annotations : Annotations
        Handed over as a table with the columns `task`, `worker` and `label`, under their own names.
    name : str
        A class of `crowdkit.aggregation.classification`, for example "GLAD".
    random_state : int, Generator or None
        Seeds the aggregators that have a seed; None leaves crowd-kit's own default.
    **params
        Go to `fit_predict` where it knows them (`true_labels` of "GoldMajorityVote"), else to the class.
    """
    aggregators = classification_aggregators()
    if name not in aggregators:
        raise ValueError(
            f"crowd-kit has no aggregator {name!r} of class labels; it has {', '.join(aggregators)}."
        )
    if annotations.weight is not None:
        raise ValueError(
            "crowd-kit's aggregators take no weights, and these labels have some. Use "
            '"mv" or "ds", which count a label by its weight.'
        )
    if not len(annotations):
        return pd.Series(dtype=object), None
    aggregator = aggregators[name]
    if random_state is not None and "random_state" in inspect.signature(aggregator).parameters:
        params["random_state"] = _seed(random_state)
    of_the_call = inspect.signature(aggregator.fit_predict).parameters
    call = {key: params.pop(key) for key in list(params) if key in of_the_call}
    with _global_randomness_kept():
        table = annotations.to_long().rename(columns={"item": "task", "annotator": "worker"})
        made = aggregator(**params)
        labels = made.fit_predict(table, **call)
    probabilities = getattr(made, "probas_", None)
    return labels, probabilities if isinstance(probabilities, pd.DataFrame) else None


def classification_aggregators() -> dict[str, Any]:
    """Crowd-kit's aggregators of class labels by name, without those of texts, pictures and pairs."""
    try:
        from crowdkit.aggregation import classification
        from crowdkit.aggregation.base import BaseClassificationAggregator
        from sklearn.base import BaseEstimator
    except ImportError as error:
        raise ImportError(
            'The methods "crowd-kit:…" need crowd-kit. Install it with: pip install "annotmix[aggregation]"'
        ) from error
    exported = {name: getattr(classification, name) for name in sorted(classification.__all__)}
    # Some check with scikit-learn whether they are fitted; newer versions accept only its own estimators.
    return {
        name: type(name, (aggregator, BaseEstimator), {})
        for name, aggregator in exported.items()
        if issubclass(aggregator, BaseClassificationAggregator)
    }


def _seed(random_state: Any) -> int:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(random_state)


@contextmanager
def _global_randomness_kept() -> Iterator[None]:
    """Some of crowd-kit's aggregators seed numpy's global generator; this puts it back."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
