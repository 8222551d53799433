"""Annotators that are networks, each trained on its own part of the data.

    a_j ~ U(a), b_j ~ U(b), epochs_j ~ UniformInt[1, E], lr_j ~ U(lr); for every class ρ_jc ~ Beta(a_j, b_j);
    network j learns ⌊ρ_jc n_c⌋ true labels of class c, drawn with replacement; its argmax is j's label.

So annotators know some classes better than others, and are wrong where items are hard.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.parallel import Parallel, delayed

import annotmix
from annotmix._common.cache import RowCache
from annotmix._common.progress import Progress
from annotmix._common.seeds import seed_of
from annotmix.datasets.simulation.parametric import from_codes
from annotmix.estimators import make_classifier
from annotmix.labels.annotations import Annotations

#: Items that an annotator sees at least.
MIN_ITEMS = 10
#: Draws of an annotator's ratios before giving up.
MAX_DRAWS = 10_000
#: Learning rate of every annotator in the published experiments.
PUBLISHED_LR = 1e-3
#: Least a_j and b_j: Beta(0, b) does not exist, and close to it hardly a draw ever makes an item.
LEAST_SHAPE = 1e-3

Codes = NDArray[np.int64]
Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class SimulatedAnnotators:
    """The labels of M simulated annotators, and the parameters drawn for them.

    Attributes
    ----------
    labels : list of array of int, shapes (n_i, M)
        A label of every annotator for every item of X, then of each further set, as codes of classes.
    table : DataFrame, one row per annotator
        The parameters drawn: `a`, `b`, `epochs`, `lr`; how many `items` it saw; its `accuracy` on X.
    ratios : DataFrame, shape (M, C)
        ρ, the share of every class that an annotator saw.
    """

    labels: list[Codes]
    table: pd.DataFrame
    ratios: pd.DataFrame

    def annotations(self, part: int = 0, classes: Iterable[Any] | None = None) -> Annotations:
        """The labels of X (part 0) or of a further set (1, 2, …), for `thin` or `fit`.

        Parameters
        ----------
        part : int, default=0
        classes : iterable, optional
            Names of the C classes; by default 0, 1, 2, …
        """
        names = self.ratios.columns if classes is None else classes
        return from_codes(self.labels[part], self.table.index, names)


class Annotator(NamedTuple):
    """All that was drawn for one annotator."""

    a: float
    b: float
    epochs: int
    lr: float
    seed: int
    ratios: NDArray[np.float64]  # (C,)
    rows: Codes  # (n_j,), the items it learns from


def simulate_annotators(
    X: Any,
    y: ArrayLike,
    further: Sequence[Any] = (),
    *,
    n_annotators: int = 20,
    max_epochs: int = 20,
    a: Range = (0.0, 1.0),
    b: Range = (0.5, 2.0),
    lr: Range = (1e-4, 1e-1),
    backbone: str | torch.nn.Module = "mlp",
    hidden: tuple[int, ...] = (256, 128),
    dropout: float = 0.0,
    batch_size: int = 64,
    weight_decay: float = 0.0,
    names: Iterable[Any] | None = None,
    published: bool = False,
    random_state: Any = 0,
    n_jobs: int | None = 1,
    cache: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> SimulatedAnnotators:
    """Train one network per annotator and let it label every item.

    All sets must be prepared alike, for example standardised with the statistics of X.

    Parameters
    ----------
    X : array-like, shape (n, n_features) or (n, ...)
        Items that the annotators learn from and label.
    y : array-like of int, shape (n,)
        Their true classes, as codes 0, …, C − 1.
    further : sequence of array-like, shapes (n_i, ...)
        More sets to label, for example for validation and test.
    n_annotators : int, default=20
        M. The first annotators stay the same when there are more.
    max_epochs : int, default=20
        E; an annotator trains for 1 to E epochs, each number as likely.
    a, b : (float, float)
        An annotator's a_j and b_j are drawn evenly from these ranges, and the ratios of the classes it sees
        from Beta(a_j, b_j). They are drawn again while they make fewer than 10 items over all classes
        together: that leaves single classes unseen, which is what makes annotators differ, and only keeps
        networks from having nothing to learn.
    lr : (float, float), default=(1e-4, 1e-1)
        Range of the learning rates.
    backbone, hidden, dropout, batch_size, weight_decay
        The networks and their training, as in every classifier (see `annotmix.make_classifier`).
    names : iterable, optional
        Names of the annotators; by default 0, 1, 2, …
    published : bool, default=False
        Train every annotator with the learning rate 1e-3, as the published experiments did. All other draws
        stay the same.
    random_state : int, RandomState, Generator or None, default=0
        The same integer gives the same labels, whatever `n_jobs`.
    n_jobs : int, default=1
        Processes that train at the same time, with one thread each; -1 takes all cores.
    cache : path, optional
        Folder that keeps the labels of every annotator, in one file per annotator, named by a hash of data
        and settings. A run that was killed resumes after its last whole annotator.
    progress : bool, default=True

    Returns
    -------
    SimulatedAnnotators
    """
    sets = [part if isinstance(part, np.memmap) else np.asarray(part) for part in (X, *further)]
    truth = _check_data(sets, y)
    who = _check_draws(n_annotators, names, max_epochs, a=a, b=b, lr=lr)
    seeds = np.random.SeedSequence(seed_of(random_state)).spawn(n_annotators)
    drawn = [_draw(truth, a, b, max_epochs, lr, seed) for seed in seeds]
    if published:
        drawn = [annotator._replace(lr=PUBLISHED_LR) for annotator in drawn]
    network = {
        "backbone": backbone,
        "hidden": tuple(hidden),
        "dropout": dropout,
        "batch_size": batch_size,
        "weight_decay": weight_decay,
    }
    codes = _all_labels(sets, truth, drawn, network, n_jobs, cache, progress)  # (Σ n_i, M)
    labels = np.split(codes, np.cumsum([len(part) for part in sets])[:-1])
    table = pd.DataFrame(
        {
            **{
                field: [getattr(annotator, field) for annotator in drawn]
                for field in ("a", "b", "epochs", "lr")
            },
            "items": [len(annotator.rows) for annotator in drawn],
            "accuracy": (labels[0] == truth[:, None]).mean(axis=0),
        },
        index=who,
    )
    return SimulatedAnnotators(labels, table, pd.DataFrame([one.ratios for one in drawn], index=who))


def _draw(
    y: Codes, a: Range, b: Range, max_epochs: int, lr: Range, seed: np.random.SeedSequence
) -> Annotator:
    rng = np.random.default_rng(seed)
    a_j, b_j = (max(float(rng.uniform(*bounds)), LEAST_SHAPE) for bounds in (a, b))
    epochs, rate = int(rng.integers(1, max_epochs, endpoint=True)), float(rng.uniform(*lr))
    network_seed = int(rng.integers(2**31))
    count = np.bincount(y)
    ratios = _draw_ratios(count, a_j, b_j, rng)
    label = np.repeat(np.arange(len(count)), (ratios * count).astype(np.int64))  # of every item drawn
    by_class, first = np.argsort(y, kind="stable"), np.cumsum(count) - count
    rows = by_class[first[label] + rng.integers(count[label])]
    return Annotator(a_j, b_j, epochs, rate, network_seed, ratios, rows)


def _draw_ratios(count: Codes, a: float, b: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """The share of every class to learn from, shape (C,)."""
    for _ in range(MAX_DRAWS):
        ratios = rng.beta(a, b, size=len(count))
        if (ratios * count).astype(np.int64).sum() >= MIN_ITEMS:
            return ratios
    raise ValueError(
        f"{MAX_DRAWS} draws of ratios from Beta({a:.3g}, {b:.3g}) for {count.sum()} items never made "
        f"{MIN_ITEMS} of them. Give more items, or larger values of a."
    )


def _all_labels(
    sets: list[NDArray[Any]],
    y: Codes,
    drawn: list[Annotator],
    network: dict[str, Any],
    n_jobs: int | None,
    cache: str | os.PathLike[str] | None,
    progress: bool,
) -> Codes:
    """The labels of all annotators for all sets one below the other, from the cache where it has them."""
    n_classes = int(y.max()) + 1
    columns: list[Codes | None] = [None] * len(drawn)
    if cache is not None:
        store, keys = RowCache(Path(cache), rows_per_file=1), _keys([y, *sets], drawn, network)
        Path(cache).mkdir(parents=True, exist_ok=True)  # an error now, not after hours of training
        known = store.get(keys)
        columns = [known[key].astype(np.int64) if key in known else None for key in keys]
    missing = [j for j, column in enumerate(columns) if column is None]
    jobs = (delayed(_labels)(sets, y, drawn[j], network) for j in missing)
    done = len(drawn) - len(missing)
    with Progress("simulating annotators", len(drawn), done, progress) as bar:
        for j, column in zip(missing, Parallel(n_jobs=n_jobs, return_as="generator")(jobs), strict=True):
            columns[j] = column
            if cache is not None:
                store.put([keys[j]], column[None].astype(np.min_scalar_type(-n_classes)))
            bar.advance(f"accuracy {np.mean(column[: len(y)] == y):.3f}")
    return np.stack([column for column in columns if column is not None], axis=1)


def _keys(data: Iterable[NDArray[Any]], drawn: Sequence[Annotator], network: dict[str, Any]) -> list[bytes]:
    """For every annotator, the hash of all that its labels depend on."""
    if not isinstance(network["backbone"], str):
        raise ValueError("cache= needs a backbone that has a name: a module's own code cannot be compared.")
    shared = hashlib.sha256(repr((annotmix.__version__, sorted(network.items()))).encode())
    for array in data:
        shared.update(f"{array.dtype} {array.shape}".encode())
        for first in range(0, len(array), 4096):
            shared.update(array[first : first + 4096].tobytes())
    keys = []
    for annotator in drawn:
        own = shared.copy()
        own.update(repr((annotator.epochs, annotator.lr, annotator.seed)).encode())
        own.update(annotator.rows.tobytes())
        keys.append(own.digest())
    return keys


def _labels(sets: list[NDArray[Any]], y: Codes, annotator: Annotator, network: dict[str, Any]) -> Codes:
    """Train one annotator; its labels for all sets one below the other, shape (Σ n_i,)."""
    clf = make_classifier(
        "true-base",
        classes=range(int(y.max()) + 1),
        max_epochs=annotator.epochs,
        lr=annotator.lr,
        random_state=annotator.seed,
        progress=False,
        **network,
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the bits depend on it, and processes must not fight over the cores
    try:
        clf.fit(sets[0][annotator.rows], y[annotator.rows])
        return np.concatenate([clf.predict(part) for part in sets])
    finally:
        torch.set_num_threads(threads)


def _check_data(sets: list[NDArray[Any]], y: ArrayLike) -> Codes:
    """The true classes as integers; refuses sets that do not fit together."""
    truth = np.asarray(y)
    if truth.ndim != 1 or truth.dtype.kind not in "iu" or len(truth) != len(sets[0]):
        raise ValueError(
            f"y must hold one integer code per row of X, {len(sets[0])} in all; found {truth.dtype} of shape "
            f"{truth.shape}."
        )
    if len(truth) < MIN_ITEMS:
        raise ValueError(f"An annotator learns from {MIN_ITEMS} items or more; X has {len(truth)}.")
    if truth.min() < 0 or truth.max() < 1:
        raise ValueError(
            f"y must hold codes 0, …, C − 1 of two classes or more; found values from {truth.min()} to "
            f"{truth.max()}."
        )
    for number, part in enumerate(sets[1:]):
        if part.shape[1:] != sets[0].shape[1:]:
            raise ValueError(
                f"further[{number}] has items of shape {part.shape[1:]}, X of shape {sets[0].shape[1:]}."
            )
    return truth.astype(np.int64)


def _check_draws(
    n_annotators: int, names: Iterable[Any] | None, max_epochs: int, **ranges: Range
) -> list[Any]:
    """The annotators' names; refuses names or ranges that make no sense."""
    for name, number in (("n_annotators", n_annotators), ("max_epochs", max_epochs)):
        if number < 1:
            raise ValueError(f"{name} must be a positive integer, found {number!r}.")
    for name, (low, high) in ranges.items():
        if not 0 <= low <= high or high == 0:
            raise ValueError(f"{name} must be a range (low, high) of positive numbers, found {(low, high)}.")
    who = list(range(n_annotators) if names is None else names)
    if len(who) != n_annotators:
        raise ValueError(f"names must name {n_annotators} annotators, found {len(who)}.")
    return who
