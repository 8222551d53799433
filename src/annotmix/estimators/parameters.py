"""The parameters that classifiers and the segmenter share: checks, settings of training, and "auto"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from annotmix.labels.annotations import Annotations
from annotmix.training import Settings

#: RAdam moves a weight by about this much per step; no network learns with a larger one.
LARGEST_RATE = 1e6
#: Epochs and items of a batch fit into every kind of integer.
LARGEST_COUNT = 2**31 - 1


class Network(NamedTuple):
    """The parameters of a classifier that "auto" chooses by the data."""

    hidden: tuple[int, ...]
    dropout: float
    weight_decay: float


def resolve_network(clf: Any, shape: Sequence[int], annotations: Annotations) -> Network:
    """The parameters of a classifier for items of that shape, with values in place of "auto"."""
    auto = _automatic(clf.backbone, shape[0], int((annotations.labels_per_item > 0).sum()))
    own = {name: getattr(clf, name) for name in Network._fields}
    network = auto._replace(**{name: value for name, value in own.items() if not isinstance(value, str)})
    return network._replace(hidden=tuple(network.hidden))


def _automatic(backbone: Any, n_features: int, n_items: int) -> Network:
    """The paper's network for data of that kind.

    "mlp" on many features, as an encoder gives: one layer. On fewer: two layers, and dropout unless there are
    5000 labelled items or more, which a network of this size does not memorise.
    """
    if backbone != "mlp":
        return Network((256, 128), 0.0, 0.0)
    if n_features > 256:
        return Network((128,), 0.5, 1e-4)
    return Network((256, 128), 0.5 if n_items < 5000 else 0.0, 0.0)


def check_parameters(clf: Any, has_validation: bool) -> None:
    """Refuse a wrong value of a shared parameter, by its name."""
    for name in ("max_epochs", "batch_size", "checkpoint_every"):
        value = getattr(clf, name)
        if not isinstance(value, int | np.integer) or not 1 <= value <= LARGEST_COUNT:
            raise ValueError(f"{name} must be an integer from 1 to {LARGEST_COUNT}, found {value!r}.")
    if clf.devices is not None and (not isinstance(clf.devices, int | np.integer) or clf.devices < 1):
        raise ValueError(f"devices must be a positive integer or None, found {clf.devices!r}.")
    if not _is_number(clf.lr) or not 0 < clf.lr <= LARGEST_RATE:
        raise ValueError(f"lr must be positive and at most {LARGEST_RATE:g}, found {clf.lr!r}.")
    for name in Network._fields:
        value = getattr(clf, name, None)
        if isinstance(value, str) and value != "auto":
            raise ValueError(f'{name} must be a value or "auto", found {value!r}.')
    if clf.weight_decay != "auto" and not (_is_number(clf.weight_decay) and 0 <= clf.weight_decay < math.inf):
        raise ValueError(f"weight_decay must be finite and not negative, found {clf.weight_decay!r}.")
    if clf.dropout != "auto" and not (_is_number(clf.dropout) and 0 <= clf.dropout < 1):
        raise ValueError(f"dropout must lie in [0, 1), found {clf.dropout!r}.")
    if clf.select not in ("last", "best"):
        raise ValueError(f'select must be "last" or "best", found {clf.select!r}.')
    if clf.select == "best" and not has_validation:
        raise ValueError(
            'select="best" needs validation labels: clean ones, fit(X, y, validation=(X, y_true)), or some '
            'of the annotators\' own, fit(X, y, validation="labels").'
        )
    if clf.checkpoint is not None and not isinstance(clf.random_state, int | np.integer):
        raise ValueError("checkpoint= needs an integer random_state=, so that a resumed run is the same run.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def training_settings(clf: Any, **more: Any) -> Settings:
    """The settings of training, from the parameters of an estimator that knows its seed; `more` is added."""
    same = (
        "max_epochs",
        "batch_size",
        "lr",
        "precision",
        "devices",
        "checkpoint_every",
        "progress",
    )
    return Settings(
        **{name: getattr(clf, name) for name in same},
        seed=clf.seed_,
        checkpoint=None if clf.checkpoint is None else Path(clf.checkpoint),
        **more,
    )
