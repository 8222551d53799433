"""Names and counts in messages: shortened, quoted, joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Characters that turn the direction of the text after them.
_TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def shorten(text: object, most: int = 80) -> str:
    """A name or a text of at most `most` characters, without marks that turn the direction of writing."""
    whole = str(text).translate(_TURNING)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def some(names: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """The first few names, for messages."""
    shown = ", ".join(show(name) for name in list(names[:most]))
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")


def show(name: Any) -> str:
    """A name for messages: 3, not np.int64(3)."""
    return repr(name.item() if isinstance(name, np.generic) else name)[:60]


def shown(columns: Sequence[Any], most: int = 12) -> str:
    """Names of columns for a message."""
    names = ", ".join(repr(str(column))[:40] for column in list(columns)[:most])
    return f"the columns {names}" + (f", … ({len(columns)} in all)" if len(columns) > most else "")
