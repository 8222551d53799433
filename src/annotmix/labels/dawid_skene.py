"""Dawid–Skene: true classes and a confusion matrix for every annotator, by maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from annotmix._common.progress import Progress
from annotmix._common.words import count
from annotmix.labels import display
from annotmix.labels.annotations import Annotations
from annotmix.labels.expectation import Cells, ItemLabels, floored_log, precision
from annotmix.labels.forms import labels_alone
from annotmix.labels.named import (
    class_table,
    confusion_array,
    confusion_table,
    gold_positions,
    index_of,
    label_series,
)
from annotmix.labels.names import distinct

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DawidSkene:
    """The result of `dawid_skene`.

    Attributes
    ----------
    labels : Series, indexed by item
        The most probable class of every item with labels (or with a gold class); the first of several
        that are equally probable. A flat soft label has no information and does not count as a label.
    probabilities : DataFrame, shape (n_items, n_classes)
        Probability of every class given the labels; an item without labels gets the prior.
    confusion : DataFrame, one row per annotator and true class, one column per label
        `confusion.loc[m]` is the matrix of annotator m, and `confusion.loc[(m, c), k]` the probability that m
        gives label k where c is true. The table is made when it is first asked for.
    prior : Series, indexed by class
        The share of every class.
    history : array, shape (n_iter,), or (n_iter + 1,) after a warm start
        The log-likelihood of all labels after every E-step.
    n_iter : int
        Rounds of EM.
    converged : bool
        Whether the rounds ended because the log-likelihood no longer rose.
    """

    labels: pd.Series
    probabilities: pd.DataFrame
    prior: pd.Series
    history: Floats
    n_iter: int
    converged: bool
    _confusion: Callable[[], pd.DataFrame] = field(repr=False)
    _n_annotators: int = field(repr=False)

    @cached_property
    def confusion(self) -> pd.DataFrame:  # noqa: D102 - described above
        return self._confusion()

    def __repr__(self) -> str:
        return f"DawidSkene({self._summary})"

    def _repr_html_(self) -> str:
        best = self.probabilities.max(axis=1)
        items = pd.DataFrame({"label": self.labels, "probability": best.reindex(self.labels.index)})
        return display.html("Dawid–Skene", self._summary, (items, len(items), "items"))

    @property
    def _summary(self) -> str:
        return (
            f"{count(len(self.labels), 'labelled item')}, {count(self._n_annotators, 'annotator')}, "
            f"{count(len(self.prior), 'class', 'classes')}; {'converged' if self.converged else 'stopped'} "
            f"after {count(self.n_iter, 'round')} with log-likelihood {self.log_likelihood:.1f}"
        )

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of all labels under `prior` and `confusion`."""
        return float(self.history[-1])


def dawid_skene(
    labels: Any,
    *,
    max_iter: int = 100,
    tol: float = 1e-5,
    smoothing: float = 1e-10,
    gold: pd.Series | Mapping[Any, Any] | None = None,
    confusion: pd.DataFrame | ArrayLike | None = None,
    prior: ArrayLike | None = None,
    progress: bool = False,
) -> DawidSkene:
    r"""True classes and a confusion matrix for every annotator, by maximum likelihood.

    Item n has a true class c with probability π_c, and annotator m then gives label k with probability
    θ_m[c, k], whatever the others do. With q_nc the probability of c given the item's labels z_n, EM repeats

    - M-step: π_c = mean_n q_nc and θ_m[c, k] ∝ Σ_{n: z_nm = k} q_nc + ε_ck,
    - E-step: q_nc ∝ π_c Π_m θ_m[c, z_nm],

    starting from q = the shares of the votes, until the log-likelihood Σ_n log Σ_c π_c Π_m θ_m[c, z_nm]
    rises by no more than `tol` per label.

    Parameters
    ----------
    labels : Annotations, long table, label matrix or soft labels
        A label of weight w counts w times: in Σ, and as θ^w.
    max_iter : int, default=100
        The most rounds.
    tol : float, default=1e-5
        The smallest rise of the log-likelihood per label that is worth another round.
    smoothing : float, default=1e-10
        ε_cc: right labels that every annotator is assumed to have given for every class beforehand, so that
        an annotator is trusted on an unseen class; for a wrong k, ε_ck is 1e-30 of that. See Notes.
    gold : Series or dict, optional
        Item name → class name where it is known. These items keep that class in every round.
    confusion : DataFrame, or array of shape (n_annotators, n_classes, n_classes), optional
        Warm start: confusion matrices for a first E-step, instead of the shares of the votes. A table, such
        as the `confusion` of an earlier result, is matched by its names.
    prior : array, shape (n_classes,), optional
        The shares of the classes in that E-step; by default the shares of the votes.
    progress : bool, default=False
        Show the rounds, where they take longer than two seconds.

    Returns
    -------
    DawidSkene
        Labels, probabilities, confusion matrices, prior and the course of the log-likelihood.

    Notes
    -----
    Adding the same small number to all counts is common, and makes an annotator who never met class c
    label it at random. Rare labels of such annotators then turn into frequent classes even where an
    item has no other label. Presuming them right instead keeps every probability above zero, changes next
    to nothing where there are labels, and makes Dawid–Skene with one label per item the majority vote: the
    label itself.

    Many labels (two million labels × classes) are counted in single precision, unless an annotator gave one
    label more than 16,384 times.

    References
    ----------
    A. P. Dawid and A. M. Skene (1979). Maximum likelihood estimation of observer error-rates using the EM
    algorithm. Applied Statistics 28(1):20–28.

    Examples
    --------
    >>> a = Annotations.from_matrix([["a", "a", "b"], ["b", "b", "b"], ["a", "a", "b"], ["b", "b", "a"]])
    >>> result = dawid_skene(a)
    >>> result.labels.tolist()
    ['a', 'b', 'a', 'b']
    >>> result.confusion.loc[(2, "a")].round(2).to_dict()  # annotator 2, where a is true
    {'a': 0.0, 'b': 1.0}
    """
    annotations = labels_alone(labels)
    _check(annotations, max_iter, tol, smoothing)
    model = _Model(annotations, smoothing, gold_positions(annotations, gold))
    if confusion is not None:
        if isinstance(confusion, pd.DataFrame):
            confusion = confusion_array(confusion, annotations.annotators, annotations.classes)
        model.warm_start(confusion, prior)
    elif prior is not None:
        raise ValueError("prior is part of a warm start; pass confusion with it.")
    converged = False
    n_iter = 0
    with Progress("Dawid–Skene", max_iter, show=progress) as bar:
        while n_iter < max_iter and not converged:
            model.round()
            n_iter += 1
            history = model.history
            converged = len(history) > 1 and history[-1] - history[-2] <= tol * len(annotations)
            bar.advance(f"log-likelihood per label {history[-1] / max(len(annotations), 1):.5f}")
    known = np.flatnonzero(model.labels.known)
    q, counts, cells = model.q, model.counts, model.cells
    return DawidSkene(
        labels=label_series(annotations, known, q[known].argmax(axis=1)),
        probabilities=class_table(q.astype(np.float64, copy=False), annotations.items, annotations.classes),
        prior=pd.Series(model.prior, index=index_of(annotations.classes, "label"), name="prior"),
        history=np.array(model.history),
        n_iter=n_iter,
        converged=converged,
        _confusion=lambda: confusion_table(
            cells.confusion(counts, smoothing), annotations.annotators, annotations.classes
        ),
        _n_annotators=annotations.n_annotators,
    )


class _Model:
    """The state of EM: probabilities q (N, C), counts of cells (K, C), prior (C,)."""

    def __init__(self, annotations: Annotations, smoothing: float, gold: tuple[Any, Any]):
        a, C, self.smoothing = annotations, annotations.n_classes, smoothing
        occur, cell = distinct(a.annotator * C + a.label, a.n_annotators * C)
        self.cells = Cells(occur, a.n_annotators, C)
        dtype = precision(len(a), C, int(np.bincount(cell).max(initial=0)))
        self.labels = ItemLabels(a.start, cell, len(occur), dtype, a.informative_weight, gold)
        self.q = self.labels.vote_shares(self.cells, a.weight)
        self.history: list[float] = []

    def warm_start(self, confusion: ArrayLike, prior: ArrayLike | None) -> None:
        """A first E-step with these matrices and class shares."""
        shape = self.cells.shape
        theta = _distributions("confusion", confusion, shape)
        pi = self._mean() if prior is None else _distributions("prior", prior, shape[1:2])
        self._e_step(pi, self.cells.select(theta))

    def round(self) -> None:
        """An M-step and an E-step."""
        self.prior = self._mean()
        self.counts = self.labels.count(self.q)
        self._e_step(self.prior, self.cells.log_confusion(self.counts, self.smoothing))

    def _e_step(self, prior: Floats, log_theta: NDArray[np.floating]) -> None:
        dtype = self.labels.dtype
        log_prior = floored_log(np.array(prior)).astype(dtype)
        self.q, log_likelihood = self.labels.e_step(log_prior, log_theta.astype(dtype, copy=False))
        self.history.append(log_likelihood)

    def _mean(self) -> Floats:
        """Class shares of the items with labels or a known class."""
        n, C = int(self.labels.known.sum()), self.cells.shape[1]
        return self.labels.class_sums(self.q) / n if n else np.full(C, 1 / C)


def _check(annotations: Annotations, max_iter: int, tol: float, smoothing: float) -> None:
    if not annotations.n_classes:
        raise ValueError(
            "There are no classes: the annotations hold no label. Give some, or name the classes."
        )
    if max_iter < 1:
        raise ValueError(f"max_iter must be 1 or more, found {max_iter!r}.")
    if not tol >= 0:
        raise ValueError(f"tol must be 0 or more, found {tol!r}.")
    if not 0 < smoothing < np.inf:
        raise ValueError(f"smoothing must be above 0 and finite, found {smoothing!r}.")


def _distributions(what: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{what} must have shape {shape}, found {array.shape}.")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        bad = array[~np.isfinite(array) | (array < 0)][0]
        raise ValueError(f"{what} must hold probabilities, found {bad}.")
    total = array.sum(axis=-1)
    if not np.allclose(total, 1, atol=1e-6):
        bad = total.flat[np.abs(total - 1).argmax()]
        raise ValueError(f"{what} must sum to 1 over its last axis, found a sum of {bad:g}.")
    return array
