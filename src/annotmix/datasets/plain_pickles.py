"""Pickles of numbers, text, lists, dictionaries and numpy arrays, read without Python's unpickler.

A pickle is a program for a small machine. `pickle` runs all of it, so a file decides which functions are
called and how much memory they get. The machine here knows a few instructions, bounds their number, and calls
nothing: where a file names a function or a type of numpy, an inert stand-in records the arguments. An array
is made only at the end, of plain numbers, from bytes that are in the file.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Instructions of a file, which bound its objects: the labels and names of 50,000 images need a tenth.
MOST_INSTRUCTIONS = 2_000_000
MOST_KEYS, MOST_DIMENSIONS = 1000, 8
_DTYPES = {f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)} | {"b1", "f2", "f4", "f8"}
#: Where numpy 1 and 2 keep the function that makes an array, and the other names that pickles of arrays have.
_RECONSTRUCT = {("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")}
_NDARRAY, _DTYPE, _ENCODE = ("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")
_KNOWN = {*_RECONSTRUCT, _NDARRAY, _DTYPE, _ENCODE}


class PlainPickleError(ValueError):
    """A pickle that is damaged, or holds more than plain values."""


@dataclass(eq=False)
class _Named:
    """A name that a pickle asks for; it is never looked up."""

    name: tuple[str, str]


@dataclass(eq=False)
class _Dtype:
    """The arguments of numpy.dtype."""

    code: str
    order: str = "="

    def set(self, state: Any) -> None:
        """Take the byte order from (version, order, subdtype, names, fields, …)."""
        order = _text(state[1]) if isinstance(state, tuple) and len(state) >= 5 else ""
        if order not in ("<", ">", "|", "=") or any(part is not None for part in state[2:5]):
            raise PlainPickleError("it has an array of records")
        self.order = order

    def numpy(self) -> np.dtype[Any]:
        """The type, which is one of plain numbers."""
        if self.code not in _DTYPES:
            raise PlainPickleError(f"it has an array of {self.code!r:.20}; only plain numbers are read")
        return np.dtype(self.code).newbyteorder(self.order)  # type: ignore[arg-type]


@dataclass(eq=False)
class _Array:
    """The state of an array: (version, shape, dtype, in Fortran's order, bytes)."""

    state: tuple[Any, ...] = ()

    def set(self, state: Any) -> None:
        """Remember the state; it is checked when the array is made."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise PlainPickleError("an array lacks parts of its state")
        self.state = state

    def numpy(self) -> NDArray[Any]:
        """The array, a view of bytes of the file."""
        if not self.state:
            raise PlainPickleError("an array lacks its state")
        _, shape, dtype, fortran, content = self.state
        if not isinstance(dtype, _Dtype) or not isinstance(content, bytes) or not isinstance(shape, tuple):
            raise PlainPickleError("an array has a state of wrong types")
        if len(shape) > MOST_DIMENSIONS or not all(type(n) is int and 0 <= n <= 2**40 for n in shape):
            raise PlainPickleError("an array has an impossible shape")
        kind = dtype.numpy()
        if math.prod(shape) * kind.itemsize != len(content):
            raise PlainPickleError(f"an array of shape {shape} has {len(content)} bytes of {kind}")
        return np.frombuffer(content, kind).reshape(shape, order="F" if fortran is True else "C")


@dataclass(eq=False)
class _Machine:
    """The state of the machine: stack, the stacks below each mark, and memo."""

    stack: list[Any] = field(default_factory=list)
    below: list[list[Any]] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop(self) -> Any:
        return self.stack.pop()

    def last(self, n: int) -> tuple[Any, ...]:
        if len(self.stack) < n:
            raise PlainPickleError("it takes more values than there are")
        values = tuple(self.stack[-n:])
        del self.stack[-n:]
        return values

    def since_mark(self) -> list[Any]:
        values, self.stack = self.stack, self.below.pop()
        return values

    def mark(self) -> None:
        self.below.append(self.stack)
        self.stack = []

    def named(self, module: Any, name: Any) -> None:
        if (module, name) not in _KNOWN:
            raise PlainPickleError(f"it asks for {module!s:.60}.{name!s:.60}, which no file of images needs")
        self.push(_Named((module, name)))

    def call(self) -> None:
        """Let a stand-in record the arguments of a call."""
        function, arguments = self.last(2)
        if not isinstance(function, _Named) or not isinstance(arguments, tuple):
            raise PlainPickleError("it calls something that is no function")
        if function.name == _ENCODE and len(arguments) == 2:  # how Python 3 writes bytes for Python 2
            text, encoding = arguments
            if type(text) is not str or encoding not in ("latin1", "latin-1"):
                raise PlainPickleError("it encodes something else than text in latin-1")
            self.push(text.encode("latin-1"))
        elif function.name == _DTYPE and arguments:
            self.push(_Dtype(_text(arguments[0])))
        elif function.name in _RECONSTRUCT and len(arguments) == 3 and _is(arguments[0], _NDARRAY):
            self.push(_Array())
        else:
            raise PlainPickleError("it asks for something else than an array")

    def build(self) -> None:
        target, state = self.last(2)
        if not isinstance(target, _Array | _Dtype):
            raise PlainPickleError("it gives a state to something that has none")
        target.set(state)
        self.push(target)

    def extend(self, values: list[Any] | tuple[Any, ...]) -> None:
        if type(self.stack[-1]) is not list:
            raise PlainPickleError("it appends to something else than a list")
        self.stack[-1].extend(values)

    def dictionary(self) -> None:
        pairs = self.since_mark()
        self.push({})
        self.update(pairs)

    def update(self, pairs: list[Any] | tuple[Any, ...]) -> None:
        target = self.stack[-1]
        if type(target) is not dict or len(pairs) % 2:
            raise PlainPickleError("it sets entries of something else than a dictionary")
        # the hash of a tuple would follow its parts, however deep they are
        if not all(type(key) in (str, bytes, int) for key in pairs[::2]):
            raise PlainPickleError("a key of a dictionary is no text")
        target.update(zip(pairs[::2], pairs[1::2], strict=True))
        if len(target) > MOST_KEYS:
            raise PlainPickleError(f"a dictionary has more than {MOST_KEYS} keys")


_VALUES = (
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8",
)  # fmt: skip
#: The instructions that are known, each a function of the machine and its argument.
_INSTRUCTIONS: dict[str, Callable[[_Machine, Any], Any]] = {
    **dict.fromkeys(_VALUES, _Machine.push),
    # strings of Python 2, which `pickletools` reads as latin-1
    **dict.fromkeys(("BINSTRING", "SHORT_BINSTRING"), lambda m, arg: m.push(arg.encode("latin-1"))),
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda m, arg: None),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda m, arg: m.memo.update({arg: m.stack[-1]})),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda m, arg: m.push(m.memo[arg])),
    "MEMOIZE": lambda m, arg: m.memo.update({len(m.memo): m.stack[-1]}),
    "NONE": lambda m, arg: m.push(None),
    "NEWTRUE": lambda m, arg: m.push(True),
    "NEWFALSE": lambda m, arg: m.push(False),
    "MARK": lambda m, arg: m.mark(),
    "EMPTY_LIST": lambda m, arg: m.push([]),
    "EMPTY_DICT": lambda m, arg: m.push({}),
    "EMPTY_TUPLE": lambda m, arg: m.push(()),
    "LIST": lambda m, arg: m.push(m.since_mark()),
    "DICT": lambda m, arg: m.dictionary(),
    "TUPLE": lambda m, arg: m.push(tuple(m.since_mark())),
    "TUPLE1": lambda m, arg: m.push(m.last(1)),
    "TUPLE2": lambda m, arg: m.push(m.last(2)),
    "TUPLE3": lambda m, arg: m.push(m.last(3)),
    "APPEND": lambda m, arg: m.extend(m.last(1)),
    "APPENDS": lambda m, arg: m.extend(m.since_mark()),
    "SETITEM": lambda m, arg: m.update(m.last(2)),
    "SETITEMS": lambda m, arg: m.update(m.since_mark()),
    "GLOBAL": lambda m, arg: m.named(*arg.split(" ", 1)),
    "STACK_GLOBAL": lambda m, arg: m.named(*m.last(2)),
    "REDUCE": lambda m, arg: m.call(),
    "BUILD": lambda m, arg: m.build(),
}


def read_plain_pickle(content: bytes) -> dict[Any, Any]:
    """The dictionary that a pickle holds, its arrays as numpy arrays; nothing in the pickle is executed.

    Anything else than a dictionary is an error. Strings of Python 2 are bytes.
    """
    machine = _Machine()
    for number, (instruction, argument, _) in enumerate(pickletools.genops(content)):
        if number >= MOST_INSTRUCTIONS:
            raise PlainPickleError(f"it has more than {MOST_INSTRUCTIONS} instructions")
        run = _INSTRUCTIONS.get(instruction.name)
        if run is None:
            raise PlainPickleError(f"its instruction {instruction.name} is none that a file of images needs")
        run(machine, argument)
    saved = machine.pop()
    if type(saved) is not dict:
        raise PlainPickleError(f"a dictionary was expected, found {type(saved).__name__}")
    return {key: value.numpy() if isinstance(value, _Array) else value for key, value in saved.items()}


def is_list_of_integers(value: Any) -> bool:
    """Whether a value is a flat list of integers; a nested one may stand for more than memory holds."""
    return type(value) is list and all(type(entry) is int for entry in value)


def _is(value: Any, name: tuple[str, str]) -> bool:
    return isinstance(value, _Named) and value.name == name


def _text(value: Any) -> str:
    """Text, which Python 2 wrote as bytes."""
    if type(value) is bytes:
        return value.decode("latin-1")
    if type(value) is not str:
        raise PlainPickleError("a type or a byte order is no text")
    return value
