"""Writing files completely or not at all: text, bytes, JSON and NPY; never a pickle."""

from __future__ import annotations

import io
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

#: How the name of a folder begins whose parts are about to take their places beside it, all together.
FINISHED = ".finished-"


def write_atomically(path: Path, write: Callable[[str], Any], make_folder: bool = True) -> None:
    """Call `write` on a temporary file beside `path`, then put it in place of `path` in one step.

    The folder is made where it does not exist, unless `make_folder` is False.
    """
    if make_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    temporary = str(path.with_name(f".{path.name}.{secrets.token_hex(4)}"))
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    mode = (
        os.fstat(handle).st_mode & 0o777
    )  # what the umask leaves; asking for it would change it for a moment
    os.close(handle)
    try:
        write(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def remove_temporary(folder: Path, name: str) -> None:
    """Remove files that a killed `write_atomically` of this name (a pattern) has left in a folder."""
    for path in folder.glob(f".{name}.*"):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlast a loss of power, where the system can do that."""
    with suppress(OSError):  # not every system opens folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name; where the file system has no such thing, a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file in one step."""
    write_atomically(path, lambda temporary: Path(temporary).write_bytes(data))


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step, as UTF-8 and with the line ends that the text has."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write a value, which `to_json` may have to simplify, as a JSON file in one step."""
    write_text(path, json.dumps(to_json(value), indent=1, ensure_ascii=False, allow_nan=False))


def to_json(value: Any) -> Any:
    """A value as JSON has it: numpy's numbers as Python's, nan and infinity as None, paths as text."""
    if isinstance(value, Mapping):
        return {str(key): to_json(own) for key, own in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [to_json(own) for own in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def save_array(path: Path, array: Any) -> None:
    """Write an array of numbers as NPY in one step."""
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    write_bytes(path, buffer.getvalue())


def load_array(path: Path) -> NDArray[Any]:
    """Read an array of numbers or of text; the file must hold as many bytes as its header claims."""
    with open(path, "rb") as file:
        return read_array(file, repr(str(path)))


def read_array(file: BinaryIO, name: str) -> NDArray[Any]:
    """The array that begins at the position of an open NPY file; `name` is for the message.

    Nothing is allocated before the size that the header claims is compared with the bytes that are there.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise ValueError(f"version {version} of the format is not known")
        # the header of version 3 differs from that of version 2 in its encoding alone
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(file)
    except Exception as error:  # the header is a Python expression, whose parser raises errors of many kinds
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{name} is not a whole NPY file: {reason:.200}") from None
    if dtype.kind not in "biufU" or min(shape, default=0) < 0:
        raise ValueError(
            f"{name} is not a whole NPY file of numbers or text: it claims {dtype!s:.60} of shape "
            f"{shape!s:.60}."
        )
    start, end = file.tell(), file.seek(0, io.SEEK_END)
    file.seek(start)
    size = math.prod(shape) * dtype.itemsize
    if size > end - start:
        raise ValueError(
            f"{name} is not a whole NPY file: its header claims {size} bytes, {dtype} of shape "
            f"{shape!s:.60}, and {end - start} bytes follow."
        )
    try:
        content = np.empty(size, dtype=np.uint8)
        file.readinto(content.data)  # type: ignore[attr-defined]
        return content.view(dtype).reshape(shape, order="F" if fortran else "C")
    except ValueError as error:  # more dimensions than numpy has, text of no length
        raise ValueError(f"{name} is not a whole NPY file: {error}") from None
