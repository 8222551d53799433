"""Features made ready for a network: numbers standardised, categories one-hot, missing values imputed.

The statistics of the training table are kept as JSON, so that new tables are treated the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.schema import Strict, require_equal_lengths, require_unique
from annotmix._common.words import count, some
from annotmix.labels.names import MISSING

Floats = NDArray[np.float64]

#: A category needs this many rows, and this share of all rows, for a column of its own; the rest share one.
LEAST_ROWS, LEAST_SHARE = 2, 0.005
MOST_LEVELS = 50
OTHER = "(other)"
#: Standardised values are clipped here, so that no input is infinite.
LIMIT = 1e6
#: Why columns are left out.
_CONSTANT, _DIFFERENT = "constant or empty", "a different value in nearly every row"


class SavedPreparation(Strict):
    """A `Preparation` as JSON."""

    numeric: list[str]
    median: list[float]
    mean: list[float]
    scale: list[float]
    levels: dict[str, Annotated[list[str], msgspec.Meta(min_length=1)]]
    indicated: list[str]
    left_out: dict[str, str]

    def __post_init__(self) -> None:
        numbers = {"median": self.median, "mean": self.mean, "scale": self.scale}
        require_equal_lengths(numeric=self.numeric, **numbers)
        for name, own in numbers.items():
            if not np.isfinite(own).all() or (name == "scale" and not (np.array(own) > 0).all()):
                raise ValueError(f"{name} must be {'positive' if name == 'scale' else 'finite'} numbers")
        require_unique("numeric and levels", [*self.numeric, *self.levels])
        for column, levels in self.levels.items():
            require_unique(f"levels of {column!r:.60}", levels)
        if not set(self.indicated) <= set(self.numeric):
            raise ValueError("indicated names a column that is not among numeric")
        if not (self.numeric or self.levels):
            raise ValueError("there are no columns")


@dataclass(frozen=True, eq=False)
class Preparation:
    """How a table becomes a matrix: numbers, then where they are missing, then one column per category.

    Parameters
    ----------
    numeric : list of str
        Columns of numbers.
    median, mean, scale : array, shape (len(numeric),)
        A missing number becomes the median; then the mean is subtracted, and the scale divides.
    levels : mapping of column to list of str
        Categories of every categorical column; the last may be "(other)". A missing one gives zeros.
    indicated : list of str
        Columns of numbers that get a further column, 1 where the number is missing.
    left_out : mapping of column to reason
        Columns that are not used.
    """

    numeric: list[str]
    median: Floats
    mean: Floats
    scale: Floats
    levels: Mapping[str, list[str]] = field(default_factory=dict)
    indicated: list[str] = field(default_factory=list)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of the matrix."""
        missing = [f"{column} is missing" for column in self.indicated]
        return [
            *(self.numeric + missing),
            *(f"{column}={level}" for column, levels in self.levels.items() for level in levels),
        ]

    def raw(self, table: pd.DataFrame, name: str = "the table") -> Floats:
        """The matrix before missing numbers are imputed and numbers standardised, shape (n, d)."""
        if absent := [column for column in (*self.numeric, *self.levels) if column not in table.columns]:
            raise ValueError(
                f"{name!r} lacks {count(len(absent), 'column')} that the model was trained on: "
                f"{some(absent)}. It has the columns {some(list(table.columns), 12)}."
            )
        parts = (
            [np.stack([_forced(table[column]) for column in self.numeric], axis=1)] if self.numeric else []
        )
        parts += [np.isnan(_forced(table[column])).astype(float)[:, None] for column in self.indicated]
        for column, levels in self.levels.items():
            values = _categories(table[column])
            known = values.isin(levels)
            if levels[-1] == OTHER:
                values = values.where(known | values.isna(), OTHER)
            parts.append(np.stack([(values == level).to_numpy(dtype=float) for level in levels], axis=1))
        return np.concatenate(parts, axis=1)

    def standardise(self, raw: Floats) -> NDArray[np.float32]:
        """The result of `raw`, imputed and standardised, shape (n, d)."""
        result = np.array(raw, dtype=np.float64)
        own = result[:, : len(self.numeric)]
        own = (np.where(np.isnan(own), self.median, own) - self.mean) / self.scale
        result[:, : len(self.numeric)] = np.clip(own, -LIMIT, LIMIT)
        return result.astype(np.float32)

    def transform(self, table: pd.DataFrame, name: str = "the table") -> NDArray[np.float32]:
        """A table as a matrix, shape (n, d)."""
        return self.standardise(self.raw(table, name))

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        numbers = {key: getattr(self, key).tolist() for key in ("median", "mean", "scale")}
        return {
            "numeric": self.numeric, **numbers, "levels": dict(self.levels), "indicated": self.indicated,
            "left_out": dict(self.left_out),
        }  # fmt: skip

    @classmethod
    def from_file(cls, saved: SavedPreparation) -> Preparation:
        """The inverse of `to_dict`."""
        numbers = (np.array(own, dtype=np.float64) for own in (saved.median, saved.mean, saved.scale))
        median, mean, scale = numbers
        return cls(saved.numeric, median, mean, scale, saved.levels, saved.indicated, saved.left_out)


def fit_preparation(table: pd.DataFrame, indicate: bool = False) -> tuple[Preparation, list[str]]:
    """Learn from a table how to prepare it and similar ones; notes say how columns were changed.

    Parameters
    ----------
    table : DataFrame
    indicate : bool, default=False
        Give columns of numbers of which some are missing a further column that says where.
    """
    numbers: dict[str, Floats] = {}
    levels: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}
    grouped = []
    for column in table.columns:
        values = _numbers(table[column])
        if values is not None:
            spread = values[~np.isnan(values)]
            with np.errstate(over="ignore", invalid="ignore"):
                varied = len(spread) > 0 and spread.min() < spread.max() and np.isfinite(spread.std())
            if varied:
                numbers[column] = values
            else:
                left_out[column] = _CONSTANT
            continue
        own, rest = _levels(_categories(table[column]))
        if not own:
            left_out[column] = _DIFFERENT
        elif len(own) == 1 and not rest:
            left_out[column] = _CONSTANT
        else:
            levels[column] = own + ([OTHER] if rest else [])
            grouped += [f"{column!r} ({rest})"] if rest else []
    if not numbers and not levels:
        raise ValueError(
            f"None of the columns {some(list(table.columns), 12)} can be used as a feature: they are "
            "constant, or identify rows."
        )
    matrix = np.stack(list(numbers.values()), axis=1) if numbers else np.zeros((len(table), 0))
    missing = np.isnan(matrix).sum(axis=0)
    median = np.nanmedian(matrix, axis=0) if numbers else np.zeros(0)
    filled = np.where(np.isnan(matrix), median, matrix)
    scale = filled.std(axis=0)
    indicated = [column for column, lost in zip(numbers, missing, strict=True) if lost and indicate]
    mean, scale = filled.mean(axis=0), np.where(scale > 0, scale, 1.0)
    made = Preparation(list(numbers), median, mean, scale, levels, indicated, left_out)
    notes = []
    if numbers:
        notes.append(
            count(len(numbers), "column of numbers was", "columns of numbers were")
            + f" standardised: {some(list(numbers))}."
        )
    if levels:
        width = sum(map(len, levels.values()))
        notes.append(
            f"{count(len(levels), 'column of categories', 'columns of categories')} became "
            f"{count(width, 'one-hot column')}: {some(list(levels))}."
        )
    if grouped:
        notes.append(f"Rare categories were put together as {OTHER}: {', '.join(grouped[:5])}.")
    if missing.any():
        where = [f"{column!r} ({lost})" for column, lost in zip(numbers, missing, strict=True) if lost]
        more = f", … ({len(where)} columns in all)" if len(where) > 5 else ""
        notes.append(
            f"{count(int(missing.sum()), 'missing number')} became the median of their column: "
            f"{', '.join(where[:5])}{more}."
        )
    notes += [
        f"Columns left out, {why}: {some(columns)}."
        for why in (_CONSTANT, _DIFFERENT)
        if (columns := [column for column, reason in left_out.items() if reason == why])
    ]
    return made, notes


def _numbers(column: pd.Series) -> Floats | None:
    """A column as numbers, nan where one is missing or infinite; None where it does not hold numbers."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isfinite(values), values, np.nan)
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return None
    text = _categories(column)
    present = text.dropna()
    for decimal in (".", ","):
        values = pd.to_numeric(present.str.replace(decimal, ".", regex=False), errors="coerce")
        if values.notna().all():
            return np.where(
                np.isfinite(full := values.reindex(text.index).to_numpy(dtype=np.float64)), full, np.nan
            )
    return None


def _forced(column: pd.Series) -> Floats:
    """A column that held numbers when the model was trained; any other value now counts as missing."""
    values = _numbers(column)
    if values is None:
        values = pd.to_numeric(_categories(column), errors="coerce").to_numpy(
            dtype=np.float64, na_value=np.nan
        )
    return np.where(np.isfinite(values), values, np.nan)


def _categories(column: pd.Series) -> pd.Series:
    """A column as stripped text, missing where it is empty or says so."""
    listed = [
        "" if value is None or value is pd.NA or value != value else str(value).strip() for value in column
    ]
    values = [None if not text or text.casefold() in MISSING else text[:1000] for text in listed]
    return pd.Series(values, index=column.index, dtype=object)


def _levels(values: pd.Series) -> tuple[list[str], int]:
    """The categories that are frequent enough, and how many are not."""
    counts = values.value_counts()
    frequent = counts[counts >= max(LEAST_ROWS, LEAST_SHARE * len(values))].index[:MOST_LEVELS]
    return sorted(frequent), len(counts) - len(frequent)
