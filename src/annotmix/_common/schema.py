"""JSON files read against a declared type: the one place where files that a run wrote are checked.

A file is declared as a `msgspec.Struct` beside the code that writes it. Reading gives an object of that type,
or one `ValueError` that names the file, the place in it and what was expected there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, TypeVar, overload

import msgspec

T = TypeVar("T")

#: Bytes of a JSON file that are read: ten million labels of a hundred characters.
LARGEST = 1 << 30
#: An integer that every kind of array and every JSON reader holds.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]
Scalar = str | int | float | bool | None
#: A value of which nothing is expected but that it is not nested deeply.
Flat = Scalar | list[Scalar]
Value = Scalar | list[Scalar] | dict[str, Scalar | list[Scalar] | dict[str, Flat]]


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """The base class of declared files and their parts: every key is known, every type right."""


class SchemaError(ValueError):
    """A JSON file that is damaged, or does not have the declared content."""


def read_json(path: Path, kind: type[T], error: type[ValueError] = SchemaError) -> T:
    """The content of a JSON file as an object of the declared type.

    Parameters
    ----------
    path : Path
    kind : type
        A subclass of `Strict`, or any other type that msgspec knows.
    error : type
        The class of the error for a file that is damaged.
    """
    try:
        if (size := os.path.getsize(path)) > LARGEST:
            raise ValueError(f"{size} bytes; at most {LARGEST} are read")
        return decode(json.loads(path.read_text("utf-8", "surrogatepass")), kind)
    except (ValueError, RecursionError, MemoryError) as problem:
        reason = " ".join(str(problem).split()) or type(problem).__name__
        raise error(f"{str(path)!r} is damaged or not written by annotmix ({reason:.300}).") from None


@overload
def decode(value: Any, kind: type[T]) -> T: ...
@overload
def decode(value: Any, kind: Any) -> Any: ...
def decode(value: Any, kind: Any) -> Any:
    """A value that `json.loads` made, as an object of the declared type; an error says where it differs."""
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as problem:
        raise ValueError(str(problem).replace("`", "")) from None


def require_equal_lengths(**lists: Any) -> None:
    """Refuse lists of different lengths, by their names."""
    lengths = {name: len(own) for name, own in lists.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"expected lists of one length, found {', '.join(_sizes(lengths))}")


def require_unique(name: str, values: list[Any]) -> None:
    """Refuse a list in which a value is repeated."""
    if len(set(values)) < len(values):
        raise ValueError(f"a value of {name} is repeated")


def _sizes(lengths: dict[str, int]) -> list[str]:
    return [f"{length} of {name}" for name, length in lengths.items()]
