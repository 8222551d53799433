"""Numbers and names as they stand in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from annotmix._common.words import shorten
from annotmix.runs.report.markup import Markup, element


def whole(number: Any) -> str:
    """A number without decimals, 1,234."""
    return "" if number is None or not np.isfinite(number) else f"{number:,.0f}"


def share(value: float) -> str:
    """A share in percent; a share that is almost 0 or 1 is not rounded to it."""
    if not np.isfinite(value):
        return "–"
    if 0 < value < 0.0005:
        return "below 0.1%"
    return "over 99.9%" if 0.9995 < value < 1 else f"{value:.1%}"


def between(low: float, high: float) -> str:
    """An interval of shares."""
    return "" if not np.isfinite(low) else f"{low:.0%} to {high:.0%}"


def named(text: object, most: int = 80) -> Markup:
    """A name in an element of its own, so that its direction of writing cannot change the text beside it."""
    return element("bdi", shorten(text, most))
