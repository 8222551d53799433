"""The simulated annotators of datasets that come with true classes only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotmix._common.cache import cache_folder
from annotmix.datasets.rows import Codes, Part
from annotmix.datasets.simulation import hammer, simulate, thin
from annotmix.datasets.spec import Spec
from annotmix.labels.annotations import Annotations

#: Simulated annotators of a dataset.
NAMES = [f"annotator-{number:02d}" for number in range(1, 21)]
#: The items that they label.
LABELLED = ("train", "test")


@dataclass(frozen=True)
class Crowd:
    """How annotators are to be simulated; see `load_dataset`."""

    encoder: Any = None
    published: bool = False
    random_state: int = 0
    n_jobs: int = 1
    progress: bool = True


def simulated_labels(
    spec: Spec, parts: Mapping[str, Part], classes: NDArray[Any], crowd: Crowd
) -> tuple[Annotations, Annotations]:
    """A few labels of every training item, and the labels of all annotators for every test item."""
    assert spec.simulation is not None
    labelled = {name: parts[name] for name in LABELLED}
    full = (_parametric if spec.simulation.max_epochs is None else _networks)(spec, labelled, classes, crowd)
    train, test = (replace(full[name], items=part.items) for name, part in labelled.items())
    return thin(train, spec.simulation.per_item, random_state=crowd.random_state), test


def _networks(
    spec: Spec, parts: Mapping[str, Part], classes: NDArray[Any], crowd: Crowd
) -> dict[str, Annotations]:
    """Annotators who are networks that learnt from different parts of the training set."""
    from annotmix.datasets.simulation import simulate_annotators

    assert spec.simulation is not None
    X = {name: _features(part.X, spec.kind, crowd.encoder) for name, part in parts.items()}
    simulated = simulate_annotators(
        X["train"],
        parts["train"].y,
        [X["test"]],
        n_annotators=len(NAMES),
        names=NAMES,
        **{key: getattr(spec.simulation, key) for key in ("max_epochs", "a", "b")},
        **{key: spec.settings[key] for key in ("hidden", "dropout", "batch_size", "weight_decay")},
        published=crowd.published,
        random_state=crowd.random_state,
        n_jobs=crowd.n_jobs,
        cache=cache_folder() / "simulated",
        progress=crowd.progress,
    )
    return {name: simulated.annotations(number, classes) for number, name in enumerate(LABELLED)}


def _parametric(
    spec: Spec, parts: Mapping[str, Part], classes: NDArray[Any], crowd: Crowd
) -> dict[str, Annotations]:
    """Annotators of very different skill, who know some classes better than others."""
    rng, shape = np.random.default_rng(crowd.random_state), (len(NAMES), len(classes))
    skill = rng.uniform(0.2, 0.95, (len(NAMES), 1)) + rng.normal(0, 0.1, shape)
    confusions = {
        name: hammer(len(classes), own) for name, own in zip(NAMES, skill.clip(0.02, 0.98), strict=True)
    }
    truth: dict[str, Codes] = {name: part.y for name, part in parts.items()}
    return {name: simulate(y, confusions, classes=classes, random_state=rng) for name, y in truth.items()}


def _features(X: Any, kind: str, encoder: Any) -> NDArray[Any]:
    if kind == "tabular":
        return np.asarray(X)
    encode = encoder.transform if hasattr(encoder, "transform") else encoder
    features = np.asarray(encode(X), dtype=np.float32)
    if features.ndim != 2 or len(features) != len(X):
        raise ValueError(
            f"encoder must return {len(X)} rows of features, one per {kind}, found shape {features.shape}."
        )
    return features
