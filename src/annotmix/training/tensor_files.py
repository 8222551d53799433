"""Tensors and facts on disk: safetensors and JSON, never a pickle; a half-written file never counts.

A saved model is a folder with `model.json` and a weights file named by its content. The JSON names the
weights and their checksum and is replaced last, in one step: until then the old model is whole, and a kill
in between leaves at most an unused file behind.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, contiguous_format

from annotmix._common.files import write_atomically, write_bytes
from annotmix._common.schema import Strict, decode, read_json
from annotmix.training.tensor_layout import Layout, read_layout, require_memory

FORMAT = 2
_WEIGHTS = "weights-*.safetensors"


#: Refuses facts and a layout of tensors that do not fit, before any tensor is read.
Check = Callable[[dict[str, Any], Layout], None]


class ModelFileError(ValueError):
    """A folder or file that is not a whole model of this package."""


class ModelFile(Strict):
    """The content of `model.json`."""

    format: Any
    weights: str
    sha256: Any
    model: dict[str, Any]


def save_model(folder: str | os.PathLike[str], tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write a model into `folder`; on any failure the model that was there stays whole."""
    folder = Path(folder)
    text = json.dumps({**facts}, ensure_ascii=False, allow_nan=True)  # before anything is written
    before = set(folder.glob(_WEIGHTS))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        weights, checksum = _write_weights(folder, tensors)
        whole = {"format": FORMAT, "weights": weights.name, "sha256": checksum, "model": json.loads(text)}
        written = json.dumps(whole, indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")
        write_bytes(folder / "model.json", written)
    except (OSError, SafetensorError) as error:
        for unused in set(folder.glob(_WEIGHTS)) - before:
            unused.unlink(missing_ok=True)
        raise OSError(
            f"Could not save the model in {str(folder)!r}: {error}. "
            "A model that was there before is untouched."
        ) from error
    for old in folder.glob(_WEIGHTS):
        if old.name != weights.name:
            old.unlink(missing_ok=True)


def load_model(
    folder: str | os.PathLike[str], check: Check | None = None
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_model` wrote; nothing in the files is executed.

    Parameters
    ----------
    folder : path
    check : callable, optional
        Called with the facts and the layout of the tensors before any tensor is read; raises `ValueError`
        where they do not fit.
    """
    folder = Path(folder)
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
    if check is not None:
        check(saved.model, layout)
    if _sha256(weights) != saved.sha256:
        raise ModelFileError(f"{str(weights)!r} is damaged or truncated: its checksum is not the saved one.")
    try:
        return load_file(weights), saved.model
    except SafetensorError as error:
        raise ModelFileError(f"{str(weights)!r} is not a safetensors file ({error}).") from error


def save_tensors(path: str | os.PathLike[str], tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write tensors and facts into one file, in one step."""
    metadata = {"annotmix": json.dumps(facts)}
    write_atomically(Path(path), lambda tmp: _save_file(tensors, tmp, metadata))


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


def _write_weights(folder: Path, tensors: dict[str, Tensor]) -> tuple[Path, str]:
    """Write the weights under a name made of their checksum; the file and the checksum."""
    temporary = folder / "weights.tmp"
    try:
        write_atomically(temporary, lambda path: _save_file(tensors, path))
        checksum = _sha256(temporary)
        return temporary.replace(folder / _WEIGHTS.replace("*", checksum[:16])), checksum
    finally:
        temporary.unlink(missing_ok=True)


def _save_file(tensors: dict[str, Tensor], path: str, metadata: dict[str, str] | None = None) -> None:
    # copies: tensors that share memory (tied weights) or are views would be refused
    own = {name: tensor.detach().clone(memory_format=contiguous_format) for name, tensor in tensors.items()}
    try:
        save_file(own, path, metadata)
    except SafetensorError as error:  # what it raises where the disk is full
        raise OSError(f"{path!r} could not be written: {error}") from error


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
