"""People, models and rules compared: how right they are, how far they agree, what a right label costs.

All figures rest on the posterior: a label of class k for item n is right with the probability q_nk. Labels of
one kind for one item are right or wrong together more often than labels of different items, so that the
interval of a kind's accuracy takes items, not labels, as independent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import csr_array

from annotmix._common.words import show
from annotmix.labels import display
from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import between, within
from annotmix.labels.kinds import KINDS, kind_called
from annotmix.labels.names import Index
from annotmix.labels.posterior import Posterior, beta_interval

Floats = NDArray[np.float64]

#: Rows of the tables about single confusions and items.
MOST_CONFUSIONS, MOST_ITEMS = 20, 50
_PEOPLE, _MODELS = "people", "models"


@dataclass(frozen=True, eq=False)
class KindComparison:
    """The result of `compare_kinds`.

    Attributes
    ----------
    kinds : DataFrame, one row per kind
        `annotators` and `labels`: their numbers; `accuracy`, the estimated share of right labels, with its
        95 % interval, `low` and `high`; `agreement` and `kappa` within the kind; `cost_per_label` and
        `cost_per_right_label`, nan where no price is known.
    agreement : DataFrame, one row per pair of kinds
        `kind`, `other`, `n_items` that both labelled, `agreement`, and `kappa`, corrected for chance.
    classes : DataFrame, one row per true class
        The share of right labels of every kind, one column each.
    confusions : DataFrame
        Where models err and people do not: true `class`, `label`, and the share of the class that gets this
        label from each kind; most additional wrong labels of models first. Empty without people or models.
    items : DataFrame
        The same for items: `item`, the `label` found and its `probability`, and the mean chance that the
        labels of each kind are right; below 1/2 for models, 1/2 or more for people.
    """

    kinds: pd.DataFrame
    agreement: pd.DataFrame
    classes: pd.DataFrame
    confusions: pd.DataFrame
    items: pd.DataFrame

    def __repr__(self) -> str:
        return f"KindComparison({self._summary})"

    def _repr_html_(self) -> str:
        tables = (
            (self.kinds, "kinds"), (self.agreement, "pairs of kinds"),
            (self.confusions, "confusions of models"), (self.items, "items"),
        )  # fmt: skip
        shown = [(table, len(table), what) for table, what in tables if len(table)]
        return display.html("Kinds of annotators", self._summary, *shown)

    @property
    def _summary(self) -> str:
        rows = self.kinds.to_dict("index").items()
        return ", ".join(f"{kind}: {row['labels']} labels, {row['accuracy']:.0%} right" for kind, row in rows)


class _Group(NamedTuple):
    """A kind with labels: its annotators, its labels, and the votes of its labels for items and classes."""

    kind: str
    members: NDArray[np.bool_]
    part: Annotations
    item: Index
    label: Index
    votes: Floats


def compare_kinds(
    posterior: Posterior, kinds: Mapping[Any, str], cost: Mapping[Any, float] | None = None
) -> KindComparison:
    """Compare people, models and rules by the posterior of their labels.

    Parameters
    ----------
    posterior : Posterior
        Such as `annotmix.posterior(labels)` or `clf.posterior_`.
    kinds : mapping of annotator to str
        "people", "models" or "rules"; words such as "human" or "LLM" are understood. The kind of annotators
        that are left out is "unknown".
    cost : mapping of annotator to float, optional
        Cost of one label; annotators that are left out do not count for costs.

    Returns
    -------
    KindComparison

    Examples
    --------
    >>> from annotmix import posterior
    >>> result = posterior([["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]])
    >>> compare_kinds(result, {0: "human", 1: "human", 2: "llm"}).kinds["labels"].to_dict()
    {'people': 6, 'models': 3}
    """
    a, q = posterior.annotations, posterior.answer.q
    of = np.array([_kind(kinds.get(name, ""), name) for name in a.annotators.tolist()], dtype=object)
    groups = [_group(a, kind, of == kind) for kind in KINDS if (of[a.annotator] == kind).any()]
    price = np.array([(cost or {}).get(name, np.nan) for name in a.annotators.tolist()], dtype=np.float64)
    if (price < 0).any():
        raise ValueError(f"cost must be numbers of 0 or more, found {price[price < 0][0]:g}.")
    counts = {group.kind: _confusion_counts(group, q) for group in groups}
    return KindComparison(
        pd.DataFrame([_facts(group, q, price) for group in groups]).set_index("kind"),
        _agreement(a, groups),
        pd.DataFrame(
            {kind: np.diag(_rates(counted)) for kind, counted in counts.items()},
            index=pd.Index(a.classes, name="class", tupleize_cols=False),
        ),
        _confusions(a, counts),
        _items(posterior, groups),
    )


def _kind(word: Any, name: Any) -> str:
    kind = kind_called(word) if isinstance(word, str) else None
    if kind is None:
        raise ValueError(f"The kind of {show(name)} is {show(word)}, expected {', '.join(KINDS)}.")
    return kind


def _group(a: Annotations, kind: str, members: NDArray[np.bool_]) -> _Group:
    part = a.keep(members[a.annotator])
    item, label, count = part.votes()
    return _Group(kind, members, part, item, label, count.astype(np.float64))


def _facts(group: _Group, q: Floats, price: Floats) -> dict[str, Any]:
    """The row of a kind in `KindComparison.kinds`."""
    part, agreed = group.part, within(group.part)
    mean, low, high = _accuracy(group, q)
    paid = price[part.annotator]
    known = ~np.isnan(paid)
    # a soft label has several rows and one price
    once = known & (np.diff(part.pair, prepend=-1) != 0)
    share = q[part.item, part.label]
    if part.weight is not None:
        share = share * part.weight / np.bincount(part.pair, part.weight)[part.pair]
    spent, right = float(paid[once].sum()), float(share[known].sum())
    return {
        "kind": group.kind,
        "annotators": int((part.labels_per_annotator > 0).sum()),
        "labels": int(part.labels_per_item.sum()),
        "accuracy": mean,
        "low": low,
        "high": high,
        "agreement": agreed.percent,
        "kappa": agreed.kappa,
        "cost_per_label": spent / once.sum() if once.any() else np.nan,
        "cost_per_right_label": spent / right if once.any() and right > 0 else np.nan,
    }


def _accuracy(group: _Group, q: Floats) -> tuple[float, float, float]:
    """The share of right labels, and the ends of its 95 % interval, with items as independent.

    Of the labels of item n, of weight w_n, r_n are expected to be right. The variance of a = Σr / Σw is
    Σ (r_n − a w_n)² / (Σw)², at least that of as many independent labels, plus that of unknown truth.
    """
    right = q[group.item, group.label]
    n_items = len(q)
    weight = np.bincount(group.item, group.votes, n_items)
    expected = np.bincount(group.item, group.votes * right, n_items)
    unsure = np.bincount(group.item, group.votes**2 * right, n_items) - expected**2
    total = weight.sum()
    mean = (expected.sum() + 0.5) / (total + 1)
    sampled = ((expected - mean * weight) ** 2).sum() / total**2
    variance = max(sampled, mean * (1 - mean) / (total + 2)) + max(unsure.sum(), 0) / total**2
    low, high = beta_interval(mean, variance)
    return float(mean), float(low), float(high)


def _agreement(a: Annotations, groups: list[_Group]) -> pd.DataFrame:
    rows = [
        (one.kind, other.kind, *between(a, one.members, other.members))
        for one, other in combinations(groups, 2)
    ]
    return pd.DataFrame(rows, columns=["kind", "other", "n_items", "agreement", "kappa"])


def _confusion_counts(group: _Group, q: Floats) -> Floats:
    """Expected weight of the labels k of items of class c, shape (C, C), indexed [c, k]."""
    shape = (q.shape[1], len(q))
    return np.asarray((csr_array((group.votes, (group.label, group.item)), shape=shape) @ q).T)


def _rates(counts: Floats) -> Floats:
    """Every row as shares; nan where a class has no label."""
    with np.errstate(invalid="ignore"):
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def _confusions(a: Annotations, counts: Mapping[str, Floats]) -> pd.DataFrame:
    rates = {kind: _rates(own) for kind, own in counts.items()}
    if not {_PEOPLE, _MODELS} <= rates.keys():
        return pd.DataFrame(columns=["class", "label", *rates])
    more = (rates[_MODELS] - rates[_PEOPLE]) * counts[_MODELS].sum(axis=1, keepdims=True)
    np.fill_diagonal(more, 0)
    more = np.where(more >= 0.5, more, 0)  # half a label, as elsewhere; nan is none
    order = np.argsort(-more, axis=None, kind="stable")[: min(MOST_CONFUSIONS, int((more > 0).sum()))]
    true, label = np.unravel_index(order, more.shape)
    return pd.DataFrame(
        {
            "class": a.classes[true],
            "label": a.classes[label],
            **{kind: own[true, label] for kind, own in rates.items()},
        }
    )


def _items(posterior: Posterior, groups: list[_Group]) -> pd.DataFrame:
    a, q = posterior.annotations, posterior.answer.q
    right = {group.kind: _mean_right(group, q) for group in groups}
    rows = np.zeros(0, dtype=np.int64)
    if {_PEOPLE, _MODELS} <= right.keys():
        rows = np.flatnonzero((right[_MODELS] < 0.5) & (right[_PEOPLE] >= 0.5))
        rows = rows[np.argsort(right[_MODELS][rows] - right[_PEOPLE][rows], kind="stable")][:MOST_ITEMS]
    best = q[rows].argmax(axis=1)
    return pd.DataFrame(
        {
            "item": a.items[rows],
            "label": a.classes[best],
            "probability": q[rows, best],
            **{kind: share[rows] for kind, share in right.items()},
        }
    )


def _mean_right(group: _Group, q: Floats) -> Floats:
    """Mean chance that the labels of a kind are right, shape (N,); nan for items without any."""
    expected = np.bincount(group.item, group.votes * q[group.item, group.label], len(q))
    with np.errstate(invalid="ignore"):
        return np.asarray(expected / np.bincount(group.item, group.votes, len(q)))
