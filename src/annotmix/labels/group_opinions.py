"""Groups of annotators compared, for questions without a single truth: what each would say about the items.

Every group is judged by its own labels alone: with one right class for all, the larger group would decide
what the smaller one means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.words import some
from annotmix.labels import display
from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import between, within
from annotmix.labels.forms import labels_alone
from annotmix.labels.named import index_of
from annotmix.labels.posterior import posterior


@dataclass(frozen=True, eq=False)
class GroupOpinions:
    """What groups of annotators say; the result of `compare_groups`.

    Attributes
    ----------
    soft_labels : DataFrame, one row per `group` and `item`, one column per class
        Share of the group that would give each label; `soft_labels.loc[group]` is one group.
    agreement : DataFrame, one row per pair of groups
        How often two labels of an item are the same: `within_first`, `within_second` and `between` them, on
        `n_items` items that both groups labelled. Groups that read items alike agree between each other as
        they do within.
    items : DataFrame, one row per item that two groups or more labelled, the most different first
        `distance`: the greatest total variation distance of two groups, and the most frequent label of each.
    """

    soft_labels: pd.DataFrame
    agreement: pd.DataFrame
    items: pd.DataFrame

    def __repr__(self) -> str:
        return f"GroupOpinions({self._summary})"

    def _repr_html_(self) -> str:
        return display.html(
            "GroupOpinions",
            self._summary,
            (self.agreement.reset_index(), len(self.agreement), "pairs of groups"),
            (self.items, len(self.items), "items"),
        )

    @property
    def _summary(self) -> str:
        return f"groups {some(list(self.soft_labels.index.unique('group')))}; {len(self.items)} common items"


def compare_groups(labels: Any, groups: Mapping[Any, Any]) -> GroupOpinions:
    """Compare groups of annotators by the labels that each would give the items.

    Parameters
    ----------
    labels : Annotations, long table or label matrix
        As `annotmix.posterior` takes them.
    groups : mapping of annotator to group
        Annotators that are left out belong to no group.

    Examples
    --------
    >>> labels = [["yes", "yes", "no", "no"], ["yes", "yes", "yes", "no"], ["no", "no", "no", "no"]]
    >>> compare_groups(labels, {0: "old", 1: "old", 2: "young", 3: "young"}).items.index[0]
    0
    """
    a = labels_alone(labels)
    member = {name: [m for m in a.annotators.tolist() if groups.get(m) == name] for name in _names(groups)}
    member = {name: who for name, who in member.items() if who}
    if len(member) < 2:
        raise ValueError(
            f"groups must name two groups of annotators with labels or more, found {some(list(member))}."
        )
    inside = {name: np.isin(a.annotators, np.array(who, dtype=object)) for name, who in member.items()}
    soft = {name: posterior(a.keep(mask[a.annotator])).soft_labels() for name, mask in inside.items()}
    rows = []
    for first, second in combinations(member, 2):
        mixed = between(a, inside[first], inside[second])
        alone = (within(a, inside[name]).percent for name in (first, second))
        rows.append([first, second, mixed.n_items, *alone, mixed.percent])
    columns = ["first", "second", "n_items", "within_first", "within_second", "between"]
    return GroupOpinions(
        pd.concat({name: own.probabilities for name, own in soft.items()}, names=["group"]),
        pd.DataFrame(rows, columns=columns).set_index(["first", "second"]),
        _items(a, {name: own.values for name, own in soft.items()}, inside),
    )


def _names(groups: Mapping[Any, Any]) -> list[Any]:
    return sorted({name for name in groups.values() if name not in (None, "")}, key=str)


def _items(a: Annotations, soft: Mapping[Any, np.ndarray], inside: Mapping[Any, np.ndarray]) -> pd.DataFrame:
    """See `GroupOpinions.items`."""
    labelled = {
        name: np.bincount(a.item[mask[a.annotator]], minlength=a.n_items) > 0 for name, mask in inside.items()
    }
    distance = np.full(a.n_items, np.nan)
    for first, second in combinations(soft, 2):
        both = labelled[first] & labelled[second]
        apart = np.abs(soft[first] - soft[second])[both].sum(axis=1) / 2
        distance[both] = np.fmax(distance[both], apart)
    table = pd.DataFrame({"distance": distance}, index=index_of(a.items, "item"))
    for name, values in soft.items():
        label = a.classes[values.argmax(axis=1)].astype(object)
        table[name] = np.where(labelled[name], label, None)
    return table.dropna(subset=["distance"]).sort_values("distance", ascending=False, kind="stable")
