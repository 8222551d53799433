"""The labels of many annotators, stored sparsely.

`Annotations` is three index vectors (item, annotator, label), one entry a label, sorted by item, and
the names of the items, annotators and classes they point to. Nothing of size items × annotators exists
unless `to_matrix` is asked for it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from annotmix.names import Index, Names, as_names, encode, is_missing, locate, plain, show, some

Duplicates = Literal["error", "first", "last", "majority"]

#: Column names that `Annotations.from_long` finds by itself.
ALIASES = {
    "task": ("task", "item"),
    "worker": ("worker", "annotator"),
    "label": ("label",),
}
#: What the index vectors of `Annotations` point to.
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

    Examples
    --------
    >>> a = Annotations.from_matrix([["cat", "dog"], ["dog", None]])
    >>> a
    Annotations(2 items, 2 annotators, 2 classes, 3 labels)
    >>> a.to_long()
       task  worker label
    0     0       0   cat
    1     0       1   dog
    2     1       0   dog
    """

    item: Index
    annotator: Index
    label: Index
    items: Names
    annotators: Names
    classes: Names

    def __post_init__(self) -> None:
        for names in _NAMES_OF.values():
            object.__setattr__(self, names, _frozen(as_names(getattr(self, names), None, names)))
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
        if not len(self.item) == len(self.annotator) == len(self.label):
            raise ValueError(
                "item, annotator and label must have the same length, found "
                f"{len(self.item)}, {len(self.annotator)} and {len(self.label)}."
            )
        order = np.lexsort((self.annotator, self.item))
        for role in _NAMES_OF:
            object.__setattr__(self, role, _frozen(np.asarray(getattr(self, role), dtype=np.int64)[order]))
        repeated = np.flatnonzero((np.diff(self.item) == 0) & (np.diff(self.annotator) == 0))
        if len(repeated):
            p = repeated[0]
            raise ValueError(
                f"annotator {show(self.annotators[self.annotator[p]])} has more than one label for item "
                f"{show(self.items[self.item[p]])} ({len(repeated)} repeats in all). Use "
                'Annotations.from_long with duplicates="first", "last" or "majority" to keep one of them.'
            )

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
        """Read a label matrix: a row an item, a column an annotator.

        Parameters
        ----------
        Z : array-like or DataFrame, shape (n_items, n_annotators)
            Integers, floats, strings or objects. A DataFrame's index and columns become the names.
        missing_label : any, default=-1
            Marks a missing label, besides `nan` and `None`, which always do.
        classes : iterable, optional
            All classes in their order; by default the sorted labels that occur.
        items, annotators : iterable, optional
            Names; by default those of the DataFrame, else 0, 1, 2, …
        """
        if isinstance(Z, pd.DataFrame):
            items = Z.index if items is None else items
            annotators = Z.columns if annotators is None else annotators
        matrix = plain(Z)
        if matrix.ndim != 2:
            raise ValueError(
                f"A label matrix has a row an item and a column an annotator, found shape {matrix.shape}."
            )
        n_items, n_annotators = matrix.shape
        items = as_names(range(n_items) if items is None else items, n_items, "items")
        annotators = as_names(
            range(n_annotators) if annotators is None else annotators, n_annotators, "annotators"
        )
        item, annotator = np.nonzero(~is_missing(matrix, missing_label))
        label, class_names = encode(matrix[item, annotator], classes, "label")
        if (unknown := np.flatnonzero(label < 0)).size:
            n, m = item[unknown[0]], annotator[unknown[0]]
            raise ValueError(
                f"Label {show(matrix[n, m])} of item {show(items[n])} by annotator {show(annotators[m])} "
                f"is not among the classes {some(class_names)}."
            )
        return cls(item, annotator, label, items, annotators, class_names)

    @classmethod
    def from_long(
        cls,
        df: pd.DataFrame,
        task: str = "task",
        worker: str = "worker",
        label: str = "label",
        *,
        duplicates: Duplicates = "error",
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
    ) -> Annotations:
        """Read a long table: a row a label.

        Parameters
        ----------
        df : DataFrame
            One row a label. A row whose label is missing (`nan`, `None`) makes its item and its annotator
            known and gives no label.
        task, worker, label : str
            Its columns. `item` and `annotator` are found by themselves where the default names are absent.
        duplicates : {"error", "first", "last", "majority"}
            What to do where an annotator labelled an item more than once. "majority" keeps the label
            given most often, the earliest of them where several are.
        classes, items, annotators : iterable, optional
            All names in their order; by default the sorted ones that occur.
        """
        if duplicates not in ("error", "first", "last", "majority"):
            raise ValueError(
                f'duplicates must be "error", "first", "last" or "majority", found {duplicates!r}.'
            )
        columns = find_columns(df, task=task, worker=worker, label=label)
        codes, names = [], []
        for role, known in (("task", items), ("worker", annotators), ("label", classes)):
            values = plain(df[columns[role]])
            missing = is_missing(values, None)
            if role != "label" and missing.any():
                row = int(np.flatnonzero(missing)[0])
                raise ValueError(
                    f"Column {columns[role]!r} is empty in row {row} (index {df.index[row]!r}); "
                    f"every label needs its {role}."
                )
            code = np.full(len(df), -1, dtype=np.int64)
            code[~missing], role_names = encode(values[~missing], known, role)
            if (unknown := np.flatnonzero((code < 0) & ~missing)).size:
                row = int(unknown[0])
                raise ValueError(
                    f"{role} {show(values[row])} in row {row} is not among the {len(role_names)} given "
                    f"names: {some(role_names)}."
                )
            codes.append(code)
            names.append(role_names)
        rows = np.flatnonzero(codes[2] >= 0)
        item, annotator, given = (code[rows] for code in codes)
        if duplicates != "error":
            keep = _keep_one(item * len(names[1]) + annotator, given, duplicates)
            item, annotator, given = item[keep], annotator[keep], given[keep]
        return cls(item, annotator, given, *names)

    # ---------------------------------------------------------------- writers

    def to_matrix(self, missing_label: Any = None) -> pd.DataFrame:
        """The labels as a DataFrame, a row an item and a column an annotator.

        `missing_label` fills the rest: by default -1 where classes are integers, `None` otherwise. It must
        not be a class itself.
        """
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
        """The labels as a table with columns `task`, `worker` and `label`, a row a label."""
        return pd.DataFrame(
            {
                "task": self.items[self.item],
                "worker": self.annotators[self.annotator],
                "label": self.classes[self.label],
            }
        )

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
            f"{len(self)} labels)"
        )

    @cached_property
    def labels_per_item(self) -> Index:
        """Number of labels of every item, shape (n_items,)."""
        return _frozen(np.bincount(self.item, minlength=self.n_items))

    @cached_property
    def labels_per_annotator(self) -> Index:
        """Number of labels of every annotator, shape (n_annotators,)."""
        return _frozen(np.bincount(self.annotator, minlength=self.n_annotators))

    @cached_property
    def start(self) -> Index:
        """Labels `start[n]:start[n + 1]` are those of item n; shape (n_items + 1,)."""
        return _frozen(np.concatenate([[0], np.cumsum(self.labels_per_item)]))

    def agreement(self) -> float:
        """Chance that two labels of one item agree, averaged over the items with two labels or more.

        `nan` where no item has two.
        """
        cells, count = np.unique(self.item * self.n_classes + self.label, return_counts=True)
        pairs = np.bincount(
            cells // max(self.n_classes, 1), weights=count * (count - 1), minlength=self.n_items
        )
        several = self.labels_per_item > 1
        if not several.any():
            return float("nan")
        n = self.labels_per_item[several]
        return float(np.mean(pairs[several] / (n * (n - 1))))

    def summary(self) -> pd.Series:
        """The figures one wants first: counts, labels per item and per annotator, agreement."""
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

        Every item, annotator and class that has a label must be in its new list.
        """
        parts: list[Any] = []
        for role, old, new in (
            ("item", self.items, items),
            ("annotator", self.annotators, annotators),
            ("label", self.classes, classes),
        ):
            index = getattr(self, role)
            if new is None:
                parts.append((index, old))
                continue
            names = as_names(new, None, _NAMES_OF[role])
            moved = locate(old, names)[index]
            if (moved < 0).any():
                lost = old[np.unique(index[moved < 0])]
                raise ValueError(
                    f"The labels name {_NAMES_OF[role]} that are not known: {some(lost)}. "
                    f"Known {_NAMES_OF[role]} are {some(names)}."
                )
            parts.append((moved, names))
        (item, names_i), (annotator, names_a), (label, names_c) = parts
        return Annotations(item, annotator, label, names_i, names_a, names_c)


def find_columns(df: pd.DataFrame, **wanted: str) -> dict[str, str]:
    """The columns of a long table by role, with the aliases tried where a default name is absent."""
    found = {}
    for role, name in wanted.items():
        tried = ALIASES[role] if name == role else (name,)
        present = [column for column in tried if column in df.columns]
        if not present:
            lower = {str(column).lower(): column for column in df.columns}
            near = [n for name in tried for n in difflib.get_close_matches(name.lower(), lower, n=1)]
            hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
            raise ValueError(
                f"No column {' or '.join(map(repr, tried))} for the {role}; the table has "
                f"{some(np.array(df.columns, dtype=object))}.{hint} Name it with {role}=…"
            )
        if (times := int((df.columns == present[0]).sum())) > 1:
            raise ValueError(f"The table has {times} columns {present[0]!r}; keep one of them.")
        found[role] = present[0]
    return found


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    copy = np.array(values)
    copy.setflags(write=False)
    return copy


def _keep_one(pair: Index, label: Index, rule: str) -> Index:
    """Positions to keep so that every pair stands once."""
    if rule == "majority":
        cells = pd.DataFrame({"pair": pair, "label": label, "position": np.arange(len(pair))})
        votes = cells.groupby(["pair", "label"], sort=False)["position"].agg(["size", "min"]).reset_index()
        votes = votes.sort_values(["pair", "size", "min"], ascending=[True, False, True])
        return np.asarray(votes.drop_duplicates("pair")["min"], dtype=np.int64)
    return np.flatnonzero(~pd.Series(pair).duplicated(keep=rule).to_numpy())
