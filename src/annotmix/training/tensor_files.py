"""Tensors and facts on disk: safetensors and JSON, never a pickle; a half-written file never counts.

A saved model is a folder with `model.json` and a weights file named by its content. The JSON names the
weights and their checksum and is replaced last, in one step: until then the old model is whole, and a kill
in between leaves at most unused files behind, which the next save removes.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from annotmix._common.files import FINISHED, remove_temporary, write_atomically, write_bytes
from annotmix._common.locks import hold
from annotmix._common.schema import Strict, decode, read_json
from annotmix.training.tensor_layout import Layout, read_layout, require_memory

if TYPE_CHECKING:  # models without a network are written and read without torch
    from torch import Tensor

FORMAT = 2
#: Seconds that a process waits for others that save into the same folder.
SAVING = 300.0
_WEIGHTS, _TEMPORARY = "weights-*.safetensors", "weights-*.tmp"
_LOCK = ".save.lock"


Arrays = dict[str, NDArray[Any]]
#: Reads the tensors of a file, or some of them.
Read = Callable[[Path], dict[str, Any]]
#: Refuses facts and a layout of tensors that do not fit, before any tensor is read.
Check = Callable[[dict[str, Any], Layout], Read | None]


def load_file(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    from safetensors.torch import load_file

    return load_file(path)


def load_arrays(path: str | os.PathLike[str], prefixes: tuple[str, ...] = ("",)) -> Arrays:
    """The tensors of a safetensors file whose names begin with one of the prefixes, as arrays."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys() if name.startswith(prefixes)}  # noqa: SIM118


def save_file(tensors: Mapping[str, Any], path: str, metadata: dict[str, str] | None = None) -> None:
    """Write tensors, or arrays, as a safetensors file."""
    if all(isinstance(values, np.ndarray) for values in tensors.values()):
        from safetensors.numpy import save_file

        save_file({name: np.asarray(values, order="C") for name, values in tensors.items()}, path, metadata)
        return
    from safetensors.torch import save_file as save_tensors
    from torch import contiguous_format

    # copies: tensors that share memory (tied weights) or are views would be refused
    own = {name: tensor.detach().clone(memory_format=contiguous_format) for name, tensor in tensors.items()}
    save_tensors(own, path, metadata)


class ModelFileError(ValueError):
    """A folder or file that is not a whole model of this package."""


class ModelFile(Strict):
    """The content of `model.json`."""

    format: Any
    weights: str
    sha256: Any
    model: dict[str, Any]


def save_model(
    folder: str | os.PathLike[str], tensors: Mapping[str, Tensor] | Arrays, facts: dict[str, Any]
) -> None:
    """Write a model into `folder`; on any failure the model that was there stays whole.

    Of several processes or threads that save into one folder, each waits for the one before.
    """
    folder = Path(folder)
    own = json.loads(json.dumps({**facts}, ensure_ascii=False, allow_nan=True))  # before anything is written
    busy, remedy = f"Another process is saving a model in {str(folder)!r}", "Wait for it"
    try:
        with hold(folder / _LOCK, SAVING, busy, remedy):
            _replace_model(folder, tensors, own)
    except (OSError, SafetensorError) as error:
        raise OSError(
            f"Could not save the model in {str(folder)!r}: {error}. "
            "A model that was there before is untouched."
        ) from error


def _replace_model(folder: Path, tensors: Mapping[str, Any], facts: dict[str, Any]) -> None:
    """Write weights and JSON, then remove the old weights; for the holder of the lock."""
    for name in ("model.json", _TEMPORARY):  # of a killed process
        remove_temporary(folder, name)
    for unused in folder.glob(_TEMPORARY):
        unused.unlink(missing_ok=True)
    before = set(folder.glob(_WEIGHTS))
    try:
        weights, checksum = _write_weights(folder, tensors)
        whole = {"format": FORMAT, "weights": weights.name, "sha256": checksum, "model": facts}
        written = json.dumps(whole, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")
        write_bytes(folder / "model.json", written)
    except (OSError, SafetensorError):
        for unused in set(folder.glob(_WEIGHTS)) - before:
            unused.unlink(missing_ok=True)
        raise
    for old in folder.glob(_WEIGHTS):
        if old.name != weights.name:
            old.unlink(missing_ok=True)


def load_model(
    folder: str | os.PathLike[str], check: Check | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `save_model` wrote; nothing in the files is executed.

    Beside a process that saves, or that replaces the whole folder together with its neighbours, it is the old
    model or the new one; no lock is needed.

    Parameters
    ----------
    folder : path
    check : callable, optional
        Called with the facts and the layout of the tensors before any tensor is read; raises `ValueError`
        where they do not fit. Returns the function that reads the tensors, None for `load_file`.
    """
    while True:
        place, before = _find(Path(folder))
        try:
            return _load_once(place, check)
        except (OSError, RuntimeError, ModelFileError):  # torch has a RuntimeError for a file that is gone
            if _find(Path(folder)) == (place, before):
                raise  # nobody has replaced the model while it was read


def _find(folder: Path) -> tuple[Path, tuple[int, ...] | None]:
    """Where the model is, and something that tells it from the next one there.

    While a run is replaced, the folder has no place of its own for a moment: the new one is still in a folder
    of finished parts beside it, also where the process was killed just then.
    """
    for place in (folder, *_finished(folder)):
        with suppress(OSError, ValueError):
            status = os.stat(place / "model.json")
            return place, (status.st_ino, status.st_mtime_ns)
    with suppress(OSError, ValueError):
        return folder, (os.stat(os.path.dirname(os.path.realpath(folder))).st_mtime_ns,)
    return folder, None


def _finished(folder: Path) -> Iterator[Path]:
    """Where a folder may wait to take its place."""
    with suppress(OSError, ValueError):
        own = Path(os.path.realpath(folder))
        for path in own.parent.iterdir():
            if path.name.startswith(FINISHED) and path.is_dir() and not path.is_symlink():
                yield path / own.name


def _load_once(folder: Path, check: Check | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a model that nobody replaces meanwhile."""
    path = folder / "model.json"
    if not path.is_file():
        raise ModelFileError(f"{str(folder)!r} holds no saved model: there is no model.json in it.")
    saved = read_json(path, ModelFile, ModelFileError)
    if saved.format != FORMAT:
        raise ModelFileError(
            f"{str(path)!r} has format {saved.format!r:.60}; this version of annotmix reads {FORMAT}."
        )
    weights = folder / saved.weights
    if Path(saved.weights).name != saved.weights or not os.path.isfile(weights):
        raise ModelFileError(
            f"{str(path)!r} names the weights file {saved.weights!r:.200}, which is not in the folder."
        )
    try:
        layout, _ = read_layout(weights)
        require_memory(layout)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{str(weights)!r} is damaged or truncated, or not a safetensors file ({error!s:.200})."
        ) from None
    read = None if check is None else check(saved.model, layout)
    if _sha256(weights) != saved.sha256:
        raise ModelFileError(f"{str(weights)!r} is damaged or truncated: its checksum is not the saved one.")
    try:
        return (read or load_file)(weights), saved.model
    except SafetensorError as error:
        raise ModelFileError(f"{str(weights)!r} is not a safetensors file ({error}).") from error


def save_tensors(path: str | os.PathLike[str], tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and facts into one file, in one step, in a folder that exists."""
    metadata = {"annotmix": json.dumps(facts)}
    write_atomically(Path(path), lambda tmp: _save_file(tensors, tmp, metadata), make_folder=False)


def load_tensors(
    path: str | os.PathLike[str], check: Check | None = None
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote; `check` as in `load_model`."""
    try:
        layout, metadata = read_layout(Path(path))
        require_memory(layout)
        facts = decode(json.loads(metadata["annotmix"]), dict[str, Any])
        if check is not None:
            check(facts, layout)
        return load_file(path), facts
    except ModelFileError:
        raise
    except (SafetensorError, KeyError, ValueError, RecursionError) as error:
        raise ModelFileError(
            f"{str(path)!r} is damaged or not written by annotmix ({error}). Remove it to start again."
        ) from error


def _write_weights(folder: Path, tensors: Mapping[str, Any]) -> tuple[Path, str]:
    """Write the weights under a name made of their checksum; the file and the checksum."""
    temporary = folder / _TEMPORARY.replace("*", secrets.token_hex(8))
    try:
        write_atomically(temporary, lambda path: _save_file(tensors, path))
        checksum = _sha256(temporary)
        return temporary.replace(folder / _WEIGHTS.replace("*", checksum[:16])), checksum
    finally:
        temporary.unlink(missing_ok=True)


def _save_file(tensors: Mapping[str, Any], path: str, metadata: dict[str, str] | None = None) -> None:
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:  # what it raises where the disk is full
        raise OSError(f"{path!r} could not be written: {error}") from error


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
