"""CSV files that are safe to open in a spreadsheet."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from annotmix._common.files import write_atomically

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


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write: Callable[[str], Any] = lambda temporary: Path(temporary).write_bytes(data)  # noqa: E731
    write_atomically(path, write)


def deliver(table: pd.DataFrame, out: Path | None, as_json: bool, say: Callable[[str], None]) -> None:
    """A table to where it was asked for: a CSV file, or stdout as CSV or JSON."""
    if out is not None:
        write_text(out, to_csv(table))
        say(f"{len(table)} rows: {out}")
    if as_json:
        from annotmix.runs.storage import plain

        rows = [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False)]
        print(json.dumps(plain({"rows": rows, "out": out}), ensure_ascii=False, allow_nan=False))
    elif out is None:
        print(to_csv(table), end="")
