"""Tables as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

#: A spreadsheet takes a cell that begins like this for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")


def neutral(cell: Any) -> Any:
    """A cell that no spreadsheet runs: a text that begins like a formula gets an apostrophe in front.

    Numbers stay as they are, also those that are text, such as -1.
    """
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def to_csv(table: pd.DataFrame, index: bool = False) -> str:
    """A table as CSV, with texts neutralised and probabilities to six places."""
    safe = table.reset_index() if index else table.copy()
    for column in safe.columns:
        if safe[column].dtype == object or pd.api.types.is_string_dtype(safe[column]):
            safe[column] = [neutral(cell) for cell in safe[column]]
    safe.columns = [neutral(column) for column in safe.columns]
    text: str = safe.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    return text
