"""The labels of many annotators, stored sparsely.

`Annotations` is three index vectors (item, annotator, label), one entry per label, sorted by item, and
the names of the items, annotators and classes they point to. Nothing of size items × annotators exists
unless `to_matrix` is called.

Entries may carry weights. Then a label that an annotator is unsure of weighs less than one, and a
distribution over classes is several entries of one annotator about one item: soft labels, confidences and
weights are all the same, an exponent w of the likelihood, Σ w log P(label).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from annotmix._common.words import show, some
from annotmix.labels import tables as label_tables
from annotmix.labels.names import Index, Names, as_list, as_names, locate, same_names

Duplicates = Literal["error", "first", "last", "majority"]
Floats = NDArray[np.float64]

#: Relative difference up to which sums of weights count as equal.
ROUNDING = 1e-9
#: The names that the index vectors of `Annotations` point to.
_NAMES_OF = {"item": "items", "annotator": "annotators", "label": "classes"}


@dataclass(frozen=True, eq=False)
class Annotations:
    """Labels given by annotators to items, immutable.

    Parameters
    ----------
    item, annotator, label : array of int, shape (n_labels,)
        Label `p` says that annotator `annotator[p]` gave class `label[p]` to item `item[p]`.
    items, annotators, classes : array, shapes (n_items,), (n_annotators,), (n_classes,)
        Their names. An item or annotator without labels and a class that nobody chose are allowed.
    weight : array of float, shape (n_labels,), optional
        How much each label counts; 1 by default. With weights an annotator may have several labels for
        an item, of different classes. A label of weight 0 is left out.

    Examples
    --------
    >>> a = Annotations.from_matrix([["cat", "dog"], ["dog", None]])
    >>> a
    Annotations(2 items, 2 annotators, 2 classes, 3 labels)
    >>> a.to_long()
       item  annotator label
    0     0          0   cat
    1     0          1   dog
    2     1          0   dog
    """

    item: Index
    annotator: Index
    label: Index
    items: Names
    annotators: Names
    classes: Names
    weight: Floats | None = None

    def __post_init__(self) -> None:
        for names in _NAMES_OF.values():
            object.__setattr__(self, names, _frozen(as_names(getattr(self, names), None, names)))
        self._check_labels()

    def _check_labels(self) -> None:
        """Refuse labels that make no sense; sort the others."""
        for role, of in _NAMES_OF.items():
            index, names = np.asarray(getattr(self, role)), getattr(self, of)
            if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
                raise ValueError(
                    f"{role} must be a vector of integers, found {index.dtype} of shape {index.shape}."
                )
            if len(index) and (index.min() < 0 or index.max() >= len(names)):
                raise ValueError(
                    f"{role} must point into its {len(names)} names, found values from {index.min()} "
                    f"to {index.max()}."
                )
            object.__setattr__(self, role, index.astype(np.int64, copy=False))
        if not len(self.item) == len(self.annotator) == len(self.label):
            raise ValueError(
                "item, annotator and label must have the same length, found "
                f"{len(self.item)}, {len(self.annotator)} and {len(self.label)}."
            )
        keys, weight = [self.item, self.annotator], self.weight
        if weight is not None:
            keys, weight = [*keys, self.label], _checked(weight, len(self.label))
        order: Index | slice = slice(None)
        if not _ascends(keys):
            order = np.lexsort(keys[::-1])
        if weight is not None:
            if not weight.all():
                order = np.arange(len(weight))[order]
                order = order[weight[order] > 0]
            object.__setattr__(self, "weight", _frozen(weight[order]))
        for role in _NAMES_OF:
            index = getattr(self, role)
            object.__setattr__(self, role, _frozen(index if isinstance(order, slice) else index[order]))
        if isinstance(order, slice):
            return  # ascending, so nothing is repeated
        same = (np.diff(self.item) == 0) & (np.diff(self.annotator) == 0)
        if weight is not None:
            same &= np.diff(self.label) == 0
        repeated = np.flatnonzero(same)
        if len(repeated):
            p = repeated[0]
            what = "label" if weight is None else f"weight of label {show(self.classes[self.label[p]])}"
            raise ValueError(
                f"annotator {show(self.annotators[self.annotator[p]])} has more than one {what} for item "
                f"{show(self.items[self.item[p]])} ({len(repeated)} repeats in all). Use "
                'Annotations.from_long with duplicates="first", "last" or "majority" to keep one of them.'
            )

    def _derive(self, **changes: Any) -> Annotations:
        """A copy with other labels, or other names that are checked already; unchanged names cost nothing."""
        made = object.__new__(Annotations)
        for field in fields(self):
            object.__setattr__(made, field.name, changes.get(field.name, getattr(self, field.name)))
        made._check_labels()
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        # a copy is made like an original, so that its arrays are read-only too
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    # ---------------------------------------------------------------- readers

    @classmethod
    def from_matrix(
        cls,
        Z: ArrayLike | pd.DataFrame,
        missing_label: Any = -1,
        *,
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Annotations:
        """Read a label matrix: one row per item, one column per annotator.

        Parameters
        ----------
        Z : array-like or DataFrame, shape (n_items, n_annotators)
            Integers, floats, strings or objects. A DataFrame's index and columns become the names.
        missing_label : any, default=-1
            Marks a missing label, besides `nan` and `None`, which always do.
        classes : iterable, optional
            All classes in their order; by default the sorted labels that occur.
        items, annotators : iterable, optional
            Names; by default the names in the DataFrame, else 0, 1, 2, …
        """
        return cls(*label_tables.read_matrix(Z, missing_label, classes, items, annotators))

    @classmethod
    def from_soft(
        cls,
        P: ArrayLike,
        *,
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Annotations:
        """Read soft labels: for every item and annotator, a weight for every class.

        Parameters
        ----------
        P : array-like, shape (n_items, n_annotators, n_classes)
            Mostly distributions, which sum to one; any weights of 0 or more are allowed. `nan` for all
            classes is no label.
        classes, items, annotators : iterable, optional
            Names; by default 0, 1, 2, …

        Examples
        --------
        >>> Annotations.from_soft([[[0.8, 0.2], [0, 1]]], classes=["cat", "dog"]).to_long()
           item  annotator label  weight
        0     0          0   cat     0.8
        1     0          0   dog     0.2
        2     0          1   dog     1.0
        """
        return cls(*label_tables.read_soft(P, classes, items, annotators))

    @classmethod
    def from_long(
        cls,
        df: pd.DataFrame,
        item: str | None = None,
        annotator: str | None = None,
        label: str | None = None,
        *,
        weight: str | None = "weight",
        duplicates: Duplicates = "error",
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Annotations:
        """Read a long table: one row per label.

        Parameters
        ----------
        df : DataFrame
            One row per label. A row whose label is missing (`nan`, `None`) makes its item and its annotator
            known and gives no label.
        item, annotator, label : str, optional
            Its columns; by default found by their names, such as `item` or `task_id`, `annotator`
            or `worker`, `label` or `answer`.
        weight : str or None, default="weight"
            Column of the labels' weights, if it is there: 0 or more. None leaves a column `weight` alone.
            A confidence is a weight, once its column is named: a label with confidence 0.7 counts 0.7 times.
        duplicates : {"error", "first", "last", "majority"}
            The rule where an annotator labelled an item more than once. "majority" keeps the label
            given most often, the earliest one among several. With weights, labels of different
            classes are a distribution, and only a class that is given again is a repeat.
        classes, items, annotators : iterable, optional
            All names in their order; by default the sorted ones that occur.
        """
        columns = (item, annotator, label, weight)
        return cls(*label_tables.read_long(df, *columns, duplicates, classes, items, annotators))

    # ---------------------------------------------------------------- writers

    def to_matrix(self, missing_label: Any = None) -> pd.DataFrame:
        """The labels as a DataFrame, one row per item and one column per annotator.

        `missing_label` fills the rest: by default -1 where classes are integers, `None` otherwise. It must
        not be a class itself. Weights have no place in a matrix: with them this is an error.
        """
        if self.weight is not None:
            raise ValueError("A label matrix has no place for weights; use to_long.")
        integer = self.classes.dtype.kind in "iu"
        fill = -1 if missing_label is None and integer else missing_label
        if len(self) < self.n_items * self.n_annotators and fill in self.classes.tolist():
            raise ValueError(
                f"missing_label {show(fill)} is also a class; choose another value for missing labels."
            )
        keep_type = integer and isinstance(fill, int | np.integer)
        Z = np.full((self.n_items, self.n_annotators), fill, dtype=np.int64 if keep_type else object)
        Z[self.item, self.annotator] = self.classes[self.label]
        return pd.DataFrame(Z, index=self.items, columns=self.annotators, dtype=Z.dtype)

    def to_long(self) -> pd.DataFrame:
        """The labels as a table: `item`, `annotator`, `label`, and `weight` where they have one."""
        columns = {
            "item": self.items[self.item],
            "annotator": self.annotators[self.annotator],
            "label": self.classes[self.label],
        }
        return pd.DataFrame(columns if self.weight is None else columns | {"weight": self.weight})

    # ---------------------------------------------------------------- facts

    @property
    def n_items(self) -> int:
        """Number of items, labelled or not."""
        return len(self.items)

    @property
    def n_annotators(self) -> int:
        """Number of annotators, with labels or without."""
        return len(self.annotators)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        return (
            f"Annotations({self.n_items} items, {self.n_annotators} annotators, {self.n_classes} classes, "
            f"{len(self)} {'' if self.weight is None else 'weighted '}labels)"
        )

    @cached_property
    def labels_per_item(self) -> Index:
        """Number of annotators with a label for every item, shape (n_items,): soft labels count once."""
        return _frozen(np.bincount(self.item[self._first], minlength=self.n_items))

    @cached_property
    def labels_per_annotator(self) -> Index:
        """Number of items with a label of every annotator, shape (n_annotators,): soft labels count once."""
        return _frozen(np.bincount(self.annotator[self._first], minlength=self.n_annotators))

    @cached_property
    def start(self) -> Index:
        """Item n has the labels `start[n]:start[n + 1]`; shape (n_items + 1,)."""
        return _frozen(np.concatenate([[0], np.cumsum(np.bincount(self.item, minlength=self.n_items))]))

    @cached_property
    def pair(self) -> Index:
        """Number of the pair (item, annotator) that a label belongs to, ascending; shape (n_labels,)."""
        return _frozen(np.cumsum(self._first) - 1)

    @property
    def _first(self) -> NDArray[np.bool_]:
        """Whether a label is the first of its pair (item, annotator), shape (n_labels,)."""
        new_item, new_annotator = (np.diff(index, prepend=-1) != 0 for index in (self.item, self.annotator))
        return np.asarray(new_item | new_annotator)

    @cached_property
    def informative_weight(self) -> NDArray[np.float64] | None:
        """Weights without the part that all classes share, shape (n_labels,); None without weights.

        The least weight of a distribution over all C classes is subtracted from each of its weights; the
        rest distinguishes classes. A flat distribution, which has no information, gets the weight 0.
        """
        if self.weight is None:
            return None
        at, n_classes = np.flatnonzero(self._first), np.bincount(self.pair)
        least = np.minimum.reduceat(self.weight, at) if len(at) else np.zeros(0)
        rest = self.weight - np.where(n_classes == self.n_classes, least, 0)[self.pair]
        return _frozen(np.where(rest > ROUNDING * self.weight, rest, 0))

    def total(self, index: Index, n: int) -> NDArray[Any]:
        """Number of labels, or sum of their weights, in each of n groups, shape (n,).

        Parameters
        ----------
        index : array of int, shape (n_labels,)
            Group of each label, from 0 to n − 1, such as `item`.
        n : int
        """
        return np.bincount(index, weights=self.weight, minlength=n)

    def votes(self) -> tuple[Index, Index, NDArray[Any]]:
        """Items, classes, and the votes of the item for the class, by weight; sorted by item and class."""
        cells, where = np.unique(self.item * self.n_classes + self.label, return_inverse=True)
        item, label = np.divmod(cells, max(self.n_classes, 1))
        return item, label, self.total(where, len(cells))

    def keep(self, rows: NDArray[Any]) -> Annotations:
        """Only the labels at `rows` (positions or a mask); items, annotators and classes stay."""
        weight = None if self.weight is None else self.weight[rows]
        parts = {role: getattr(self, role)[rows] for role in _NAMES_OF}
        return self._derive(**parts, weight=weight)

    def agreement(self) -> float:
        """Chance that two labels of one item agree, averaged over the items with two labels or more.

        `nan` where no item has two. A soft label is a distribution to draw from.
        """
        several = self.labels_per_item > 1
        if not several.any():
            return float("nan")
        item, _, votes = self.votes()
        by_pair = self.total(self.pair, int(self.pair[-1]) + 1)
        weight = np.ones(len(self)) if self.weight is None else self.weight
        # all ordered pairs of labels, minus the pairs of an annotator with itself
        same = self._per_item(item, votes**2) - self._per_item(self.item, weight**2)
        pairs = self.total(self.item, self.n_items) ** 2 - self._per_item(self.item[self._first], by_pair**2)
        return float(np.mean(same[several] / pairs[several]))

    def agreement_with(self, label: Index) -> Floats:
        """Share of the labels of every item that are `label`, shape (n_items,); nan without labels."""
        agrees = (self.label == label[self.item]) * (1.0 if self.weight is None else self.weight)
        with np.errstate(invalid="ignore"):
            return np.asarray(self._per_item(self.item, agrees) / self.total(self.item, self.n_items))

    def _per_item(self, item: Index, values: NDArray[Any]) -> Floats:
        return np.asarray(np.bincount(item, weights=values, minlength=self.n_items), dtype=np.float64)

    def summary(self) -> pd.Series:
        """The main figures: counts, labels per item and per annotator, agreement."""
        per_item, per_annotator = self.labels_per_item, self.labels_per_annotator
        figures: dict[str, float] = {
            "items": self.n_items,
            "annotators": self.n_annotators,
            "classes": self.n_classes,
            "labels": len(self),
            "items without labels": int((per_item == 0).sum()),
            "annotators without labels": int((per_annotator == 0).sum()),
        }
        for name, counts in (("item", per_item), ("annotator", per_annotator)):
            figures[f"labels per {name}, mean"] = float(counts.mean()) if len(counts) else float("nan")
            figures[f"labels per {name}, min"] = int(counts.min(initial=0 if not len(counts) else counts[0]))
            figures[f"labels per {name}, max"] = int(counts.max(initial=0))
        figures["agreement"] = self.agreement()
        return pd.Series(figures, name="annotations", dtype=object)

    def align(
        self,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        classes: Iterable[Any] | None = None,
    ) -> Annotations:
        """The same labels under other lists of names, in the order given; names without labels are added.

        Every item, annotator and class that has a label must be in its new list. Where nothing changes, this
        is the same object.
        """
        changes: dict[str, Any] = {}
        for role, new in (("item", items), ("annotator", annotators), ("label", classes)):
            index, old = getattr(self, role), getattr(self, _NAMES_OF[role])
            if new is None or new is old or same_names(new := as_list(new), old):
                continue
            names = as_names(new, None, _NAMES_OF[role])
            moved = locate(old, names)[index]
            if (moved < 0).any():
                lost = old[np.unique(index[moved < 0])]
                raise ValueError(
                    f"The labels name {_NAMES_OF[role]} that are not known: {some(lost)}. "
                    f"Known {_NAMES_OF[role]} are {some(names)}."
                )
            changes |= {role: moved, _NAMES_OF[role]: _frozen(names)}
        return self._derive(**changes) if changes else self


def _checked(weight: Any, length: int) -> Floats:
    """Weights as numbers, finite and not negative."""
    numbers = np.asarray(weight, dtype=np.float64)
    if numbers.shape != (length,):
        raise ValueError(f"weight must have an entry for each of {length} labels, found {numbers.shape}.")
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers < np.inf)))
    if len(wrong):
        raise ValueError(
            f"A weight must be a number of 0 or more, found {numbers[wrong[0]]} for label {wrong[0]} "
            f"({len(wrong)} in all). Give 1 to a label that counts in full."
        )
    return numbers


def _ascends(keys: list[Index]) -> bool:
    """Whether each entry comes strictly after the one before it, by the first key, then by the next."""
    equal = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    later = ~equal
    for key in keys:
        later |= equal & (key[:-1] < key[1:])
        equal &= key[:-1] == key[1:]
    return bool(later.all())


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    """The values as a read-only array; a copy unless it is read-only already."""
    if not values.flags.writeable and values.flags.owndata:
        return values
    copy = np.array(values)
    copy.setflags(write=False)
    return copy
