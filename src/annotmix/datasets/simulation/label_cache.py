"""What simulated annotators said, on disk: a file an annotator, named by all that its labels depend on.

Files are written in one step, so that processes may share a folder and be killed at any time.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import annotmix
from annotmix._common.files import write_atomically

if TYPE_CHECKING:
    from annotmix.datasets.simulation.trained import Annotator


def files(
    folder: Path, data: Iterable[NDArray[Any]], annotators: Sequence[Annotator], network: Mapping[str, Any]
) -> list[Path]:
    """The file of every annotator in `folder`, which is made where it does not exist."""
    if not isinstance(network["backbone"], str):
        raise ValueError("cache= needs a backbone that has a name: a module's own code cannot be compared.")
    folder.mkdir(parents=True, exist_ok=True)
    shared = hashlib.sha256(repr((annotmix.__version__, sorted(network.items()))).encode())
    for array in data:
        shared.update(f"{array.dtype} {array.shape}".encode())
        for first in range(0, len(array), 4096):
            shared.update(array[first : first + 4096].tobytes())
    paths = []
    for annotator in annotators:
        own = shared.copy()
        own.update(repr((annotator.epochs, annotator.lr, annotator.seed)).encode())
        own.update(annotator.rows.tobytes())
        paths.append(folder / f"annotator-{own.hexdigest()[:32]}.npz")
    return paths


def read(path: Path, n: int, n_classes: int) -> NDArray[np.int64] | None:
    """The n labels in a file; None where there is no file, or, with a warning, a damaged one."""
    try:
        with np.load(path, allow_pickle=False) as file:
            labels = np.asarray(file["labels"])
        if labels.shape != (n,) or labels.dtype.kind != "i" or labels.min() < 0 or labels.max() >= n_classes:
            raise ValueError(f"expected {n} labels below {n_classes}")
    except FileNotFoundError:
        return None
    except Exception as error:  # a damaged file may do anything to its reader
        warnings.warn(
            f"{str(path)!r} is damaged ({type(error).__name__}: {error}); its annotator is trained again.",
            stacklevel=4,
        )
        return None
    return labels.astype(np.int64)


def write(path: Path, labels: NDArray[np.int64]) -> None:
    """Write labels so that `read` finds them whole or not at all."""
    small = labels.astype(np.min_scalar_type(-int(labels.max()) - 1))

    def save(temporary: str) -> None:
        with open(temporary, "wb") as file:  # a name would get another ending
            np.savez_compressed(file, labels=small)

    write_atomically(path, save)
