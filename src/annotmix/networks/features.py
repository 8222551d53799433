"""Items as a network takes them: rows of an array, as tensors on the device."""

from __future__ import annotations

import copy
import mmap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: Input numbers of the items whose features are computed at a time.
ROW_BUDGET = 1 << 20

Floats = NDArray[np.float32]


class Features:
    """Rows of X as float32 tensors on the device.

    An array in memory is moved to the device once. A memory-mapped array stays on disk, and only the
    rows that are needed are read. Images of dtype uint8 (more than one dimension per item) stay bytes in
    memory; the rows that are taken are divided by 255.

    Parameters
    ----------
    X : array, shape (n, ...)
    device : torch.device
    views : bool, default=False
        X is an array in memory of shape (n, n_views, ...): every item comes in several views. `take`
        gives the first one, `draw` a random one.
    """

    def __init__(self, X: NDArray[np.generic], device: torch.device, views: bool = False):
        self.device, self.shape = device, (*X.shape[:1], *X.shape[1 + views :])
        self._bytes = X.dtype == np.uint8 and len(self.shape) > 2
        self._mapped = X if isinstance(X, np.memmap) else None
        self._tensor = self._views = None
        if self._mapped is None:
            self._tensor = torch.as_tensor(
                np.ascontiguousarray(X) if self._bytes else _float32(X), device=device
            )
        if self._tensor is not None and views:
            self._views, self._tensor = self._tensor, self._tensor[:, 0]

    def __len__(self) -> int:
        return int(self.shape[0])

    def take(self, rows: NDArray[np.int64] | slice) -> Tensor:
        """Rows of X, shape (len(rows), ...)."""
        if self._tensor is None:
            assert self._mapped is not None
            mapped = np.array(self._mapped[rows])
            x = torch.from_numpy(mapped if self._bytes else _float32(mapped)).to(self.device)
        else:
            x = self._tensor
            x = x[rows] if isinstance(rows, slice) else x.index_select(0, torch.from_numpy(rows).to(x.device))
        return x.float().div_(255) if self._bytes else x

    def draw(self, rows: NDArray[np.int64], rng: np.random.Generator) -> Tensor:
        """Rows of X for training, shape (len(rows), ...), each one of its views, drawn by `rng`."""
        if self._views is None:
            return self.take(rows)
        view = rng.integers(self._views.shape[1], size=len(rows))
        return self._views[torch.from_numpy(rows), torch.from_numpy(view)]

    def to(self, device: torch.device) -> Features:
        """The same rows on another device."""
        other = copy.copy(self)
        other.device = device
        other._tensor = None if self._tensor is None else self._tensor.to(device)
        other._views = None if self._views is None else self._views.to(device)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """For another process: a whole memory-mapped file is named, not copied."""
        state, X = dict(vars(self)), self._mapped
        if X is not None and isinstance(X.base, mmap.mmap):
            order = "C" if X.flags.c_contiguous else "F"
            state["_mapped"] = partial(np.memmap, X.filename, X.dtype, "r", X.offset, X.shape, order)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if isinstance(self._mapped, partial):
            self._mapped = self._mapped()

    def pieces(self) -> list[slice]:
        """All rows in order, in pieces that fit into memory."""
        step = max(1, min(4096, ROW_BUDGET // max(1, int(np.prod(self.shape[1:])))))
        return [slice(first, min(first + step, len(self))) for first in range(0, len(self), step)]

    def chunks(self) -> Iterator[tuple[slice, Tensor]]:
        """All rows in order, piece by piece."""
        for rows in self.pieces():
            yield rows, self.take(rows)

    def map(self, function: Callable[[slice, Tensor], Tensor]) -> Tensor:
        """The results of a function of (numbers of rows, rows), for all rows piece by piece; (n, ...)."""
        return torch.cat([function(rows, x) for rows, x in self.chunks()])


def _float32(X: NDArray[np.generic]) -> Floats:
    return np.ascontiguousarray(X, dtype=np.float32)
