"""The columns of a wide table that are annotators, and the reasons against the others.

A column is left out where its name says what it is, where its values cannot be classes (free text, dates,
links, measured numbers), or where the other columns agree on the classes and this one has hardly any of them.
Whoever always gives the same class, or labels little, is an annotator.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import bdtr

from annotmix._common.words import show, some
from annotmix.labels.columns import ALIASES, called
from annotmix.labels.names import MISSING
from annotmix.reading.formats import Columns

#: Cells and rows that are looked at.
_MOST_CELLS, _MOST_ROWS, _FEWEST_ROWS = 2_000_000, 2000, 50
#: A column is unlike the others if at most this share of its labels is theirs, and if that is as improbable
#: as this for one of their crowd. Labels of one annotator depend on each other, so that the chance of a label
#: that others have, too, counts as no more than the last.
UNLIKE_SHARE, IMPROBABLE, MOST_CHANCE = 0.2, 1e-4, 0.9
#: Two groups of annotators need this many rows in common to be told apart.
_COMMON_ROWS = 10

_LABELS = ("label", "labels", "class", "category")
#: Names that no annotator has, and what such a column holds.
_NAMES = {
    "true labels, by its name": tuple(name for name in ALIASES["truth"] if name not in ALIASES["label"]),
    "a label of the whole item, by its name": _LABELS,
    "made from labels, by its name": (
        "majority", "majorityvote", "majoritylabel", "consensus", "consensuslabel", "aggregated",
        "aggregatedlabel", "finallabel", "adjudicated", "agreement", "confidence", "nlabels", "numlabels",
    ),
    "a text, by its name": (
        "text", "sentence", "content", "body", "tweet", "utterance", "message", "review", "title", "note",
        "notes", "comment", "comments", "remark", "remarks", "explanation", "rationale", "description",
    ),
    "times, by its name": tuple(name for name in ALIASES["time"] if name not in ("created", "submitted")),
    "no labels, by its name": ("url", "link", "split", "unnamed0"),
}  # fmt: skip
_GOLD = ("true labels, by its name", "a label of the whole item, by its name")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[./]\d\d?[./]\d{2,4}( .*)?")
_LINK = re.compile(r"[a-z][a-z0-9+]{1,9}://\S+|/?(\S+/)*\S+\.(jpe?g|png|gif|bmp|webp|tiff?|wav|mp3|mp4)")
_WHOLE = re.compile(r"^(-?\d+)\.0*$")
_DECIMAL = re.compile(r"-?\d*[.,]\d*[1-9]\d*(e[+-]?\d+)?")


@dataclass(frozen=True)
class Choice:
    """Which columns of a wide table are annotators.

    Attributes
    ----------
    annotators : list of str
    left_out : dict of column to reason
    gold : list of str
        Columns left out that look like true labels.
    doubtful : dict of column to values
        Annotators of whose labels many are no other column's, and some of these labels.
    """

    annotators: list[str]
    left_out: dict[str, str] = field(default_factory=dict)
    gold: list[str] = field(default_factory=list)
    doubtful: dict[str, list[str]] = field(default_factory=dict)


def choose_annotators(table: pd.DataFrame, key: str, columns: Columns, strict: bool = True) -> Choice:
    """The annotators among the columns of a wide table.

    Parameters
    ----------
    table : DataFrame
    key : str
        Its column that names the item.
    columns : Columns
        Its `annotators`, `known` and `exclude` decide, where they are given.
    strict : bool, default=True
        Refuse columns that fall into two crowds without a common class.
    """
    others = [str(column) for column in table.columns if column != key]
    if columns.annotators:
        return Choice(_named(columns.annotators, others))
    if present := [column for column in others if column in columns.known]:
        without_row = {column: "no row in --annotators" for column in others if column not in columns.known}
        gold = [c for c in without_row if _by_name(c, others) in _GOLD]
        return Choice(present, without_row, gold)
    left_out = {column: "--exclude" for column in others if column in columns.exclude}
    rest = [column for column in others if column not in left_out]
    for column in rest:
        if (reason := _by_name(column, rest)) is not None:
            left_out[column] = reason
    gold = [column for column in rest if left_out.get(column) in _GOLD]
    rest = [column for column in rest if column not in left_out]
    cells = _Cells(table, rest, columns.missing)
    for column in rest:
        if (reason := cells.reason(column)) is not None:
            left_out[column] = reason
    cells.drop(left_out)
    while (unlike := cells.most_unlike()) is not None:
        left_out[unlike[0]] = unlike[1]
        cells.drop([unlike[0]])
    if strict:
        cells.check_groups()
    return Choice(list(cells.values), left_out, gold, cells.doubtful())


def _named(wanted: Sequence[str], columns: list[str]) -> list[str]:
    if unknown := [name for name in wanted if name not in columns]:
        raise ValueError(
            f"--annotators: there is no column {', '.join(map(show, unknown))}; the columns are "
            f"{some(columns, 12)}."
        )
    return list(dict.fromkeys(wanted))


def _by_name(column: str, columns: Sequence[str]) -> str | None:
    """What a column holds, by its name; None where it is one of a series (label, label.1) or of letters."""
    for reason, names in _NAMES.items():
        if called(column, names):
            stem = column.casefold()
            series = any(
                other.casefold().startswith(stem) and other.casefold()[len(stem) :].strip(" ._-").isdecimal()
                for other in columns
            )
            alike = sum(len(other) == len(column) and other.isalpha() for other in columns) - 1
            letters = len(column) <= 2 and 2 * alike >= len(columns) - 1
            return None if series or letters else reason
    return None


class _Cells:
    """The labels of every column, without case, in some of the rows.

    Parameters
    ----------
    table : DataFrame
    columns : list of str
    missing : iterable of str
        Texts that stand for no label, besides the usual ones.
    """

    def __init__(self, table: pd.DataFrame, columns: list[str], missing: Iterable[str]):
        rows = min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_CELLS // max(len(columns), 1)), len(table))
        at = np.unique(np.linspace(0, len(table) - 1, rows).astype(int))
        absent = {"", "-1", *MISSING, *(word.casefold() for word in missing)}
        once = table.loc[:, ~table.columns.duplicated(keep=False)].iloc[at]
        known = set(once.columns)
        #: a value as it is written where it occurs first
        self.written: dict[str, str] = {}
        self.values = {
            column: [self._plain(cell, absent) for cell in once[column]]
            for column in columns
            if column in known
        }
        self._count()

    def _plain(self, cell: Any, absent: set[str]) -> str | None:
        """A cell as text without case, None where it is missing."""
        if cell is None or cell is pd.NA or cell is pd.NaT:
            return None
        written = _WHOLE.sub(r"\1", str(cell).strip()[:200])
        text = written.casefold()
        if text in absent:
            return None
        self.written.setdefault(text, written)
        return text

    def _count(self) -> None:
        self.counts = {column: Counter(filter(None, own)) for column, own in self.values.items()}
        #: the number of columns that have a value, and of its labels
        self.columns_of, self.total = Counter[str](), Counter[str]()
        for own in self.counts.values():
            self.columns_of.update(own.keys())
            self.total.update(own)
        self.n_labels = sum(self.total.values())
        self.n_shared = sum(n for value, n in self.total.items() if self.columns_of[value] > 1)
        #: columns in which values repeat, as those of classes do
        self.repeating = {name for name, own in self.counts.items() if 3 * len(own) <= sum(own.values())}

    def drop(self, columns: Iterable[str]) -> None:
        """Forget columns."""
        for column in columns:
            self.values.pop(column, None)
        self._count()

    def _shared(self, column: str) -> int:
        """How many labels of a column are values of another column, too."""
        return sum(n for value, n in self.counts[column].items() if self.columns_of[value] > 1)

    def reason(self, column: str) -> str | None:
        """What a column holds in place of labels, by its values alone."""
        own = self.counts[column]
        n, distinct = sum(own.values()), len(own)
        if n < 4 or 10 * self._shared(column) > n:
            return None
        if _share(own, _DATE.fullmatch) >= 0.9:
            return "dates"
        if _share(own, _LINK.fullmatch) >= 0.9:
            return "links or files"
        if _share(own, _DECIMAL.fullmatch) >= 0.5 and (distinct > 30 or distinct >= max(15, 0.7 * n)):
            return "measured numbers"
        words = sum(len(value.split()) * count for value, count in own.items()) / n
        if distinct >= max(12, 0.9 * n) and words >= 4:
            return "free text"
        if distinct == n >= 30 and not self._shared(column) and self.repeating:
            return "a different value in every row"
        return None

    def most_unlike(self) -> tuple[str, str] | None:
        """The column whose labels are most improbable for the crowd of the others, and why; None without.

        With r the share of the others' labels that a further column has, too, the k of n labels of this
        column that another one has are a draw from a binomial distribution with the chance r. Only rows where
        another column has a label count.
        """
        several = self._labelled_rows()
        best: tuple[float, str, str] | None = None
        for column in self.values:
            n, k, r = self._overlap(column, several)
            if not n or k > UNLIKE_SHARE * n or self._may_be_one_sided(column):
                continue
            chance = float(bdtr(k, n, r))
            if chance * len(self.values) < IMPROBABLE and (best is None or chance < best[0]):
                best = chance, column, self._unlike_words(column, k)
        return None if best is None else (best[1], best[2])

    def _may_be_one_sided(self, column: str) -> bool:
        """Whether a column has one value and gaps, as an annotator has who always gives the same class."""
        return len(self.counts[column]) == 1 and None in self.values[column]

    def _labelled_rows(self) -> Any:
        """How many columns have a label in every row."""
        listed = list(self.values.values())
        return np.sum([[cell is not None for cell in own] for own in listed], axis=0) if listed else []

    def _overlap(self, column: str, several: Any) -> tuple[int, int, float]:
        """Labels of a column in rows with others, how many of them others have, and the others' share."""
        own = [cell for cell, n in zip(self.values[column], several, strict=True) if cell and n > 1]
        k = sum(self.columns_of[cell] > 1 for cell in own)
        mine = self.counts[column]
        labels, shared = self.n_labels - sum(mine.values()), self.n_shared - self._shared(column)
        # values that only this column and one other have are not supported by a further one
        shared -= sum(self.total[value] - n for value, n in mine.items() if self.columns_of[value] == 2)
        return len(own), k, min(shared / labels, MOST_CHANCE) if labels else 0.0

    def _unlike_words(self, column: str, k: int) -> str:
        values = self._as_written(value for value, _ in self.counts[column].most_common())
        if len(values) == 1:
            return f"always {show(values[0])}, which no other column has"
        few = "hardly any of them is" if k else "none of them is"
        return f"values such as {some(values[:3])}; {few} in another column"

    def doubtful(self) -> dict[str, list[str]]:
        """Columns of whose labels more than half are no other column's, where the others share nearly all."""
        several, found = self._labelled_rows(), dict[str, list[str]]()
        for column in self.values:
            n, k, r = self._overlap(column, several)
            if n and 2 * k < n and float(bdtr(k, n, r)) * len(self.values) < IMPROBABLE:
                own = (v for v, _ in self.counts[column].most_common() if self.columns_of[v] == 1)
                found[column] = self._as_written(own)[:3]
        return found

    def check_groups(self) -> None:
        """Refuse columns that fall into two crowds without a common class: the user must choose."""
        group = {column: column for column in self.values}

        def root(column: str) -> str:
            while group[column] != column:
                column = group[column]
            return column

        first: dict[str, str] = {}
        for column, own in self.counts.items():
            for value in own:
                group[root(column)] = root(first.setdefault(value, column))
        groups: dict[str, list[str]] = {}
        for column in self.values:
            groups.setdefault(root(column), []).append(column)
        large = [names for names in groups.values() if len(names) > 1 and len(self._classes(names)) > 1]
        rows = [self._rows(names) for names in large]
        if any((a & b).sum() >= _COMMON_ROWS for n, a in enumerate(rows) for b in rows[:n]):
            listed = " and ".join(f"{some(names)} ({some(self._classes(names), 3)})" for names in large[:3])
            raise ValueError(
                f"The columns fall into groups that have no value in common: {listed}. Name the annotators "
                "with --annotators NAMES, separated by commas, or the other columns with --exclude NAMES."
            )

    def _rows(self, names: list[str]) -> Any:
        """Whether one of the columns has a label, for every row."""
        return np.any([[cell is not None for cell in self.values[name]] for name in names], axis=0)

    def _classes(self, names: list[str]) -> list[str]:
        total = sum((self.counts[name] for name in names), Counter[str]())
        return self._as_written(value for value, _ in total.most_common())

    def _as_written(self, values: Iterable[str]) -> list[str]:
        return [self.written[value] for value in values]


def _share(counts: Counter[str], fits: Any) -> float:
    return sum(n for value, n in counts.items() if fits(value)) / max(sum(counts.values()), 1)
