"""The labels of many annotators, stored sparsely.

`Annotations` is three index vectors (item, annotator, label), one entry a label, sorted by item, and
the names of the items, annotators and classes they point to. Nothing of size items × annotators exists
unless `to_matrix` is asked for it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Index = NDArray[np.int64]
Names = NDArray[Any]
Duplicates = Literal["error", "first", "last", "majority"]

#: Column names that `Annotations.from_long` finds by itself.
ALIASES = {
    "task": ("task", "item"),
    "worker": ("worker", "annotator"),
    "label": ("label",),
}


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
        for role, names in self._roles():
            index = np.asarray(getattr(self, role))
            if index.ndim != 1 or (len(index) and index.dtype.kind not in "iu"):
                raise ValueError(
                    f"{role} must be a vector of integers, found {index.dtype} of shape {index.shape}."
                )
            if len(index) and (index.min() < 0 or index.max() >= len(names)):
                raise ValueError(
                    f"{role} must point into its {len(names)} names, found values from {index.min()} "
                    f"to {index.max()}."
                )
            _require_unique(names, role)
        if not len(self.item) == len(self.annotator) == len(self.label):
            raise ValueError(
                "item, annotator and label must have the same length, found "
                f"{len(self.item)}, {len(self.annotator)} and {len(self.label)}."
            )
        order = np.lexsort((self.annotator, self.item))
        for role, names in self._roles():
            object.__setattr__(self, role, _frozen(np.asarray(getattr(self, role), dtype=np.int64)[order]))
            object.__setattr__(self, f"{role}s" if role != "label" else "classes", _frozen(names))
        repeated = np.flatnonzero((np.diff(self.item) == 0) & (np.diff(self.annotator) == 0))
        if len(repeated):
            p = repeated[0]
            raise ValueError(
                f"annotator {self.annotators[self.annotator[p]]!r} has more than one label for item "
                f"{self.items[self.item[p]]!r} ({len(repeated)} repeats in all). Use Annotations.from_long "
                'with duplicates="first", "last" or "majority" to keep one of them.'
            )

    def _roles(self) -> list[tuple[str, Names]]:
        return [("item", self.items), ("annotator", self.annotators), ("label", self.classes)]

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
        matrix = _plain(Z)
        if matrix.ndim != 2:
            raise ValueError(
                f"A label matrix has a row an item and a column an annotator, found shape {matrix.shape}."
            )
        n_items, n_annotators = matrix.shape
        items = _names(range(n_items) if items is None else items, n_items, "items")
        annotators = _names(
            range(n_annotators) if annotators is None else annotators, n_annotators, "annotators"
        )
        item, annotator = np.nonzero(~_is_missing(matrix, missing_label))
        label, class_names = _encode(matrix[item, annotator], classes)
        if (unknown := np.flatnonzero(label < 0)).size:
            n, m = item[unknown[0]], annotator[unknown[0]]
            raise ValueError(
                f"Label {matrix[n, m]!r} of item {items[n]!r} by annotator {annotators[m]!r} is not among "
                f"the classes {some(class_names)}."
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
            values = _plain(df[columns[role]])
            missing = _is_missing(values, None)
            if role != "label" and missing.any():
                row = int(np.flatnonzero(missing)[0])
                raise ValueError(
                    f"Column {columns[role]!r} is empty in row {row} (index {df.index[row]!r}); "
                    f"every label needs its {role}."
                )
            code = np.full(len(df), -1, dtype=np.int64)
            code[~missing], role_names = _encode(values[~missing], known)
            if (unknown := np.flatnonzero((code < 0) & ~missing)).size:
                row = int(unknown[0])
                raise ValueError(
                    f"{role} {values[row]!r} in row {row} is not among the {len(role_names)} given names: "
                    f"{some(role_names)}."
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

        `missing_label` fills the rest: by default -1 where classes are integers, `None` otherwise.
        """
        integer = self.classes.dtype.kind in "iu"
        fill = -1 if missing_label is None and integer else missing_label
        keep_type = integer and isinstance(fill, int | np.integer)
        Z = np.full((self.n_items, self.n_annotators), fill, dtype=np.int64 if keep_type else object)
        Z[self.item, self.annotator] = self.classes[self.label]
        return pd.DataFrame(Z, index=self.items, columns=self.annotators)

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
            names = _names(new, None, role)
            _require_unique(names, role)
            moved = pd.Index(names).get_indexer(pd.Index(old))[index]
            if (moved < 0).any():
                lost = old[np.unique(index[moved < 0])]
                raise ValueError(
                    f"{len(lost)} {role}{'s' * (len(lost) > 1)} with labels not found: {some(lost)}. "
                    f"Known: {some(names)}."
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
            near = difflib.get_close_matches(name, [str(c) for c in df.columns], n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"No column {' or '.join(map(repr, tried))} for the {role}; the table has "
                f"{some(np.array(df.columns, dtype=object))}.{hint} Name it with {role}=…"
            )
        found[role] = present[0]
    return found


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    copy = np.array(values)
    copy.setflags(write=False)
    return copy


def _plain(values: Any) -> NDArray[Any]:
    """A numpy array without pandas' own types; strings become objects."""
    if isinstance(values, pd.DataFrame | pd.Series):
        numeric = values.to_numpy() if _is_numpy_number(values) else values.to_numpy(dtype=object)
        return np.asarray(numeric)
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        # a list of strings with None or numbers in between must not become "None" and "1"
        array = np.asarray(values, dtype=object)
    return array


def _is_numpy_number(values: pd.DataFrame | pd.Series) -> bool:
    dtypes = values.dtypes if isinstance(values, pd.DataFrame) else [values.dtype]
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)


def _is_missing(values: NDArray[Any], missing_label: Any) -> NDArray[np.bool_]:
    missing = np.asarray(pd.isna(values), dtype=bool)
    if missing_label is None or (isinstance(missing_label, float) and np.isnan(missing_label)):
        return missing
    comparable = values.dtype == object or (values.dtype.kind in "US") == isinstance(missing_label, str)
    return missing | (np.asarray(values == missing_label, dtype=bool) if comparable else False)


def _names(values: Iterable[Any], length: int | None, what: str) -> Names:
    """Names as an array of integers, or of the objects themselves."""
    listed = list(values.tolist() if hasattr(values, "tolist") else values)
    if length is not None and len(listed) != length:
        raise ValueError(f"{what} must name {length} of them, found {len(listed)}.")
    return _compact(listed)


def _compact(listed: list[Any]) -> Names:
    """Integers, floats and booleans as such, everything else as objects (a long text costs only itself)."""
    kinds = {type(value) for value in listed}
    if listed and len(kinds) == 1 and kinds <= {int, float, bool}:
        return np.array(listed)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _encode(values: NDArray[Any], known: Iterable[Any] | None) -> tuple[Index, Names]:
    """Codes of `values` and the names the codes point to; -1 for a value that is not among `known`."""
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError("A label or name is infinite (inf); only nan and None stand for a missing one.")
    if values.dtype.kind == "f" and len(values) and np.all(values == np.floor(values)):
        values = values.astype(np.int64)  # integers that a nan beside them had turned into floats
    if known is not None:
        names = _names(known, None, "names")
        _require_unique(names, "name")
        return pd.Index(names).get_indexer(pd.Index(values)).astype(np.int64), names
    codes, unique = pd.factorize(values)
    unique = list(unique.tolist())
    try:
        order = sorted(range(len(unique)), key=unique.__getitem__)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in unique})
        raise ValueError(
            f"Names of different types cannot be told apart safely: found {', '.join(kinds)}, for example "
            f"{some(unique)}. Convert the column to one type, for example to text."
        ) from None
    rank = np.empty(len(unique), dtype=np.int64)
    rank[order] = np.arange(len(unique))
    return (rank[codes] if len(unique) else codes.astype(np.int64)), _compact([unique[i] for i in order])


def _require_unique(names: Names, role: str) -> None:
    index = pd.Index(names)
    if not index.is_unique:
        twice = list(index[index.duplicated()][:3])
        raise ValueError(f"Every {role} needs a name of its own; repeated: {some(twice)}.")


def _keep_one(pair: Index, label: Index, rule: str) -> Index:
    """Positions to keep so that every pair stands once."""
    if rule == "majority":
        cells = pd.DataFrame({"pair": pair, "label": label, "position": np.arange(len(pair))})
        votes = cells.groupby(["pair", "label"], sort=False)["position"].agg(["size", "min"]).reset_index()
        votes = votes.sort_values(["pair", "size", "min"], ascending=[True, False, True])
        return np.asarray(votes.drop_duplicates("pair")["min"], dtype=np.int64)
    return np.flatnonzero(~pd.Series(pair).duplicated(keep=rule).to_numpy())


def some(names: Sequence[Any] | Names, most: int = 5) -> str:
    """The first few names, for messages."""
    shown = ", ".join(repr(name)[:60] for name in list(names[:most]))
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")
