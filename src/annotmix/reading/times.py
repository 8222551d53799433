"""When labels were given: dates and times in the forms that files have, as seconds since 1970 (UTC)."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.labels.columns import guess_column
from annotmix.reading.texts import as_text

Floats = NDArray[np.float64]

#: Share of the cells that must be times for a column to be one.
_MOST = 0.95
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?\s?(Z|UTC|[+-]\d\d:?\d\d)?)?", re.I)
#: Counts since 1970 in units of a second; seconds from 2001 to 2096 have one size in each of them.
_UNITS = {1.0: "seconds", 1e3: "milliseconds", 1e6: "microseconds", 1e9: "nanoseconds"}
_FIRST, _LAST = 1e9, 4e9


def parse_times(values: pd.Series) -> Floats | None:
    """Seconds since 1970, shape (n,), nan where there are none; None where a column does not hold times.

    ISO 8601 (without a zone: UTC), and seconds, milliseconds, microseconds or nanoseconds since 1970, between
    2001 and 2096. 03/04/2024 has two meanings, and is no time here.
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        return _seconds(pd.to_datetime(values, utc=True))
    texts = pd.Series([as_text(cell).strip() for cell in values], dtype=object)
    present = texts != ""
    if not present.any():
        return None
    numbers = pd.to_numeric(texts.where(present), errors="coerce").to_numpy(dtype=np.float64)
    if np.isfinite(numbers).sum() >= _MOST * present.sum():
        return _since_1970(numbers)
    iso = texts.map(lambda text: _ISO.fullmatch(text) is not None)
    if iso.sum() < _MOST * present.sum():
        return None
    cleaned = texts.where(iso).str.replace(",", ".", regex=False)
    return _seconds(pd.to_datetime(cleaned, utc=True, format="ISO8601", errors="coerce"))


def as_seconds(value: Any) -> float:
    """One time as seconds since 1970, nan where a value is no time; in the forms of `parse_times`."""
    if isinstance(value, str):
        text = value.strip()[:64]
        if _ISO.fullmatch(text):
            try:
                value = datetime.fromisoformat(text.upper().replace("UTC", "Z").replace(" Z", "Z"))
            except ValueError:
                return math.nan
        else:
            value = text
    try:
        if isinstance(value, datetime):
            return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return next((number / unit for unit in _UNITS if _FIRST <= number / unit < _LAST), math.nan)


def label_times(table: pd.DataFrame, name: str, notes: list[str]) -> tuple[Floats | None, str | None]:
    """When the labels of a table were given, shape (n,), and the column that says so; None without one."""
    column = guess_column(table.columns, "time")
    if column is None or list(table.columns).count(column) > 1:
        return None, None
    times = parse_times(table[column])
    if times is None:
        notes.append(
            f"{name}: the column {column!r} is not used: it holds no times such as 2024-05-01T12:30:00 or "
            "seconds since 1970."
        )
        return None, column
    notes.append(f"{name}: the column {column!r} says when a label was given.")
    return times, column


def iso(seconds: Floats) -> NDArray[Any]:
    """Times as text, 2024-05-01T12:30:00Z, shape (n,); empty where there is none."""
    known = np.isfinite(seconds)
    texts = np.full(len(seconds), "", dtype=object)
    dates = pd.to_datetime(np.round(seconds[known] * 1e3), unit="ms")
    texts[known] = [f"{date.isoformat(timespec='milliseconds').removesuffix('.000')}Z" for date in dates]
    return texts


def _since_1970(numbers: Floats) -> Floats | None:
    known = numbers[np.isfinite(numbers)]
    for unit in _UNITS:
        if np.mean((known >= _FIRST * unit) & (known < _LAST * unit)) >= _MOST:
            seconds = numbers / unit
            return np.where((seconds >= _FIRST) & (seconds < _LAST), seconds, np.nan)
    return None


def _seconds(dates: pd.Series) -> Floats:
    stamps = dates.to_numpy(dtype="datetime64[us]")
    return np.where(np.isnat(stamps), np.nan, stamps.astype(np.int64) / 1e6)
