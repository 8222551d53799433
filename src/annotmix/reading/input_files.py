"""Files as tables or records of text, whatever their encoding; nothing in them is trusted."""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.spreadsheet import may_be_guarded, unguard_table
from annotmix._common.words import count, some
from annotmix.reading.containers import is_packed, read_excel, unpack

Record = dict[str, Any]
#: Maximum number of columns; messages list columns, and keys of records become columns.
MOST_COLUMNS = 100_000
_SEPARATORS = {"\t": "tab", ",": "comma", ";": "semicolon", "|": "bar"}
_BOMS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}


@dataclass(frozen=True)
class Source:
    """The facts about a file that a run keeps.

    Parameters
    ----------
    role : str
        The content of the file, for example "labels".
    name : str
        Its name, without the folder.
    sha256 : str
    rows : int
        Number of rows, lines or entries.
    """

    role: str
    name: str
    sha256: str
    rows: int


class InputFile:
    """A file, parsed as far as its format need not be known: records of JSON, or a table of anything else.

    Cells of delimited text stay text ("007" is not 7); cells of Parquet, Excel and JSON keep their type. A
    file in gzip or ZIP is unpacked.

    Attributes
    ----------
    path : Path
    records : list of dict, or None
        The objects of JSON or JSON Lines.
    notes : list of str
        Notes about the encoding.
    """

    def __init__(self, path: Path):
        data = read_bytes(path)
        files = unpack(data, path.name)
        if len(files) > 1:
            raise ValueError(
                f"{path.name!r} holds {len(files)} files, {some([name for name, _ in files])}; expected one. "
                "Unpack it and name the file."
            )
        self._parse(path, files[0][1], hashlib.sha256(data).hexdigest())

    @classmethod
    def each(cls, path: Path) -> list[InputFile]:
        """The file, or each of the files in a ZIP file, under their own names."""
        data, made = read_bytes(path), []
        files = unpack(data, path.name)
        for name, content in files:
            file = cls.__new__(cls)
            file._parse(Path(name) if len(files) > 1 else path, content, hashlib.sha256(data).hexdigest())
            made.append(file)
        return made

    def _parse(self, path: Path, data: bytes, sha256: str) -> None:
        self.path, self.notes, self._sha256 = path, list[str](), sha256
        self.records: list[Record] | None = None
        if not data.strip():
            raise ValueError(f"{str(path)!r} is empty.")
        if is_parquet(data):
            self.table = _read_parquet(data, path.name)
        elif is_packed(data):
            self.table, self.notes = read_excel(data, path.name)
        else:
            text, self.notes = decode(data, path.name)
            if is_json(text):
                self.records = _parse_records(text, path.name)
            else:
                self.table = _parse_delimited(text, path.name)
                if may_be_guarded(text):
                    self.table, notes = _unguarded(self.table, path.name)
                    self.notes += notes

    @property
    def name(self) -> str:
        """The name of the file, without the folder."""
        return self.path.name

    @cached_property
    def table(self) -> pd.DataFrame:
        """The file as a table; a field that a record lacks is None."""
        return _records_table(self.records or [], self.name)

    def source(self, role: str) -> Source:
        """The facts about this file that a run keeps."""
        rows = len(self.table if self.records is None else self.records)
        return Source(role, self.name, self._sha256, rows)


def fingerprint(path: Path) -> str:
    """SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_bytes(path: Path) -> bytes:
    """The content of a file; a folder, a missing or an empty file is an error."""
    if not path.exists():
        near = difflib.get_close_matches(path.name, _siblings(path), n=1)
        hint = f" Did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise ValueError(f"There is no file {str(path)!r}.{hint}")
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder, expected a file.")
    data = path.read_bytes()
    if not data.strip():
        raise ValueError(f"{str(path)!r} is empty.")
    return data


def decode(data: bytes, name: str) -> tuple[str, list[str]]:
    """Bytes as text, and a note about the encoding where it is not plain UTF-8.

    A byte-order mark decides; else UTF-8; else UTF-16 where every other byte is zero; else lines that are not
    UTF-8 are read as cp1252 (Windows), the others as UTF-8.
    """
    for mark, encoding in _BOMS.items():
        if data.startswith(mark):
            try:
                return data.decode(encoding), [] if encoding == "utf-8-sig" else [
                    f"{name} was read as {encoding}."
                ]
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{name!r} begins like {encoding}, but is damaged: {error.reason} at byte {error.start}."
                ) from None
    if b"\0" in data[:4096]:
        for first, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            if data[first:4096:2].count(0) > 0.6 * len(data[first:4096:2]):
                try:
                    return data.decode(encoding), [f"{name} was read as {encoding}."]
                except UnicodeDecodeError:
                    break
    if b"\0" in data:
        raise ValueError(
            f"{name!r} is not a text file: byte {data.index(0)} is zero. Export it as CSV, JSON or Parquet."
        )
    try:
        return data.decode("utf-8"), []
    except UnicodeDecodeError:
        return _line_by_line(data, name)


def _line_by_line(data: bytes, name: str) -> tuple[str, list[str]]:
    lines, wrong, proper = [], [], 0
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            lines.append(line.decode("utf-8"))
            proper += not line.isascii()
        except UnicodeDecodeError:
            wrong.append(number)
            try:
                lines.append(line.decode("cp1252"))
            except UnicodeDecodeError:
                lines.append(line.decode("latin-1"))
    if not proper:
        return "\n".join(lines), [f"{name} is not UTF-8 and was read as cp1252 (Windows)."]
    return "\n".join(lines), [
        f"{name} mixes encodings: "
        + count(len(wrong), "line that is not UTF-8 was", "lines that are not UTF-8 were")
        + f" read as cp1252 (Windows), the first is line {wrong[0]}."
    ]


def is_parquet(data: bytes) -> bool:
    """Whether bytes begin like a Parquet file."""
    return data[:4] == b"PAR1"


def is_json(text: str) -> bool:
    """Whether a text begins like JSON or JSON Lines."""
    return text.lstrip()[:1] in ("{", "[")


def _parse_records(text: str, name: str) -> list[Record]:
    """The objects of a JSON array, of one JSON object, or of JSON Lines."""
    stripped = text.strip()
    if stripped.startswith("["):
        records = _loads(stripped, name)
    else:
        try:
            records = [_loads(stripped, name)]
        except ValueError:
            lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
            records = [_loads(line, f"{name}, line {number}") for number, line in lines]
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            raise ValueError(
                f"{name}: entry {number} is {record!r:.40}, expected an object with named fields."
            )
    if not records:
        raise ValueError(f"{name}: the list is empty.")
    return list(records)


def _read_parquet(data: bytes, name: str) -> pd.DataFrame:
    """A Parquet file as a table."""
    try:
        table = pd.read_parquet(io.BytesIO(data))
    except ImportError:
        raise ValueError(
            f'{name!r} is a Parquet file. Install its reader: pip install "annotmix[parquet]"'
        ) from None
    except Exception as error:  # the readers raise many kinds
        raise ValueError(f"{name!r} is not a whole Parquet file: {str(error).splitlines()[0]:.200}") from None
    if any(index is not None for index in table.index.names):
        table = table.reset_index()
    table.columns = [str(column) for column in table.columns]
    return table


def _parse_delimited(text: str, name: str) -> pd.DataFrame:
    """Delimited text as a table of text; the separator is the most frequent one in the first line."""
    header = text.lstrip("\r\n").split("\n", 1)[0]
    separator = max(_SEPARATORS, key=header.count)
    if not header.count(separator):
        separator = ","
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                io.StringIO(text), sep=separator, dtype=object, keep_default_na=False, index_col=False
            )
    except pd.errors.ParserWarning:
        raise ValueError(
            f"{name!r} has rows with more fields than its first line names "
            f"({header.count(separator) + 1}, separated by a "
            f"{_SEPARATORS[separator]}). Quote fields that contain one."
        ) from None
    except (ValueError, pd.errors.ParserError, OverflowError) as error:
        raise ValueError(f"{name!r} is not a whole table: {str(error).strip():.200}") from None
    if table.shape[1] > MOST_COLUMNS:
        raise ValueError(f"{name!r} has {table.shape[1]} columns; at most {MOST_COLUMNS} are read.")
    if not len(table):
        raise ValueError(f"{name!r} has no rows below its first line, {header[:80]!r}.")
    table.columns = [str(column).strip().lstrip("\ufeff") for column in table.columns]
    return table


def _unguarded(table: pd.DataFrame, name: str) -> tuple[pd.DataFrame, list[str]]:
    """A table without the apostrophes that keep spreadsheets from running cells, and a note about them."""
    plain, n = unguard_table(table)
    note = f"{name}: the apostrophe before = + - or @ (no formula) was removed from {count(n, 'cell')}."
    return plain, [note] if n else []


def _records_table(records: list[Record], name: str) -> pd.DataFrame:
    """Records as a table of objects; a field that a record lacks is None."""
    keys = list(dict.fromkeys(key for record in records for key in record))
    if len(keys) * len(records) > 200 * max(MOST_COLUMNS, len(records)):
        raise ValueError(
            f"{name!r} has records of {len(keys)} different fields; expected the same few in each."
        )
    columns = {}
    for key in keys:
        column = np.empty(len(records), dtype=object)
        column[:] = [record.get(key) for record in records]
        columns[str(key)] = column
    return pd.DataFrame(columns, dtype=object)


def _loads(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError(f"{name}: the JSON is nested too deeply.") from None
    except ValueError as error:
        raise ValueError(f"{name}: not JSON ({error}).") from None


def _siblings(path: Path) -> list[str]:
    try:
        return sorted(file.name for file in path.parent.iterdir())
    except OSError:
        return []
