"""Annotators who err together, as tables that carry their names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from annotmix._common.words import some
from annotmix.labels import display
from annotmix.labels.groups import Groups
from annotmix.labels.named import index_of

if TYPE_CHECKING:
    from annotmix.labels.annotations import Annotations
    from annotmix.labels.evidence import Answer

#: A group that decides a greater share of the items deserves a warning.
MANY = 0.02
#: Columns of pairs that come as they are.
PAIRS = ["common", "together", "expected", "excess", "z"]
#: Part of the warning about a group that decides.
DECIDES = "err together, and decide"


@dataclass(frozen=True, eq=False)
class ErrTogether:
    """Annotators who are wrong together more often than chance allows (see `annotmix.labels.dependence`).

    Attributes
    ----------
    annotations : Annotations
    answer : Answer
    """

    annotations: Annotations
    answer: Answer

    @property
    def used(self) -> bool:
        """Whether labels of groups count less, as there are copies and others become more probable."""
        return self.answer.dependence is not None and self.answer.dependence.used

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """One row per pair of annotators with enough common items, the most significant first.

        `first`, `second`; `common`, the number of common items looked at; `together`, how many of them got
        the same wrong label, and `expected` from independent annotators; `excess`, the probability that one
        says what the other says; `z`, its significance; `group`, where both are in one group, else -1.
        """
        found, names = self.answer.dependence, self.annotations.annotators
        columns = ["first", "second", *PAIRS, "group"]
        if found is None:
            return pd.DataFrame(columns=columns)
        place = np.full(len(names), -1)
        for g, members in enumerate(found.groups.members):
            place[members] = g
        same = found.groups.group[found.first] == found.groups.group[found.second]
        table = pd.DataFrame({name: getattr(found, name) for name in PAIRS}).assign(
            first=names[found.first], second=names[found.second], group=np.where(same, place[found.first], -1)
        )[columns]
        return table.sort_values("z", ascending=False, kind="stable", ignore_index=True)

    @cached_property
    def groups(self) -> pd.DataFrame:
        """One row per group, the largest first.

        `annotators`, a list of names; `n_annotators`; `votes`, the effective number of their labels where
        more than one of them labelled an item; `n_labels`, the mean number of these labels; `decides`, the
        share of items that have another answer where each of them counts fully than where they count as one;
        `counts_less`, whether their labels count less in the answer.
        """
        a, members = self.annotations, self._members
        share = self._shares
        pair_share = share / np.bincount(a.pair)[a.pair] if len(a) else share
        rows = []
        for who, decides in zip(members, self.answer.decides, strict=True):
            inside = np.isin(a.annotator, who)
            votes = np.bincount(a.item[inside], pair_share[inside], a.n_items)
            n_labels = np.bincount(a.item[inside], (1 / np.bincount(a.pair)[a.pair])[inside], a.n_items)
            several = n_labels > 1.5
            rows.append(
                {
                    "annotators": a.annotators[who].tolist(),
                    "n_annotators": len(who),
                    "n_labels": float(n_labels[several].mean()) if several.any() else float("nan"),
                    "votes": float(votes[several].mean()) if several.any() else float("nan"),
                    "decides": float(decides),
                    "counts_less": self.used,
                }
            )
        columns = ["annotators", "n_annotators", "n_labels", "votes", "decides", "counts_less"]
        return pd.DataFrame(rows, columns=columns).rename_axis("group")

    @cached_property
    def votes(self) -> pd.Series:
        """The effective number of votes of every item: below its number of labels where groups are."""
        a = self.annotations
        size = np.bincount(a.pair)[a.pair] if len(a) else np.ones(0)
        votes = np.bincount(a.item, self._shares / size, a.n_items)
        return pd.Series(votes, index=index_of(a.items, "item"), name="votes")

    @property
    def n_votes(self) -> float:
        """The mean effective number of votes of an item with labels; nan without labels."""
        labelled = self.annotations.labels_per_item > 0
        return float(self.votes.to_numpy()[labelled].mean()) if labelled.any() else float("nan")

    @property
    def warnings(self) -> list[str]:
        """A sentence about every group that decides many items."""
        texts = []
        for row in self.groups.to_dict("records"):
            if row["decides"] <= MANY:
                continue
            who = some(np.array(row["annotators"], dtype=object))
            if row["counts_less"]:
                texts.append(
                    f"{who} err together. If each of them counted fully, {row['decides']:.0%} of the items "
                    "could get another label; so their labels count less."
                )
            else:
                texts.append(
                    f"{who} {DECIDES} {row['decides']:.0%} of the items: these would have "
                    "another label if the group counted as one annotator. True labels of some items (gold) "
                    "say who is right."
                )
        return texts

    @property
    def _members(self) -> list[np.ndarray]:
        return [] if self.answer.dependence is None else self.answer.dependence.groups.members

    @property
    def _shares(self) -> np.ndarray:
        if self.answer.dependence is None:
            return np.ones(len(self.annotations))
        groups: Groups = self.answer.dependence.groups
        return groups.shares(self.annotations)

    @property
    def _summary(self) -> str:
        groups = self.groups
        if not len(groups):
            return f"{len(self.pairs)} pairs judged, nobody errs together"
        n, use = len(groups), "they count less" if self.used else "they count fully"
        return (
            f"{n} group{'' if n == 1 else 's'} of {int(groups['n_annotators'].sum())} annotators who err "
            f"together, {use}; {self.n_votes:.1f} votes per item in effect"
        )

    def __repr__(self) -> str:
        return f"ErrTogether({self._summary})"

    def _repr_html_(self) -> str:
        tables = (self.groups, len(self.groups), "groups"), (self.pairs, len(self.pairs), "pairs")
        return display.html("ErrTogether", self._summary, *tables)
