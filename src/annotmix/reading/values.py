"""Ids and labels as text, so that 1, 1.0 and "1" are one id and "007" stays "007"."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import count
from annotmix.labels.names import MISSING

#: Longest id, name of an annotator, or label; a longer one is a text in the wrong column.
LONGEST = 1000
#: Longest text of an item that is kept.
LONGEST_TEXT = 100_000
_INTEGER = re.compile(r"-?\d{1,18}")
_AS_FLOAT = re.compile(r"-?\d{1,18}(\.0*)?")

Texts = NDArray[Any]


def as_texts(values: Iterable[Any], what: str, missing: Iterable[str] = MISSING) -> tuple[Texts, list[str]]:
    """Values as text, None where one is missing, and notes about changes.

    Parameters
    ----------
    values : iterable
        Text, numbers, booleans, missing values.
    what : str
        Their kind, for messages: "label".
    missing : iterable of str
        Texts that stand for a missing value, besides the empty one.
    """
    absent = {word.casefold() for word in missing} | {""}
    listed = list(values)
    texts = np.empty(len(listed), dtype=object)
    known: dict[str, str] = {}
    words: dict[str, int] = {}
    spaces = 0
    for n, value in enumerate(listed):
        if isinstance(value, str):
            text = known.get(value)
            if text is None:
                text = known[value] = _clean(value, what, n)
            spaces += len(text) != len(value)
        else:
            text = _number(value, what, n)
        if text.casefold() in absent:
            words[text] = words.get(text, 0) + bool(text)
            continue
        texts[n] = text
    notes = []
    if spaces:
        notes.append(f"Spaces around the {what} were removed in {count(spaces, 'row')}.")
    if any(words.values()):
        listed_words = ", ".join(f"{word!r} {count(n, 'time')}" for word, n in words.items() if n)
        notes.append(f"Read as no {what}: {listed_words}.")
    present = [text for text in texts if text is not None]
    distinct = set(present)
    if any("." in text for text in distinct) and all(_AS_FLOAT.fullmatch(text) for text in distinct):
        texts = np.array([None if text is None else text.split(".")[0] for text in texts], dtype=object)
        notes.append(f"Every {what} is a whole number; 1.0 was read as 1.")
    return texts, notes


def as_ids(values: Iterable[Any], what: str = "item's id") -> tuple[Texts, list[str]]:
    """Ids of items or names of annotators as text: "na" is a name, only "nan" is none."""
    return as_texts(values, what, ("nan",))


def as_labels(values: Iterable[Any], missing: Iterable[str]) -> tuple[Texts, list[str]]:
    """Labels as text; the usual words and those in `missing` stand for no label."""
    return as_texts(values, "label", (*MISSING, *missing))


def unparsed_answers(cells: NDArray[Any], missing: Iterable[str]) -> NDArray[np.bool_]:
    """Whether cells hold an answer that could not be parsed, by the words that say so."""
    words = {word.casefold() for word in missing}
    return np.array(
        [isinstance(cell, str) and cell.strip().casefold() in words for cell in cells], dtype=bool
    )


def in_order(names: Iterable[str]) -> list[str]:
    """Distinct names in their natural order: as numbers where all are, else as text."""
    distinct = set(names)
    if all(_INTEGER.fullmatch(name) for name in distinct):
        return sorted(distinct, key=lambda name: (int(name), name))
    return sorted(distinct)


def readable(text: str) -> str:
    """A text that can be written to a file: half of a surrogate pair, or NUL, from JSON, becomes "?"."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


def _clean(value: str, what: str, row: int) -> str:
    text = value.strip()
    if len(text) > LONGEST:
        raise ValueError(
            f"The {what} in row {row} has {len(text)} characters ({text[:30]!r}…), at most {LONGEST} are "
            "read. Is it a text in the wrong column?"
        )
    return readable(text)


def _number(value: Any, what: str, row: int) -> str:
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int) and abs(value) < 10**18:
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    raise ValueError(f"The {what} in row {row} is {value!r:.60}, expected a text or a number.")
