"""Helpers and results of all readers: rows of text with their line numbers, checked cell by cell.

A reader never lets a damaged file pass as a whole one: it raises `DatasetFileError`, which names the file and
the line. Blank lines and a byte order mark are skipped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotmix._common.words import some
from annotmix.labels.annotations import Annotations

Codes = NDArray[np.int64]


class DatasetFileError(ValueError):
    """A file that is damaged or of another format."""

    def __init__(self, path: Path, problem: str, line: int | None = None):
        super().__init__(f"{str(path)!r}{'' if line is None else f', line {line}'}: {problem}")


@dataclass(frozen=True)
class Part:
    """Items of one part of a dataset.

    Parameters
    ----------
    y : array of int, shape (n,)
        Codes of their true classes.
    items : array, shape (n,)
        Their names.
    X : array, shape (n, ...), optional
        Features, texts, paths or images; None where the files with the items are absent.
    """

    y: Codes
    items: NDArray[Any]
    X: Any = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, index: Codes) -> Part:
        """The items at these positions."""
        return Part(self.y[index], self.items[index], None if self.X is None else self.X[index])


@dataclass(frozen=True)
class Raw:
    """The content of a dataset's files.

    Parameters
    ----------
    classes : array, shape (n_classes,)
    parts : dict of str to Part
        "train", "valid" and "test", as far as the files have them.
    labels : Annotations, optional
        Of the items of `parts["train"]`, in their order.
    """

    classes: NDArray[Any]
    parts: dict[str, Part]
    labels: Annotations | None = None


@dataclass(frozen=True)
class Rows:
    """Rows of cells, all of the same width, and the line of the file that each stands in."""

    path: Path
    lines: list[int]
    cells: list[list[str]]

    def __len__(self) -> int:
        return len(self.cells)

    def column(self, index: int) -> list[str]:
        """The cells of one column."""
        return [row[index] for row in self.cells]

    def codes(self, column: Sequence[str], names: Iterable[Any], what: str) -> Codes:
        """The position of every cell among the names."""
        names = [str(name) for name in names]
        place = {name: code for code, name in enumerate(names)}
        codes = np.fromiter((place.get(cell, -1) for cell in column), np.int64, len(column))
        if (unknown := np.flatnonzero(codes < 0)).size:
            row = int(unknown[0])
            raise self.error(row, f"{what} {column[row]!r:.60} is not known; known are {some(names)}.")
        return codes

    def integers(self, column: Sequence[str], low: int, high: int, what: str) -> Codes:
        """The cells as integers from `low` to `high`."""
        try:
            values = np.fromiter(map(int, column), np.int64, len(column))
        except (ValueError, OverflowError):
            values = np.array([_integer(cell, low - 1) for cell in column], dtype=np.int64)
        if (wrong := np.flatnonzero((values < low) | (values > high))).size:
            row = int(wrong[0])
            raise self.error(
                row, f"{what} must be an integer from {low} to {high}, found {column[row]!r:.60}."
            )
        return values

    def numbers(self, first: int, last: int) -> NDArray[np.float64]:
        """The columns from `first` up to but not including `last`, as finite numbers."""
        values = np.array(
            [[_number(cell) for cell in row[first:last]] for row in self.cells], dtype=np.float64
        )
        values = values.reshape(len(self), last - first)
        if (wrong := np.argwhere(~np.isfinite(values))).size:
            row, column = int(wrong[0, 0]), first + int(wrong[0, 1])
            cell = self.cells[row][column]
            raise self.error(row, f"column {column + 1} must be a finite number, found {cell!r:.60}.")
        return values

    def unique(self, column: Sequence[str], what: str) -> NDArray[Any]:
        """The cells as names without repetitions."""
        seen: dict[str, int] = {}
        for row, cell in enumerate(column):
            if seen.setdefault(cell, row) != row:
                raise self.error(row, f"{what} {cell!r:.60} is already in line {self.lines[seen[cell]]}.")
        return objects(column)

    def error(self, row: int, problem: str) -> DatasetFileError:
        """An error that names the line of a row."""
        return DatasetFileError(self.path, problem, self.lines[row])


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file."""
    return decode(path, path.read_bytes(), encoding)


def decode(path: Path, content: bytes, encoding: str = "utf-8") -> str:
    """Bytes of a file as text, without a byte order mark."""
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DatasetFileError(
            path, f"byte {content[error.start]:#04x} is not {encoding} text.", line
        ) from None


def guarded(path: Path, read: Callable[[], Any]) -> Any:
    """The result of `read` on a binary file; a damaged file may raise any error."""
    try:
        return read()
    except Exception as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise DatasetFileError(path, f"damaged, or of another format ({reason:.200}).") from error


def read_lines(path: Path, encoding: str = "utf-8") -> Rows:
    """A file as rows of one cell, one row per line."""
    kept = [
        (number, line.strip()) for number, line in enumerate(read_text(path, encoding).split("\n"), start=1)
    ]
    kept = [(number, line) for number, line in kept if line]
    return Rows(path, [number for number, _ in kept], [[line] for _, line in kept])


def read_words(path: Path) -> Rows:
    """A file as rows of cells between spaces."""
    whole = read_lines(path)
    return _same_width(Rows(path, whole.lines, [row[0].split() for row in whole.cells]))


def read_csv(path: Path, text: str | None = None, width: int | None = None) -> Rows:
    """A file as rows of cells between commas.

    Parameters
    ----------
    path : Path
    text : str, optional
        Its content, where it is not the text of the file itself.
    width : int, optional
        Number of cells of a row; by default that of the first row.
    """
    reader = csv.reader(io.StringIO(read_text(path) if text is None else text, newline=""), strict=True)
    lines, cells = [], []
    try:
        for row in reader:
            if row:
                lines.append(reader.line_num)
                cells.append(row)
    except csv.Error as error:
        raise DatasetFileError(path, f"not a whole table ({error}).", reader.line_num) from None
    return _same_width(Rows(path, lines, cells), width)


def split_header(rows: Rows, *needed: str) -> tuple[dict[str, int], Rows]:
    """The places of the columns by their names, and the rows below the header."""
    if not len(rows):
        raise DatasetFileError(rows.path, "the file is empty.")
    header = [name.strip() for name in rows.cells[0]]
    if missing := [name for name in needed if name not in header]:
        raise rows.error(0, f"no column {missing[0]!r}; the columns are {some(header)}.")
    if len(set(header)) < len(header):
        raise rows.error(0, "a column is repeated in the header.")
    return {name: place for place, name in enumerate(header)}, Rows(rows.path, rows.lines[1:], rows.cells[1:])


def objects(values: Iterable[Any]) -> NDArray[Any]:
    """An array of the objects themselves, for example of strings of any length."""
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _same_width(rows: Rows, width: int | None = None) -> Rows:
    for row, cells in enumerate(rows.cells):
        width = len(cells) if width is None else width
        if len(cells) != width:
            raise rows.error(
                row, f"{len(cells)} columns where {width} were expected; the file may be cut off."
            )
    return rows


def _integer(cell: str, otherwise: int) -> int:
    try:
        value = int(cell)
    except ValueError:
        return otherwise
    return value if abs(value) < 2**63 else otherwise


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")
