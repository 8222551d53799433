"""One label per item from many: majority vote, Dawid–Skene and the methods of crowd-kit.

Majority vote and Dawid–Skene are vectorised, and need memory linear in the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from annotmix._common.words import some
from annotmix.labels import crowdkit
from annotmix.labels.annotations import ROUNDING, Annotations
from annotmix.labels.names import Index, Names

Floats = NDArray[np.float64]

#: Pseudo-labels for every wrong class, relative to the right class (see `dawid_skene`).
WRONG = 1e-30
#: The smallest probability whose logarithm is taken.
TINY = 1e-300


# ---------------------------------------------------------------- majority vote


@overload
def majority_vote(
    annotations: Annotations, *, ties: Literal["random"] = "random", random_state: Any = None
) -> pd.Series: ...
@overload
def majority_vote(
    annotations: Annotations, *, ties: Literal["all"], random_state: Any = None
) -> pd.DataFrame: ...
def majority_vote(
    annotations: Annotations, *, ties: Literal["random", "all"] = "random", random_state: Any = None
) -> pd.Series | pd.DataFrame:
    """The class that most annotators gave, for every item that has labels.

    Parameters
    ----------
    annotations : Annotations
        The labels. A label of weight w has w votes.
    ties : {"random", "all"}
        Where several classes have the most votes: take one of them, each as likely, or return them all.
    random_state : int, Generator or None
        Breaks the ties.

    Returns
    -------
    Series or DataFrame
        "random": class names, indexed by item. "all": booleans, one row per item and one column per class,
        true for every class with the most votes.

    Examples
    --------
    >>> a = Annotations.from_matrix([["cat", "cat", "dog"], ["cat", "dog", None]], items=["x", "y"])
    >>> majority_vote(a, random_state=0)["x"]
    'cat'
    >>> majority_vote(a, ties="all").loc["y"].to_dict()
    {'cat': True, 'dog': True}
    """
    if ties not in ("random", "all"):
        raise ValueError(f'ties must be "random" or "all", found {ties!r}.')
    item, label = _most_votes(annotations)
    first = np.flatnonzero(np.diff(item, prepend=-1))
    if ties == "all":
        winners = np.zeros((annotations.n_items, annotations.n_classes), dtype=bool)
        winners[item, label] = True
        return _table(annotations, winners).iloc[item[first]]
    n_tied = np.diff(first, append=len(item))
    chosen = first + np.random.default_rng(random_state).integers(n_tied)
    return _labels(annotations, item[chosen], label[chosen])


def _most_votes(annotations: Annotations) -> tuple[Index, Index]:
    """Items and their classes with the most votes, sorted by item; a tie gives several entries."""
    item, label, votes = annotations.votes()
    most = np.zeros(annotations.n_items)
    np.maximum.at(most, item, votes)
    won = votes >= most[item] * (1 - ROUNDING)
    return item[won], label[won]


# ---------------------------------------------------------------- Dawid–Skene


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
    _matrices: Callable[[], Floats] = field(repr=False)

    @cached_property
    def confusion(self) -> Floats:
        """P(label k | true class c) of every annotator, shape (M, C, C), indexed [annotator, c, k]."""
        return self._matrices()

    @property
    def log_likelihood(self) -> float:
        """Log-likelihood of all labels under `prior` and `confusion`."""
        return float(self.history[-1])


def dawid_skene(
    annotations: Annotations,
    *,
    max_iter: int = 100,
    tol: float = 1e-5,
    smoothing: float = 1e-10,
    gold: pd.Series | Mapping[Any, Any] | None = None,
    confusion: ArrayLike | None = None,
    prior: ArrayLike | None = None,
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
    annotations : Annotations
        The labels. A label of weight w counts w times: in Σ, and as θ^w.
    max_iter : int, default=100
        The most rounds.
    tol : float, default=1e-5
        The smallest rise of the log-likelihood per label that is worth another round.
    smoothing : float, default=1e-10
        ε_cc: right labels that every annotator is assumed to have given for every class beforehand, so that
        an annotator is trusted on an unseen class; for a wrong k, ε_ck is 1e-30 of that. See Notes.
    gold : Series or dict, optional
        Item name → class name where it is known. These items keep that class in every round.
    confusion : array, shape (n_annotators, n_classes, n_classes), optional
        Warm start: confusion matrices for a first E-step, instead of the shares of the votes.
    prior : array, shape (n_classes,), optional
        The shares of the classes in that E-step; by default the shares of the votes.

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
    >>> result.confusion[2].round(2)
    array([[0. , 1. ],
           [0.5, 0.5]])
    """
    _check(annotations, max_iter, tol, smoothing)
    model = _Model(annotations, smoothing, gold)
    q = model.vote_shares()
    history: list[float] = []
    if confusion is not None:
        shape = (annotations.n_annotators, annotations.n_classes, annotations.n_classes)
        theta = model.columns(_distributions("confusion", confusion, shape))
        pi = model.mean(q) if prior is None else _distributions("prior", prior, shape[1:2])
        q, log_likelihood = model.e_step(pi, theta)
        history.append(log_likelihood)
    elif prior is not None:
        raise ValueError("prior is part of a warm start; pass confusion with it.")
    converged = False
    n_iter = 0
    while n_iter < max_iter and not converged:
        pi, theta = model.m_step(q)
        q, log_likelihood = model.e_step(pi, theta)
        history.append(log_likelihood)
        n_iter += 1
        converged = len(history) > 1 and history[-1] - history[-2] <= tol * len(annotations)
    known = np.flatnonzero(model.known)
    return DawidSkene(
        labels=_labels(annotations, known, q[known].argmax(axis=1)),
        probabilities=_table(annotations, q),
        prior=pd.Series(pi, index=pd.Index(annotations.classes, name="label"), name="prior"),
        history=np.array(history),
        n_iter=n_iter,
        converged=converged,
        _matrices=partial(model.matrices, theta),
    )


class _Model:
    """The two steps of EM.

    `theta` has one row per cell (annotator m, label k) that occurs, and one column per class, shape (K, C):
    whole matrices are made on demand.
    """

    def __init__(self, annotations: Annotations, smoothing: float, gold: Any):
        n_items, n_annotators, n_classes = (
            annotations.n_items,
            annotations.n_annotators,
            annotations.n_classes,
        )
        self.annotations = annotations
        weight = annotations.informative_weight
        cells, cell = np.unique(annotations.annotator * n_classes + annotations.label, return_inverse=True)
        self.annotator, self.label = np.divmod(cells, n_classes)
        #: Item n × cell (m, k): one, or the informative weight, where m gave label k to n.
        self.said = csr_array(
            (np.ones(len(annotations)) if weight is None else weight, cell, annotations.start),
            shape=(n_items, len(cells)),
        )
        where = (self.annotator, np.arange(len(cells)))
        self.by_annotator = csr_array((np.ones(len(cells)), where), shape=(n_annotators, len(cells)))
        self.total: Floats = np.zeros((n_annotators, n_classes))
        self.pseudo_labels = smoothing * np.where(np.eye(n_classes, dtype=bool), 1.0, WRONG)
        self.gold_item, self.gold_label = gold_positions(annotations, gold)
        self.known = np.bincount(annotations.item, weights=weight, minlength=n_items) > 0
        self.known[self.gold_item] = True

    def vote_shares(self) -> Floats:
        a = self.annotations
        votes = a.total(a.item * a.n_classes + a.label, a.n_items * a.n_classes)
        total = np.where(a.labels_per_item > 0, a.total(a.item, a.n_items), 1)
        q: Floats = votes.reshape(a.n_items, a.n_classes) / total[:, None]
        q[self.gold_item] = np.eye(a.n_classes)[self.gold_label]
        return q

    def mean(self, q: Floats) -> Floats:
        if not self.known.any():
            return np.full(q.shape[1], 1 / q.shape[1])
        return np.asarray(q[self.known].mean(axis=0))

    def m_step(self, q: Floats) -> tuple[Floats, Floats]:
        """Prior (C,) and θ (K, C) for posteriors q (N, C)."""
        theta: Floats = self.said.T @ q
        self.total = self.by_annotator @ theta + self.pseudo_labels.sum(axis=0)
        theta += self.pseudo_labels[self.label]
        theta /= self.total[self.annotator]
        return self.mean(q), theta

    def columns(self, confusion: Floats) -> Floats:
        """θ (K, C) of matrices [m, c, k], shape (M, C, C)."""
        return np.asarray(confusion[self.annotator, :, self.label])

    def matrices(self, theta: Floats) -> Floats:
        """Matrices [m, c, k], shape (M, C, C), of θ (K, C) from the last M-step."""
        confusion: Floats = self.pseudo_labels.T / self.total[:, :, None]
        confusion[self.annotator, :, self.label] = theta
        return confusion

    def e_step(self, pi: Floats, theta: Floats) -> tuple[Floats, float]:
        """Posteriors q (N, C) and the log-likelihood for a prior (C,) and θ (K, C)."""
        q = self.said @ _log(theta) + _log(pi)
        gold_joint = q[self.gold_item, self.gold_label]
        q[self.gold_item] = -np.inf
        q[self.gold_item, self.gold_label] = gold_joint
        top = q.max(axis=1, keepdims=True)
        np.exp(q - top, out=q)
        total = q.sum(axis=1, keepdims=True)
        q /= total
        return q, float((top + np.log(total)).sum())


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


def gold_positions(
    annotations: Annotations, gold: pd.Series | Mapping[Any, Any] | None
) -> tuple[Index, Index]:
    """Rows of the items whose true classes are known, and these classes as numbers."""
    known = pd.Series({} if gold is None else gold, dtype=object)
    item = _positions(annotations.items, known.index, "gold: item")
    if len(np.unique(item)) < len(item):
        raise ValueError(f"gold: repeated items {some(list(known.index[known.index.duplicated()]))}.")
    return item, _positions(annotations.classes, known.to_numpy(), "gold: class")


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


def _log(probability: Floats) -> Floats:
    floored = np.maximum(probability, TINY)
    return np.log(floored, out=floored)


# ---------------------------------------------------------------- any method by name


def aggregate(
    annotations: Annotations, method: str = "mv", *, random_state: Any = None, **params: Any
) -> pd.Series:
    """One class for every item that has labels, by the method named.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    method : str
        "mv" (`majority_vote`), "ds" (`dawid_skene`), or "crowd-kit:NAME" for any aggregator of class labels
        in crowd-kit, for example "crowd-kit:GLAD".
    random_state : int, Generator or None
        Breaks ties ("mv") or seeds crowd-kit's aggregator, if it has a seed; "ds" needs no randomness.
    **params
        Parameters of the method: of `dawid_skene`, or of crowd-kit's class and its `fit_predict`.

    Returns
    -------
    Series, indexed by item
        Class names; items without labels are missing from it.

    Examples
    --------
    >>> a = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]])
    >>> aggregate(a, "ds").tolist()
    [0, 1]
    """
    if method == "mv":
        return majority_vote(annotations, ties="random", random_state=random_state, **params)
    if method == "ds":
        return dawid_skene(annotations, **params).labels
    if not method.startswith("crowd-kit:"):
        raise ValueError(f'method must be "mv", "ds" or "crowd-kit:NAME", found {method!r}.')
    aggregate_labels = crowdkit.fit_predict(
        annotations, method.removeprefix("crowd-kit:"), random_state, **params
    )
    item = _positions(annotations.items, aggregate_labels.index, "item")
    label = _positions(annotations.classes, aggregate_labels.to_numpy(), "class")
    order = np.argsort(item)
    return _labels(annotations, item[order], label[order])


def aggregated(annotations: Annotations, labels: pd.Series) -> Annotations:
    """One label per item, as `Annotations` of a single annotator named "aggregated"."""
    item = _positions(annotations.items, labels.index, "item")
    label = _positions(annotations.classes, labels.to_numpy(), "class")
    names = np.array(["aggregated"], dtype=object)
    return Annotations(item, np.zeros_like(item), label, annotations.items, names, annotations.classes)


# ---------------------------------------------------------------- names


def _positions(names: Names, wanted: Any, what: str) -> Index:
    wanted = pd.Index(wanted)
    positions: Index = pd.Index(names).get_indexer(wanted).astype(np.int64)
    if (positions < 0).any():
        unknown = wanted[positions < 0].unique()
        raise ValueError(f"{what} {some(list(unknown))} is unknown; known: {some(names)}.")
    return positions


def _labels(annotations: Annotations, item: Index, label: Index) -> pd.Series:
    index = pd.Index(annotations.items[item], name="item")
    return pd.Series(annotations.classes[label], index=index, name="label")


def _table(annotations: Annotations, values: NDArray[Any]) -> pd.DataFrame:
    index = pd.Index(annotations.items, name="item")
    return pd.DataFrame(values, index=index, columns=pd.Index(annotations.classes, name="label"))
