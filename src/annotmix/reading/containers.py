"""Files that hold another file: gzip, ZIP and Excel; nothing in them is trusted.

A small file can unpack to more than a machine's memory. Unpacking is therefore done in pieces and ends with
an error beyond `MOST_BYTES`, and beyond `MUCH` where the content is more than `RATIO` times as large as the
file.
"""

from __future__ import annotations

import datetime
import io
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
import pandas as pd

from annotmix._common.optional import require
from annotmix._common.words import some

MOST_BYTES = 4 << 30
MUCH, RATIO = 256 << 20, 200
_PIECE = 1 << 20
#: The part that makes a ZIP file one of Excel.
_WORKBOOK = "xl/workbook.xml"
#: A sheet of Excel has at most this many columns.
_MOST_COLUMNS = 16_384
#: Endings of files with tables or records, also in front of .gz.
TABLES = (".csv", ".tsv", ".tab", ".txt", ".xlsx", ".parquet", ".jsonl", ".ndjson", ".json")


def base_name(path: Path | PurePosixPath) -> str:
    """The name of a file without folder and endings: "ann" for batch/ann.csv.gz."""
    name = path.name
    for ending in (".gz", ".zip", *TABLES):
        if name.lower().endswith(ending) and len(name) > len(ending):
            name = name[: -len(ending)]
    return name


def is_table_name(name: str) -> bool:
    """Whether a file has a table or records in it, by the ending of its name."""
    return name.lower().removesuffix(".gz").endswith(TABLES) or name.lower().endswith(".zip")


def is_packed(data: bytes) -> bool:
    """Whether bytes begin like gzip, ZIP (Excel is one), or an old file of Excel."""
    return data.startswith((b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06", b"\xd0\xcf\x11\xe0"))


def unpack(data: bytes, name: str) -> list[tuple[str, bytes]]:
    """The files in gzip or ZIP, with their names; other bytes, and those of Excel, as they are.

    Parameters
    ----------
    data : bytes
        Content of a file.
    name : str
        Its name, for messages.
    """
    if data.startswith(b"\x1f\x8b"):
        return [(name[:-3] if name.lower().endswith(".gz") else name, _gunzip(data, name))]
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise ValueError(f"{name!r} is an old file of Excel (.xls). Save it as .xlsx or CSV.")
    if not is_packed(data):
        return [(name, data)]
    with _archive(data, name) as archive:
        listed = [entry for entry in archive.infolist() if not entry.is_dir()]
        if any(entry.filename == _WORKBOOK for entry in listed):
            return [(name, data)]
        visible = [entry for entry in listed if _is_own(entry.filename)]
        tables = [entry for entry in visible if entry.filename.lower().endswith(TABLES)]
        if not tables and len(visible) == 1 and not PurePosixPath(visible[0].filename).suffix:
            tables = visible  # pandas' to_csv("labels.zip") packs a file named "labels"
        if not tables:
            raise ValueError(
                f"{name!r} holds no table ({', '.join(TABLES)}); it holds "
                f"{some([entry.filename for entry in listed]) or 'nothing'}."
            )
        _check_size(sum(entry.file_size for entry in tables), len(data), name)
        return [(PurePosixPath(entry.filename).name, _member(archive, entry, data, name)) for entry in tables]


def read_excel(data: bytes, name: str) -> tuple[pd.DataFrame, list[str]]:
    """The first sheet of an Excel file that has rows below its first line, and notes; cells keep their type.

    Dates become text, 2024-05-01 or 2024-05-01T12:30:00.
    """
    with _archive(data, name) as archive:
        listed = archive.infolist()
        if not any(entry.filename == _WORKBOOK for entry in listed):
            raise ValueError(f"{name!r} holds a packed file in a packed file. Unpack it first.")
        _check_size(sum(entry.file_size for entry in listed), len(data), name)
    openpyxl = require("openpyxl", "excel", f"{name!r} is a file of Excel; its reader")
    try:
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = [(sheet.title, sheet) for sheet in book.worksheets]
        used, skipped = None, []
        for title, sheet in sheets:
            if used is None and (rows := _rows(sheet)) and len(rows) > 1:
                used = title, rows
            else:
                skipped.append(title)
    except Exception as error:  # the reader raises many kinds
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{name!r} is not a whole file of Excel: {first:.200}") from None
    if used is None:
        raise ValueError(f"{name!r} has no sheet with a table: a line of names and rows below it.")
    notes = [f"{name}: the sheet {used[0]!r} was read, not {some(skipped)}."] if skipped else []
    return _table(used[1]), notes


def _rows(sheet: Any) -> list[list[Any]]:
    """The rows of a sheet that are not empty."""
    sheet.reset_dimensions()  # a sheet may state a size that is wrong
    return [
        [_cell(cell) for cell in row]
        for row in sheet.iter_rows(values_only=True, max_col=_MOST_COLUMNS)
        if any(cell not in (None, "") for cell in row)
    ]


def _cell(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        date_only = value.time() == datetime.time(0)
        return value.date().isoformat() if date_only else value.isoformat()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _table(rows: list[list[Any]]) -> pd.DataFrame:
    """Rows as a table of objects, the first one naming the columns; columns without a name and cells go."""
    width = max(map(len, rows))
    cells = np.empty((len(rows), width), dtype=object)
    for number, row in enumerate(rows):
        cells[number, : len(row)] = row
    names = ["" if name is None else str(name).strip() for name in cells[0]]
    used = [n for n in range(width) if names[n] or any(cell is not None for cell in cells[1:, n])]
    columns = [names[n] or f"Unnamed: {n}" for n in used]
    return pd.DataFrame(cells[1:, used], columns=columns, dtype=object)


def _archive(data: bytes, name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise ValueError(f"{name!r} is not a whole ZIP file: {error}.") from None


def _is_own(name: str) -> bool:
    """Whether a member of an archive is a file of the user: no hidden file, none of macOS."""
    path = PurePosixPath(name)
    return not path.name.startswith((".", "~")) and "__MACOSX" not in path.parts


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, data: bytes, name: str) -> bytes:
    if entry.flag_bits & 1:
        raise ValueError(f"{entry.filename!r} in {name!r} is encrypted; unpack it first.")
    try:
        with archive.open(entry) as file:
            return _read(_pieces(file), len(data), name)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError) as error:
        raise ValueError(f"{entry.filename!r} in {name!r} cannot be unpacked: {error}.") from None


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _gunzip(data: bytes, name: str) -> bytes:
    try:
        return _read(_inflated(data), len(data), name)
    except zlib.error as error:
        raise ValueError(f"{name!r} is not a whole gzip file: {error}.") from None


def _inflated(data: bytes) -> Iterator[bytes]:
    """The content of gzip, also of several members one after the other, in pieces."""
    rest = data
    while rest.startswith(b"\x1f\x8b"):
        stream = zlib.decompressobj(wbits=31)
        while not stream.eof:
            piece = stream.decompress(rest, _PIECE)
            rest = stream.unconsumed_tail
            if not piece and not rest and not stream.eof:
                raise zlib.error("it ends too early")
            yield piece
        rest = stream.unused_data


def _read(pieces: Iterator[bytes], packed: int, name: str) -> bytes:
    whole = bytearray()
    for piece in pieces:
        whole += piece
        _check_size(len(whole), packed, name)
    return bytes(whole)


def _check_size(size: int, packed: int, name: str) -> None:
    """Refuse content that is far larger than its file."""
    if size > MOST_BYTES or (size > MUCH and size > RATIO * packed):
        raise ValueError(
            f"{name!r} has {packed:,} bytes and unpacks to {size:,} or more; at most {MOST_BYTES:,} are "
            f"read, and from {MUCH:,} on at most {RATIO} times its size. Unpack it yourself if you trust it."
        )
