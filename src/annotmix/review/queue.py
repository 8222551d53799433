"""Which items a reviewer sees, and in which order.

The findings are indexed once. A request then costs a few masks over all items, also with 10⁵ of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import did_you_mean, some
from annotmix.review.orders import ORDERS, Order, ordered
from annotmix.runs.findings import Findings, is_gold

Bools = NDArray[np.bool_]
Rows = NDArray[np.int64]

#: What may have become of an item, and a sentence about each.
STATUSES = {
    "open": "Nobody has decided it.",
    "decided": "Most of its reviewers chose one class.",
    "disagreed": "Its reviewers contradict each other.",
    "invalid": "It is not a valid item.",
    "unsure": "A reviewer could not tell.",
    "skipped": "A reviewer passed it.",
    "known": "Its true class was known before: --gold.",
}
STATUS = {name: code for code, name in enumerate(STATUSES)}
#: Items of one page of a queue.
PAGE = 50
#: Searches whose results are kept.
_SEARCHES = 32


@dataclass(frozen=True)
class Filters:
    """Which items of a run are in a queue; all conditions hold together.

    Parameters
    ----------
    order : str
        A key of `ORDERS`.
    label : str
        The label found.
    annotator : str
        Who labelled the item.
    status : str
        A key of `STATUSES`, or "all".
    disputed : bool
        Whether its labels disagree.
    search : str
        A part of its name or text, in any case.
    """

    order: str = "useful"
    label: str = ""
    annotator: str = ""
    status: str = "open"
    disputed: bool = False
    search: str = ""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Filters:
        """The filters in an address or a request."""
        made = cls(
            query.get("order") or "useful",
            query.get("label") or "",
            query.get("annotator") or "",
            query.get("status") or "open",
            query.get("disputed", "") not in ("", "0"),
            query.get("search") or "",
        )
        if made.order not in ORDERS:
            raise ValueError(f"An order is one of {', '.join(ORDERS)}, found {made.order!r:.60}.")
        if made.status not in (*STATUSES, "all"):
            raise ValueError(f"A status is all or one of {', '.join(STATUSES)}, found {made.status!r:.60}.")
        return made

    @property
    def narrow(self) -> bool:
        """Whether some open items are left out."""
        own = self.label or self.annotator or self.disputed or self.search
        return bool(own) or self.status not in ("open", "all")


class Index:
    """The findings of a run by numbers: items, annotators and classes are rows of their lists.

    Parameters
    ----------
    findings : Findings

    Attributes
    ----------
    items, annotators, classes : lists of str
    label : array, shape (N,)
        The label found of each item; -1 without one.
    vote_annotator, vote_label : arrays
        The labels, by item; those of item n are `votes(n)`.
    vote_row : array
        The row of each label in `Findings.labels`.
    """

    def __init__(self, findings: Findings):
        if findings.several is not None:
            raise ValueError(
                "annotmix review is for one class per item, and this run has several. Correct its items in a "
                "table of true classes, and learn them with annotmix fit --multi-label --gold FILE."
            )
        items, labels = findings.items, findings.labels
        self.findings = findings
        self.items = [str(name) for name in items.index]
        self.annotators = [str(name) for name in findings.annotators.index]
        self.classes = [str(name) for name in findings.classes]
        self.label = _codes(self.classes, items["label"])
        self.gold = is_gold(items)
        self.disputed = np.asarray(items["disagreement"].fillna(0.0).to_numpy() > 0)
        item = _codes(self.items, labels["item"])
        by_item = np.argsort(item, kind="stable")
        self.vote_row = by_item
        self.vote_annotator = _codes(self.annotators, labels["annotator"])[by_item]
        self.vote_label = _codes(self.classes, labels["label"])[by_item]
        self._vote_item = item[by_item]
        self._start = np.searchsorted(self._vote_item, np.arange(len(self.items) + 1))
        self.order = lru_cache(maxsize=None)(self._order)
        self.rank = lru_cache(maxsize=None)(self._rank)
        self.found = lru_cache(maxsize=_SEARCHES)(self._found)
        self._texts: list[str] | None = None

    def votes(self, row: int) -> slice:
        """Where the labels of an item stand."""
        return slice(int(self._start[row]), int(self._start[row + 1]))

    def mask(self, filters: Filters, status: NDArray[np.int8]) -> Bools:
        """Which items pass the filters, shape (N,); `status` are codes of `STATUS`."""
        kept = np.ones(len(self.items), dtype=bool)
        if filters.label:
            kept &= self.label == self._code(self.classes, filters.label, "class")
        if filters.annotator:
            own = self.vote_annotator == self._code(self.annotators, filters.annotator, "annotator")
            with_label = np.zeros(len(self.items), dtype=bool)
            with_label[self._vote_item[own]] = True
            kept &= with_label
        if filters.status != "all":
            kept &= status == STATUS[filters.status]
        if filters.disputed:
            kept &= self.disputed
        if filters.search.strip():
            kept &= self.found(filters.search.strip().casefold())
        return kept

    def rows(self, filters: Filters, status: NDArray[np.int8]) -> Rows:
        """The items that pass the filters, in their order."""
        rows = self.order(filters.order).rows
        return rows[self.mask(filters, status)[rows]]

    def _order(self, name: str) -> Order:
        return ordered(name, self.findings.items, self.findings.labels)

    def _rank(self, name: str) -> Rows:
        """The place of each item in an order, shape (N,)."""
        rank = np.empty(len(self.items), dtype=np.int64)
        rank[self._order(name).rows] = np.arange(len(self.items))
        return rank

    def _found(self, wanted: str) -> Bools:
        if self._texts is None:
            previews = self.findings.previews
            texts = (f"{name}\n{own.text if (own := previews.get(name)) else ''}" for name in self.items)
            self._texts = [text.casefold() for text in texts]
        return np.fromiter((wanted in text for text in self._texts), dtype=bool, count=len(self.items))

    @staticmethod
    def _code(names: list[str], name: str, kind: str) -> int:
        try:
            return names.index(name)
        except ValueError:
            hint = did_you_mean(name, names[:5000]) or f" There are {some(names)}."
            raise ValueError(f"No {kind} is called {name!r:.60}.{hint}") from None


def _codes(names: list[str], column: pd.Series) -> NDArray[np.int64]:
    """Rows of the names in a column, -1 for others."""
    known = pd.Index(np.array([*names, None], dtype=object)[:-1], dtype=object)
    return np.asarray(known.get_indexer(pd.Index(column.to_numpy(dtype=object), dtype=object)))
