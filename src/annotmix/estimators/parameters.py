"""The parameters that classifiers and the segmenter share: their checks, and the settings of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from annotmix.training import Settings


def check_parameters(clf: Any, has_validation: bool) -> None:
    """Refuse a wrong value of a shared parameter, by its name."""
    for name in ("max_epochs", "batch_size", "checkpoint_every"):
        value = getattr(clf, name)
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a positive integer, found {value!r}.")
    if clf.devices is not None and (not isinstance(clf.devices, int | np.integer) or clf.devices < 1):
        raise ValueError(f"devices must be a positive integer or None, found {clf.devices!r}.")
    if not clf.lr > 0:
        raise ValueError(f"lr must be positive, found {clf.lr!r}.")
    if not clf.weight_decay >= 0:
        raise ValueError(f"weight_decay must not be negative, found {clf.weight_decay!r}.")
    if not 0 <= clf.dropout < 1:
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


def training_settings(clf: Any, **more: Any) -> Settings:
    """The settings of training, from the parameters of an estimator that knows its seed; `more` is added."""
    same = (
        "max_epochs",
        "batch_size",
        "lr",
        "weight_decay",
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


def seed_of(random_state: Any) -> int:
    """One integer that all randomness of a run follows from; `None` draws a new one."""
    if isinstance(random_state, int | np.integer):
        if random_state < 0:
            raise ValueError(f"random_state must not be negative, found {random_state}.")
        return int(random_state)
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    raise ValueError(f"random_state must be an integer, a RandomState or None, found {random_state!r}.")
