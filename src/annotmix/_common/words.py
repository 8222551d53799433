"""Names and counts in messages and reports: shortened, quoted, listed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Characters that change the direction of the text after them.
_TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def shorten(text: object, most: int = 80) -> str:
    """A name or a text of at most `most` characters, without marks that change the direction of writing."""
    whole = str(text).translate(_TURNING)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


def show(name: object) -> str:
    """A name for a message: 'a', 3 and not np.int64(3), at most 60 characters."""
    return shorten(repr(name.item() if isinstance(name, np.generic) else name), 60)


def some(names: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """The first few names for a message."""
    listed = ", ".join(show(name) for name in list(names[:most]))
    return listed + (f", … ({len(names)} in all)" if len(names) > most else "")


def count(number: int, one: str, many: str | None = None) -> str:
    """How many there are of something: 1 label, 2 labels, 1,000 classes.

    Parameters
    ----------
    number : int
    one : str
        The thing, and what is said about it: "label was left out".
    many : str, optional
        The same about several: "labels were left out"; by default `one` with an "s".
    """
    return f"{number:,} {one if number == 1 else f'{one}s' if many is None else many}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a message that names the nearest known name, empty where none is near."""
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
