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
from annotmix.labels import display
from annotmix.labels import tables as label_tables
from annotmix.labels.coefficients import percent_agreement
from annotmix.labels.label_checks import NAMES_OF, frozen, sorted_labels
from annotmix.labels.names import Index, Names, as_list, as_names, distinct, locate, same_names

Duplicates = Literal["error", "first", "last", "majority"]
Floats = NDArray[np.float64]

#: Relative difference up to which sums of weights count as equal.
ROUNDING = 1e-9


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
        for names in NAMES_OF.values():
            object.__setattr__(self, names, frozen(as_names(getattr(self, names), None, names)))
        self._check_labels()

    def _check_labels(self) -> None:
        """Refuse labels that make no sense; sort the others."""
        labels = [getattr(self, role) for role in NAMES_OF]
        names = [getattr(self, of) for of in NAMES_OF.values()]
        for role, values in sorted_labels(labels, self.weight, names).items():
            object.__setattr__(self, role, values)

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

    @property
    def shape(self) -> tuple[int, int]:
        """(n_items, n_annotators), the shape of the label matrix; scikit-learn counts rows by it."""
        return self.n_items, self.n_annotators

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        return f"Annotations({display.counts(self)})"

    def _repr_html_(self) -> str:
        return display.annotations_html(self)

    @cached_property
    def labels_per_item(self) -> Index:
        """Number of annotators with a label for every item, shape (n_items,): soft labels count once."""
        return frozen(np.bincount(self.item[self._first], minlength=self.n_items))

    @cached_property
    def labels_per_annotator(self) -> Index:
        """Number of items with a label of every annotator, shape (n_annotators,): soft labels count once."""
        return frozen(np.bincount(self.annotator[self._first], minlength=self.n_annotators))

    @cached_property
    def start(self) -> Index:
        """Item n has the labels `start[n]:start[n + 1]`; shape (n_items + 1,)."""
        return frozen(np.concatenate([[0], np.cumsum(np.bincount(self.item, minlength=self.n_items))]))

    @cached_property
    def pair(self) -> Index:
        """Number of the pair (item, annotator) that a label belongs to, ascending; shape (n_labels,)."""
        return frozen(np.cumsum(self._first) - 1)

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
        return frozen(np.where(rest > ROUNDING * self.weight, rest, 0))

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
        cells, where = distinct(self.item * self.n_classes + self.label, self.n_items * self.n_classes)
        item, label = np.divmod(cells, max(self.n_classes, 1))
        return item, label, self.total(where, len(cells))

    def keep(self, rows: NDArray[Any] | slice) -> Annotations:
        """Only the labels at `rows` (positions, a mask or a slice); items, annotators and classes stay."""
        weight = None if self.weight is None else self.weight[rows]
        parts = {role: getattr(self, role)[rows] for role in NAMES_OF}
        return self._derive(**parts, weight=weight)

    def __getitem__(self, rows: Any) -> Annotations:
        """Some of the items and their labels; annotators and classes stay.

        This is how scikit-learn splits data, for example in `train_test_split(X, annotations)`.

        Parameters
        ----------
        rows : array of int, mask or slice
            Positions of items in `items`.
        """
        if isinstance(rows, tuple):  # scikit-learn asks for [rows, ...]
            rows = rows[0]
        chosen = np.atleast_1d(np.arange(self.n_items)[rows])
        place = np.full(self.n_items, -1)
        place[chosen] = np.arange(len(chosen))
        if (repeated := np.flatnonzero(place[chosen] != np.arange(len(chosen)))).size:
            raise ValueError(f"Each item can be chosen once; repeated: {some(self.items[chosen[repeated]])}.")
        kept = place[self.item] >= 0
        return self._derive(
            item=place[self.item[kept]],
            annotator=self.annotator[kept],
            label=self.label[kept],
            weight=None if self.weight is None else self.weight[kept],
            items=frozen(self.items[chosen]),
        )

    __iter__ = None  # neither items nor labels are meant; __getitem__ alone would make it a sequence

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The label matrix as positions in `classes`, -1 without a label, shape (n_items, n_annotators).

        For scikit-learn, which looks at the matrix before it splits items by an integer `cv`.
        """
        if self.weight is not None:
            raise TypeError(
                "Weighted labels are no array. To let scikit-learn split their items, pass a splitter such "
                "as cv=KFold(5) in place of a number."
            )
        Z = np.full(self.shape, -1, dtype=np.min_scalar_type(-self.n_classes) if dtype is None else dtype)
        Z[self.item, self.annotator] = self.label
        return Z

    def agreement_with(self, label: Index) -> Floats:
        """Share of the labels of every item that are `label`, shape (n_items,); nan without labels."""
        agrees = (self.label == label[self.item]) * (1.0 if self.weight is None else self.weight)
        votes = np.bincount(self.item, weights=agrees, minlength=self.n_items)
        with np.errstate(invalid="ignore"):
            return np.asarray(votes / self.total(self.item, self.n_items))

    def summary(self) -> pd.Series:
        """The main figures: counts, labels per item and per annotator, percent agreement."""
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
        figures["agreement"] = percent_agreement(self)
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
            index, old = getattr(self, role), getattr(self, NAMES_OF[role])
            if new is None or new is old or same_names(new := as_list(new), old):
                continue
            names = as_names(new, None, NAMES_OF[role])
            moved = locate(old, names)[index]
            if (moved < 0).any():
                lost = old[np.unique(index[moved < 0])]
                raise ValueError(
                    f"The labels name {NAMES_OF[role]} that are not known: {some(lost)}. "
                    f"Known {NAMES_OF[role]} are {some(names)}."
                )
            changes |= {role: moved, NAMES_OF[role]: frozen(names)}
        return self._derive(**changes) if changes else self
