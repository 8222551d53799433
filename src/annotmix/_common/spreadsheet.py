"""Tables as CSV that is safe to open in a spreadsheet, and the way back to the same texts.

A text that a spreadsheet would run gets an apostrophe in front. A text that looks as if it had one already
gets one more, so that every text comes back as it was: `-->` is written as `'-->`, and `'-->` as `''-->`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from typing import Any

import pandas as pd

#: A spreadsheet takes a cell that begins like this for a formula, unless it is a number.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
_GUARDED = re.compile(r" *'+[=+\-@\t\r]")
#: What `to_csv` does, in words for a reader of the file.
EXPLANATION = (
    "A text that begins with = + - @, tab or CR and is no number has an apostrophe in front, so that no "
    "spreadsheet runs it; a text that began with apostrophes and such a sign has one more. The commands of "
    "annotmix remove it when they read the file."
)


def guard(cell: Any) -> Any:
    """A cell that no spreadsheet runs; numbers stay as they are, also those that are text, such as -1."""
    if not isinstance(cell, str):
        return cell
    if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell.replace("'", "''", 1) if _GUARDED.match(cell) else cell


def unguard(cell: Any) -> Any:
    """The cell that `guard` was called with; every other cell without such an apostrophe stays as it is."""
    if isinstance(cell, str) and _GUARDED.match(cell):
        return cell.replace("'", "", 1)
    return cell


def unguard_table(table: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """A table of texts with its cells and column names as before `guard`, and how many changed."""
    columns = [unguard(name) for name in table.columns]
    changed = sum(new != old for new, old in zip(columns, table.columns, strict=True))
    parts = {}
    for place in range(table.shape[1]):
        cells = table.iloc[:, place].tolist()
        parts[place] = [unguard(cell) for cell in cells]
        changed += sum(new is not old for new, old in zip(parts[place], cells, strict=True))
    if not changed:
        return table, 0
    plain = pd.DataFrame(parts, index=table.index, dtype=object)
    plain.columns = pd.Index(columns, dtype=object)
    return plain, changed


def may_be_guarded(text: str) -> bool:
    """Whether a cell in a text of CSV can have such an apostrophe; quick, for files without one."""
    return _GUARDED.search(text) is not None


def six_digits(number: float) -> str:
    """A number with six significant digits; a probability below 1 is not written as the certainty 1."""
    text = f"{number:.6g}"
    return "0.999999" if text == "1" and number < 1 else text


def to_csv(
    table: pd.DataFrame, index: bool = False, float_format: Callable[[float], str] | None = six_digits
) -> str:
    """A table as CSV, with texts guarded and numbers with six digits."""
    safe = table.reset_index() if index else table.copy()
    texts = list(safe.columns)
    for column in safe.columns:
        if safe[column].dtype == object or pd.api.types.is_string_dtype(safe[column]):
            safe[column] = [guard(cell) for cell in safe[column]]
            texts += list(safe[column])
    safe.columns = [guard(column) for column in safe.columns]
    # the writer leaves a carriage return unquoted, and a reader ends the line there
    returns = any(isinstance(text, str) and "\r" in text for text in texts)
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    written: str = safe.to_csv(index=False, float_format=float_format, lineterminator="\n", quoting=quoting)
    return written
