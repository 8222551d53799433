"""Times in files as seconds since 1970, UTC."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

#: Numbers above this are milliseconds; as seconds they would lie after the year 5138.
_MILLISECONDS = 1e11


def as_seconds(value: Any) -> float:
    """A time as seconds since 1970, UTC; nan where a value is no time.

    ISO 8601 ("2026-11-18T07:28:45.973600Z", without a zone UTC), a datetime, or a number of seconds or
    milliseconds.
    """
    if isinstance(value, bool) or value is None:
        return math.nan
    if isinstance(value, str):
        text = value.strip()[:64]
        try:
            value = float(text)
        except ValueError:
            try:
                value = datetime.fromisoformat(text)
            except ValueError:
                return math.nan
    try:
        if isinstance(value, datetime):
            own = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return float(own.timestamp())
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    if not math.isfinite(number):
        return math.nan
    return number / 1000 if abs(number) > _MILLISECONDS else number
