"""Names and labels as arrays: missing values, equality and order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import some

#: Texts that stand for a missing value, besides an empty cell, in any case. ("None" can be a class.)
MISSING = ("nan", "null", "na", "n/a", "<na>", "#n/a")

Index = NDArray[np.int64]
Names = NDArray[Any]


def plain(values: Any) -> NDArray[Any]:
    """A numpy array without pandas' own types; strings become objects."""
    if isinstance(values, pd.DataFrame | pd.Series):
        numeric = values.to_numpy() if _is_numpy_number(values) else values.to_numpy(dtype=object)
        return np.asarray(numeric)
    if isinstance(values, np.ma.MaskedArray):
        objects: NDArray[Any] = values.data.astype(object)
        objects[np.ma.getmaskarray(values)] = None
        return objects
    array = np.asarray(values)
    if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
        # a list of strings with None or numbers in between must not become "None" and "1"
        array = np.asarray(values, dtype=object)
    return array


def _is_numpy_number(values: pd.DataFrame | pd.Series) -> bool:
    dtypes = values.dtypes if isinstance(values, pd.DataFrame) else [values.dtype]
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes)


def is_missing(values: NDArray[Any], missing_label: Any) -> NDArray[np.bool_]:
    """Where a label is missing: `nan`, `None`, and `missing_label` if it is not None."""
    if np.ndim(missing_label):
        raise ValueError(f"missing_label must be one value, found {missing_label!r}.")
    missing = np.array(pd.isna(values), dtype=bool)
    if pd.isna(missing_label):
        return missing
    if values.dtype == object or (values.dtype.kind in "US") == isinstance(missing_label, str):
        missing[~missing] = values[~missing] == missing_label
    return missing


def as_names(values: Iterable[Any], length: int | None, what: str) -> Names:
    """Names as an array of numbers or of the objects themselves; none is missing or repeated."""
    listed = as_list(values)
    if length is not None and len(listed) != length:
        raise ValueError(f"{what} must name {length} of them, found {len(listed)}.")
    names = _compact(listed)
    index = _index(names)
    if index.hasnans:
        raise ValueError(f"{what} all need a name; number {int(index.isna().argmax())} has none.")
    if not index.is_unique:
        repeated = names[index.duplicated()]
        raise ValueError(f"{what} all need different names; repeated: {some(repeated)}.")
    return names


def as_list(values: Iterable[Any]) -> list[Any]:
    """Values as a list, of Python's own types where they come from an array."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


def same_names(listed: list[Any], names: Names) -> bool:
    """Whether names are these, in this order and of these types: 1 is not True."""
    own = names.tolist()
    return listed == own and list(map(type, listed)) == list(map(type, own))


def _compact(listed: list[Any]) -> Names:
    """Integers, floats and booleans as such, everything else as objects (a long text costs only itself)."""
    kinds = set(map(type, listed))
    if any(issubclass(kind, np.number | np.bool_ | np.str_) for kind in kinds):
        listed = [v.item() if isinstance(v, np.number | np.bool_ | np.str_) else v for v in listed]
        kinds = set(map(type, listed))
    if listed and (kinds == {bool} or kinds <= {int, float}):
        numbers = np.array(listed)
        if numbers.dtype.kind in "bif" and numbers.tolist() == listed:  # not so for integers beyond 64 bits
            return numbers
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def encode(values: NDArray[Any], known: Iterable[Any] | None, role: str) -> tuple[Index, Names]:
    """Codes of `values` and the names the codes point to; -1 for a value that is not among `known`."""
    if values.dtype == object:
        values = _compact(values.tolist())
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(f"An infinite {role} (inf) was found; only nan and None stand for a missing one.")
    if values.dtype.kind == "f" and np.all((values == np.floor(values)) & (np.abs(values) < 2**63)):
        values = values.astype(np.int64)  # integers that a nan beside them had turned into floats
    if known is not None:
        names = as_names(known, None, {"item": "items", "annotator": "annotators"}.get(role, "classes"))
        return locate(values, names), names
    if values.dtype.kind in "iub":
        unique_numbers, codes = _sorted_numbers(values)
        return codes, unique_numbers
    codes, unique = pd.factorize(values)
    unique = list(unique.tolist())
    kinds = {type(value) for value in (values if values.dtype == object else unique)}
    try:
        if bool in kinds and len(kinds) > 1:  # True equals 1
            raise TypeError
        order = sorted(range(len(unique)), key=unique.__getitem__)
    except TypeError:
        raise ValueError(
            f"Every {role} must be of one type, found {', '.join(sorted(k.__name__ for k in kinds))}, for "
            f"example {some(unique)}. Convert them to one type, for example to text."
        ) from None
    rank = np.empty(len(unique), dtype=np.int64)
    rank[order] = np.arange(len(unique))
    return (rank[codes] if len(unique) else codes.astype(np.int64)), _compact([unique[i] for i in order])


def ascending(keys: list[Index], sizes: list[int]) -> Index | slice:
    """The order in which entries ascend by the first key, then by the next; `slice(None)` if they do already.

    Keys are 0 to size − 1. An order other than `slice(None)` may hold entries that are equal in all keys.
    """
    equal = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    later = ~equal
    for key in keys:
        later |= equal & (key[:-1] < key[1:])
        equal &= key[:-1] == key[1:]
    if later.all():
        return slice(None)
    if math.prod(sizes) >= 2**63:
        return np.lexsort(keys[::-1])
    code = keys[0]  # one number for all keys: sorting it is several times as fast
    for key, size in zip(keys[1:], sizes[1:], strict=True):
        code = code * size + key
    return np.argsort(code)


def distinct(codes: Index, n: int) -> tuple[Index, Index]:
    """The codes that occur, ascending, and the place of every code among them; codes are 0 to n − 1."""
    if n > 8 * len(codes):
        unique, place = np.unique(codes, return_inverse=True)
        return unique, place
    there = np.zeros(n, dtype=bool)  # no sorting
    there[codes] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]


def _sorted_numbers(values: NDArray[Any]) -> tuple[Names, Index]:
    """Distinct integers or booleans, ascending, and the place of every value among them."""
    codes, unique = pd.factorize(values)
    order = np.argsort(unique)
    rank = np.empty(len(unique), dtype=np.int64)
    rank[order] = np.arange(len(unique))
    return np.asarray(unique)[order], rank[codes]


def _index(names: NDArray[Any]) -> pd.Index:
    return pd.Index(names, tupleize_cols=False)


def locate(values: NDArray[Any], names: NDArray[Any]) -> Index:
    """Position of every value among the names, -1 where it is not one of them."""
    return np.asarray(_index(names).get_indexer(_index(values)), dtype=np.int64)
