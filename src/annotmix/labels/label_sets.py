"""Answers that may name several classes: sets of classes, stored sparsely.

`LabelSets` is `Annotations` whose labels are sets. A set that was given at least once has a number and a row
of `members`, which says of every class whether it belongs to the set. The empty set is an answer like any
other: none of the classes fits. An item without an answer is unlabelled, which is something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from annotmix._common.words import show, some
from annotmix.labels import display
from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import percent_agreement
from annotmix.labels.columns import find_column
from annotmix.labels.label_checks import frozen
from annotmix.labels.names import Index, Names, as_names, is_missing, locate, plain
from annotmix.labels.set_readers import read_array, read_sets
from annotmix.labels.set_texts import find_delimiter, read_set

Bools = NDArray[np.bool_]
#: Classes that say whether one class was chosen.
ABSENT_OR_PRESENT = (False, True)


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Sets of classes that annotators gave to items, immutable.

    Parameters
    ----------
    answers : Annotations
        One label per answer: the number of a set. Its classes are these numbers, 0, 1, 2, …
    members : array of bool, shape (n_sets, n_classes)
        Whether a class belongs to a set. No two sets are the same.
    classes : array, shape (n_classes,)
        Names of the classes; one that nobody chose is allowed.

    Examples
    --------
    >>> sets = LabelSets.from_long(pd.DataFrame({
    ...     "item": ["song", "song", "noise"], "annotator": ["ann", "bob", "ann"],
    ...     "labels": [["rock", "live"], ["rock"], []]}))
    >>> sets
    LabelSets(2 items, 2 annotators, 2 classes, 3 answers, 1 of them empty)
    >>> sets.to_long()
        item annotator        labels
    0  noise       ann            ()
    1   song       ann  (live, rock)
    2   song       bob       (rock,)
    """

    answers: Annotations
    members: Bools
    classes: Names

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", frozen(as_names(self.classes, None, "classes")))
        members = np.asarray(self.members)
        shape = (self.answers.n_classes, len(self.classes))
        if members.dtype != bool or members.shape != shape:
            raise ValueError(
                "members must be booleans with one row per set and one column per class, shape "
                f"{shape}, found {members.dtype} of shape {members.shape}."
            )
        if len({row.tobytes() for row in members}) < len(members):
            raise ValueError("members has two rows that are the same set; give it one number.")
        if self.answers.weight is not None:
            raise ValueError("Label sets have no weights: an answer names a set or not.")
        object.__setattr__(self, "members", frozen(members))

    # ---------------------------------------------------------------- readers

    @classmethod
    def from_long(
        cls,
        df: pd.DataFrame,
        item: str | None = None,
        annotator: str | None = None,
        labels: str | None = None,
        *,
        delimiter: str | None = "auto",
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> LabelSets:
        """Read a long table: one row per answer, or one row per chosen class.

        Parameters
        ----------
        df : DataFrame
            In a table with one row per answer, a cell is a list of classes, text such as "rock|live" or
            '["rock", "live"]', or `{"choices": [...]}` of Label Studio. An empty list and "(none)" are the
            empty set. Where annotators occur more than once for an item and every cell holds one class,
            their rows belong together. A cell that is `nan`, `None` or "" is no answer: it makes its item
            and its annotator known.
        item, annotator, labels : str, optional
            Its columns; by default found by their names, such as `item`, `annotator` and `labels`.
        delimiter : str or None, default="auto"
            Separates classes in a text. "auto" finds it among "|", ";" and ","; None leaves texts whole.
        classes, items, annotators : iterable, optional
            All names in their order; by default the sorted ones that occur.
        """
        names = [
            find_column(df.columns, role, named)
            for role, named in (("item", item), ("annotator", annotator), ("label", labels))
        ]
        cells = df[names[2]].tolist()
        if delimiter == "auto":
            delimiter = find_delimiter(cells)
        sets = [read_set(cell, delimiter) for cell in cells]
        pairs = []
        for name, role in zip(names[:2], ("item", "annotator"), strict=True):
            values = plain(df[name])
            if (missing := is_missing(values, None)).any():
                row = int(np.flatnonzero(missing)[0])
                raise ValueError(
                    f"Column {name!r} is empty in row {row} (index {df.index[row]!r}); every answer needs "
                    f"its {role}."
                )
            pairs.append(values)
        return cls.from_sets(pairs[0], pairs[1], sets, classes=classes, items=items, annotators=annotators)

    @classmethod
    def from_sets(
        cls,
        item: ArrayLike,
        annotator: ArrayLike,
        sets: Sequence[Iterable[Any] | None],
        *,
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> LabelSets:
        """Read three lists of the same length: items, annotators, and the classes that they chose.

        Parameters
        ----------
        item, annotator : array-like, shape (n,)
            Names.
        sets : sequence of iterables, or None
            Classes; None is no answer. Several entries of one annotator for one item are united where each
            has one class at most.
        classes, items, annotators : iterable, optional
            As in `from_long`.
        """
        return cls(*read_sets(item, annotator, sets, classes, items, annotators))

    @classmethod
    def from_array(
        cls,
        Z: ArrayLike,
        *,
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> LabelSets:
        """Read 0 and 1 for every item, annotator and class.

        Parameters
        ----------
        Z : array-like, shape (n_items, n_annotators, n_classes)
            1 where the class was chosen, 0 where it was not; `nan` for all classes is no answer.
        classes, items, annotators : iterable, optional
            Names; by default 0, 1, 2, …

        Examples
        --------
        >>> LabelSets.from_array([[[1, 1], [0, 0]], [[0, 1], [float("nan")] * 2]], classes=["live", "rock"])
        LabelSets(2 items, 2 annotators, 2 classes, 3 answers, 1 of them empty)
        """
        return cls(*read_array(Z, classes, items, annotators))

    # ---------------------------------------------------------------- writers

    def to_long(self) -> pd.DataFrame:
        """One row per answer: `item`, `annotator` and `labels`, a tuple of classes."""
        a = self.answers
        return pd.DataFrame(
            {
                "item": a.items[a.item],
                "annotator": a.annotators[a.annotator],
                "labels": self._tuples[a.label],
            }
        )

    def to_array(self) -> NDArray[np.float64]:
        """1, 0 and, where an annotator gave no answer, nan: shape (n_items, n_annotators, n_classes)."""
        Z = np.full((*self.shape, self.n_classes), np.nan)
        Z[self.answers.item, self.answers.annotator] = self.chosen
        return Z

    def binary(self, name: Any) -> Annotations:
        """What the answers say about one class: `Annotations` with the classes False and True.

        Every answer is a label, also the empty set, which says False about every class.
        """
        at = locate(np.array([name, None], dtype=object)[:1], self.classes)[0]
        if at < 0:
            raise ValueError(f"{show(name)} is no class; the classes are {some(self.classes)}.")
        a, said = self.answers, self.members[:, at].astype(np.int64)
        return a._derive(label=said[a.label], classes=frozen(np.array(ABSENT_OR_PRESENT)))

    # ---------------------------------------------------------------- facts

    @property
    def items(self) -> Names:
        """Names of the items."""
        return self.answers.items

    @property
    def annotators(self) -> Names:
        """Names of the annotators."""
        return self.answers.annotators

    @property
    def item(self) -> Index:
        """Item of each answer, ascending; shape (n_answers,)."""
        return self.answers.item

    @property
    def annotator(self) -> Index:
        """Annotator of each answer, shape (n_answers,)."""
        return self.answers.annotator

    @property
    def chosen(self) -> Bools:
        """The classes that each answer names, shape (n_answers, n_classes)."""
        return np.asarray(self.members[self.answers.label])

    @property
    def n_items(self) -> int:
        """Number of items, labelled or not."""
        return self.answers.n_items

    @property
    def n_annotators(self) -> int:
        """Number of annotators, with answers or without."""
        return self.answers.n_annotators

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_items, n_annotators); scikit-learn counts rows by it."""
        return self.answers.shape

    @property
    def labels_per_item(self) -> Index:
        """Number of answers about every item, empty sets included; shape (n_items,)."""
        return self.answers.labels_per_item

    @property
    def labels_per_annotator(self) -> Index:
        """Number of answers of every annotator, shape (n_annotators,)."""
        return self.answers.labels_per_annotator

    @property
    def n_empty(self) -> int:
        """Number of answers that are the empty set."""
        return int(np.asarray(self.members.sum(axis=1) == 0)[self.answers.label].sum())

    def __len__(self) -> int:
        return len(self.answers)

    def __repr__(self) -> str:
        return f"LabelSets({self._counts})"

    def _repr_html_(self) -> str:
        first = self.keep(slice(0, display.ROWS)).to_long()
        return display.html("LabelSets", self._counts, (first, len(self), "answers"))

    @property
    def _counts(self) -> str:
        n, empty = len(self), self.n_empty
        start = display.counts(self.answers).rsplit(", ", 2)[0]
        classes = f"{self.n_classes} class{'' if self.n_classes == 1 else 'es'}"
        empties = f", {empty} of them empty" if empty else ""
        return f"{start}, {classes}, {n} answer{'' if n == 1 else 's'}{empties}"

    @cached_property
    def _tuples(self) -> NDArray[Any]:
        """The sets as tuples of names, shape (n_sets,)."""
        return as_tuples(self.members, self.classes)

    def agreement(self) -> float:
        """Chance that two answers about one item are the same set, over items with several."""
        return percent_agreement(self.answers)

    # ---------------------------------------------------------------- parts

    def keep(self, rows: NDArray[Any] | slice) -> LabelSets:
        """Only the answers at `rows`; items, annotators and classes stay."""
        return self._with(self.answers.keep(rows))

    def __getitem__(self, rows: Any) -> LabelSets:
        """Some of the items and their answers; this is how scikit-learn splits data."""
        return self._with(self.answers[rows])

    __iter__ = None  # neither items nor answers are meant

    def align(
        self,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> LabelSets:
        """The same answers under other lists of names; names without answers are added."""
        answers = self.answers.align(items=items, annotators=annotators)
        if classes is None:
            return self._with(answers)
        names = as_names(classes, None, "classes")
        place = locate(self.classes, names)
        if (lost := (place < 0) & np.asarray(self.chosen).any(axis=0)).any():
            raise ValueError(
                f"The answers name classes that are not known: {some(self.classes[lost])}. Known classes "
                f"are {some(names)}."
            )
        used, number = np.unique(answers.label, return_inverse=True)
        members = np.zeros((len(used), len(names)), dtype=bool)
        members[:, place[place >= 0]] = self.members[used][:, place >= 0]
        return LabelSets(answers._derive(label=number, classes=np.arange(len(used))), members, names)

    def _with(self, answers: Annotations) -> LabelSets:
        """The same sets with other answers, which name them by the same numbers."""
        made = object.__new__(LabelSets)
        for name, value in (("answers", answers), ("members", self.members), ("classes", self.classes)):
            object.__setattr__(made, name, value)
        return made

    def with_gold(self, gold: pd.Series | Mapping[Any, Any] | None) -> tuple[LabelSets, tuple[Index, Index]]:
        """The same answers with numbers also for true sets; rows of items and the numbers of their true sets.

        Parameters
        ----------
        gold : Series or mapping of item to its classes
        """
        row, true = self.gold_sets(gold)
        number = {own.tobytes(): place for place, own in enumerate(self.members)}
        fresh = [own for own in true if number.setdefault(own.tobytes(), len(number)) >= len(self.members)]
        distinct = list({own.tobytes(): own for own in fresh}.values())
        members = np.vstack([self.members, *distinct]) if distinct else self.members
        answers = self.answers._derive(classes=np.arange(len(members)))
        numbers = np.array([number[own.tobytes()] for own in true], dtype=np.int64)
        return LabelSets(answers, members, self.classes), (row, numbers)

    def gold_sets(self, gold: pd.Series | Mapping[Any, Any] | None) -> tuple[Index, Bools]:
        """Rows of the items whose true sets are known, shape (G,), and these sets, shape (G, n_classes)."""
        known = {} if gold is None else dict(gold.items())
        row = locate(np.array([*known, None], dtype=object)[:-1], self.items)
        if (row < 0).any():
            raise ValueError(
                f"gold: items {some(np.array([*known], dtype=object)[row < 0])} are unknown; known: "
                f"{some(self.items)}."
            )
        members = np.zeros((len(row), self.n_classes), dtype=bool)
        for n, (name, cell) in enumerate(known.items()):
            if (chosen := read_set(cell)) is None:
                raise ValueError(f"gold: item {show(name)} has no true set; [] stands for the empty set.")
            at = locate(np.array([*chosen, None], dtype=object)[:-1], self.classes)
            if (at < 0).any():
                raise ValueError(
                    f"gold: item {show(name)} has classes that are not known: {some(chosen)}. Known classes "
                    f"are {some(self.classes)}."
                )
            members[n, at] = True
        return row, members


def as_tuples(members: Bools, classes: Names) -> NDArray[Any]:
    """Sets, shape (n, n_classes), as tuples of names, shape (n,)."""
    tuples = np.empty(len(members), dtype=object)
    names = classes.tolist()
    for n, row in enumerate(members):
        tuples[n] = tuple(names[at] for at in np.flatnonzero(row))
    return tuples
