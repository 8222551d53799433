"""From the name of a dataset to its items, labels and true classes, split as in the paper."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotmix._common.words import did_you_mean
from annotmix.datasets.catalogue import SPECS
from annotmix.datasets.crowds import Crowd, simulated_labels
from annotmix.datasets.fetch import obtain
from annotmix.datasets.rows import Codes, DatasetFileError, Part, Raw
from annotmix.datasets.spec import Spec
from annotmix.labels.annotations import Annotations


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset in the splits of the paper.

    Attributes
    ----------
    name, kind, description, citation, licence : str
        `kind` is the kind of the items: "tabular", "text" or "image".
    X, X_valid, X_test : array, shapes (n, ...)
        Standardised features (float32) of tables, strings of texts, paths of photos, or small images as
        bytes, shape (n, channels, height, width).
    labels : Annotations
        Labels of X, in the order of X.
    y, y_valid, y_test : array, shapes (n,)
        True classes.
    test_labels : Annotations or None
        Labels of X_test by all simulated annotators.
    classes : array, shape (n_classes,)
    settings : dict
        The paper's settings as keyword arguments of an estimator.
    """

    name: str
    kind: str
    X: NDArray[Any]
    labels: Annotations
    y: NDArray[Any]
    X_valid: NDArray[Any]
    y_valid: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    test_labels: Annotations | None
    classes: NDArray[Any]
    settings: dict[str, Any]
    description: str
    citation: str
    licence: str

    def __repr__(self) -> str:
        sizes = f"{len(self.y)} / {len(self.y_valid)} / {len(self.y_test)} items"
        return f"Dataset({self.name!r}, {self.kind}, {sizes}, {self.labels.n_annotators} annotators)"


def load_dataset(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    download: bool = True,
    encoder: Any = None,
    published: bool = False,
    random_state: int = 0,
    n_jobs: int = 1,
    progress: bool = True,
) -> Dataset:
    """Read a dataset of the paper, or `digits`, which needs no files.

    Parameters
    ----------
    name : str
        See `list_datasets`.
    data_dir : path, optional
        Where files are looked for first; then in the folder that ANNOTMIX_DATA names, then in the cache.
    download : bool, default=True
        Download missing files from their original sources, into the first folder that can be written to.
    encoder : callable or object with `transform`, optional
        Computes features, shape (n, d), of texts or paths of photos; simulated annotators learn from these. X
        stays as it is.
    published : bool, default=False
        Simulate annotators as the published experiments did, with the learning rate 1e-3 for all of them in
        place of one drawn for each: they are wrong more often, as in Table 1 of the paper.
    random_state : int, default=0
        Seed of random splits and of simulated annotators. Compare results with the seed 0.
    n_jobs : int, default=1
        Processes that train simulated annotators. Their labels are kept in the cache.
    progress : bool, default=True
        Show how far downloads and simulations are.

    Examples
    --------
    >>> from annotmix.datasets import load_dataset
    >>> load_dataset("digits")
    Dataset('digits', tabular, 1197 / 100 / 500 items, 20 annotators)
    """
    spec = get_spec(name)
    if spec.needs_encoder and encoder is None:
        raise ValueError(
            f"The annotators of {name!r} are simulated by networks that learn from features: pass encoder=, "
            f"which makes them of {spec.kind}s, for example one of annotmix.encoders."
        )
    paths = obtain({**spec.files, **spec.item_files}, data_dir, download, progress)
    crowd = Crowd(encoder, published, random_state, n_jobs, progress)
    return build(spec, read_parts(spec, paths, random_state), crowd)


def list_datasets() -> list[str]:
    """The names that `load_dataset` knows."""
    return list(SPECS)


def get_spec(name: str) -> Spec:
    """The row of the table of datasets with this name."""
    if name not in SPECS:
        raise ValueError(
            f"There is no dataset {name!r}.{did_you_mean(name, SPECS)} Known are {', '.join(SPECS)}."
        )
    return SPECS[name]


def read_parts(spec: Spec, paths: Mapping[str, Path], random_state: int = 0) -> Raw:
    """The content of the files, checked for its size and split into train, valid and test."""
    raw = spec.read(paths)
    for part, size in spec.sizes.items():
        if part in raw.parts and len(raw.parts[part]) != size:
            place = paths.get(part) or next(iter(paths.values()), Path(spec.name))
            raise DatasetFileError(
                place, f"{len(raw.parts[part])} items where {spec.name} has {size}; is the file cut off?"
            )
    parts = dict(raw.parts)
    for into, out_of, count in spec.draws:
        if out_of in parts:
            taken, left = _draw(parts[out_of].y, count, random_state)
            parts[into], parts[out_of] = parts[out_of].take(taken), parts[out_of].take(left)
    return replace(raw, parts=parts)


def build(spec: Spec, raw: Raw, crowd: Crowd) -> Dataset:
    """A dataset from the content of its files; annotators are simulated where there are none."""
    parts = raw.parts
    if spec.kind == "tabular":
        parts = _standardised(parts)
    labels, test_labels = raw.labels, None
    if spec.simulation is not None:
        labels, test_labels = simulated_labels(spec, parts, raw.classes, crowd)
    assert labels is not None
    arrays = {}
    for name, suffix in (("train", ""), ("valid", "_valid"), ("test", "_test")):
        arrays[f"X{suffix}"], arrays[f"y{suffix}"] = parts[name].X, raw.classes[parts[name].y]
    about = {key: getattr(spec, key) for key in ("name", "kind", "description", "citation", "licence")}
    settings = dict(spec.settings)
    return Dataset(
        **about, **arrays, labels=labels, test_labels=test_labels, classes=raw.classes, settings=settings
    )


def _draw(y: Codes, count: int, random_state: int) -> tuple[Codes, Codes]:
    """Positions of `count` items, stratified by class, and of the others, both in rising order."""
    from sklearn.model_selection import train_test_split

    taken, left = train_test_split(np.arange(len(y)), train_size=count, random_state=random_state, stratify=y)
    return np.sort(taken), np.sort(left)


def _standardised(parts: Mapping[str, Part]) -> dict[str, Part]:
    """Features with the mean 0 and the spread 1 on the training set."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(parts["train"].X)
    return {
        name: replace(part, X=scaler.transform(part.X).astype(np.float32)) for name, part in parts.items()
    }
