"""The base class of text and image encoders: settings, the cache, batches, progress."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from torch import Tensor

from annotmix._common.cache import RowCache, cache_folder
from annotmix._common.progress import Progress
from annotmix.encoders.pretrained import content_hash

Floats = NDArray[np.float32]
#: Version of the computation; cached features of another version are not used.
FORMAT = 2
#: Rows in one file of the cache; a killed process loses the work on at most this many.
SHARD = 512
#: The network as a function of a list of inputs; gives features, shape (n, d), on its device.
Network = Callable[[list[Any]], Tensor]


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A frozen pretrained network that turns inputs into features.

    Features are kept on disk; their key is the content of the input and of the network, and the settings that
    matter. Network and weights are read when they are first needed. It is also a scikit-learn transformer,
    for the start of a pipeline.
    """

    #: "text" or "image", the first part of an encoder's name; also the extra that it needs.
    kind: ClassVar[str]
    #: Settings that have no influence on the features of one input (settings of views are in its key).
    _neutral: ClassVar[tuple[str, ...]] = ("batch_size", "device", "cache", "progress", "views", "seed")

    model: str
    batch_size: int
    device: str
    cache: str | os.PathLike[str] | bool | None
    progress: bool
    views: int = 0
    _network: Network | None = None
    _fingerprint: str | None = None
    #: Fingerprint that the network of a saved model must have.
    _expected: str | None = None

    def encode(self, inputs: Any) -> Floats:
        """Features of the inputs, shape (n, d)."""
        raise NotImplementedError

    def encode_views(self, inputs: Any) -> Floats:
        """Features of every input and its augmented views, shape (n, 1 + views, d)."""
        return self.encode(inputs)[:, None]

    def fit(self, X: Any, y: Any = None) -> Encoder:
        """Nothing is learnt: the network is frozen."""
        return self

    def transform(self, X: Any) -> Floats:
        """Features of the inputs, shape (n, d)."""
        return self.encode(X)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    # ---------------------------------------------------------------- for subclasses

    def _find(self) -> list[Path]:
        """The files that the network consists of."""
        raise NotImplementedError

    def _load(self) -> Network:
        raise NotImplementedError

    def _size(self, item: Any) -> int:
        """Sort key of inputs, so that similar ones share a batch."""
        return 0

    def _check_params(self, pooling: tuple[str, ...]) -> None:
        settings = self.get_params()
        if not isinstance(self.model, str | os.PathLike):
            raise TypeError(f"model must be the name or the folder of a checkpoint, found {self.model!r}.")
        if settings["pooling"] not in pooling:
            raise ValueError(f"pooling must be one of {pooling}, found {settings['pooling']!r}.")
        for name, least in {"batch_size": 1, "max_length": 1, "views": 0, "seed": 0}.items():
            value = settings.get(name, least)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be an integer of at least {least}, found {value!r}.")

    # ---------------------------------------------------------------- features

    @property
    def fingerprint(self) -> str:
        """Identifies the network by the content of its files."""
        if self._fingerprint is None:
            fingerprint = content_hash(self._find())
            if self._expected not in (None, fingerprint):
                raise ValueError(
                    f"The encoder {self.kind}:{self.model} is not the one the model was trained with: its "
                    "files differ. Load the model with the right one, annotmix.load(folder, encoder=…)."
                )
            self._fingerprint = fingerprint
        return self._fingerprint

    def _features(self, keys: Sequence[bytes], items: Sequence[Any]) -> Floats:
        """Features, shape (n, d), of items with these keys, from the cache where it has them."""
        cache = RowCache(self._cache_folder(), SHARD)
        known = cache.get(keys)
        new = {key: item for key, item in zip(keys, items, strict=True) if key not in known}
        order = sorted(new, key=lambda key: self._size(new[key]), reverse=True)
        shards = [list(_pieces(shard, self.batch_size)) for shard in _pieces(order, SHARD)]
        with Progress(f"{self.kind}:{self.model}", sum(map(len, shards)), show=self.progress) as progress:
            for shard in shards:
                fresh: dict[bytes, Floats] = {}
                for batch in shard:
                    fresh |= zip(batch, self._forward([new[key] for key in batch]), strict=True)
                    progress.advance("batches")
                cache.put(list(fresh), np.stack(list(fresh.values())))
                known |= fresh
        return np.stack([known[key] for key in keys])

    @torch.inference_mode()
    def _forward(self, batch: list[Any]) -> Floats:
        if self._network is None:
            self._network = self._load()
        features: Floats = self._network(batch).float().cpu().numpy()
        return features

    def _cache_folder(self) -> Path | None:
        if self.cache is False:
            return None
        root = cache_folder() if self.cache is None or self.cache is True else Path(self.cache)
        settings = {k: v for k, v in self.get_params().items() if k not in (*self._neutral, "model")}
        name = hashlib.sha256(json.dumps([FORMAT, self.kind, self.fingerprint, settings]).encode())
        return root / "features" / name.hexdigest()[:32]

    # ---------------------------------------------------------------- files

    def to_dict(self) -> dict[str, Any]:
        """The encoder as JSON: its name and settings, no weights; `from_dict` reads it."""
        params = {k: v for k, v in self.get_params().items() if k not in ("device", "cache", "progress")}
        params["model"] = os.path.abspath(self.model) if os.path.isdir(self.model) else os.fspath(self.model)
        return {"kind": self.kind, "params": params, "fingerprint": self._expected or self.fingerprint}

    def set_params(self, **params: Any) -> Encoder:
        """Change settings; a network that was loaded is dropped."""
        self._network = self._fingerprint = None
        return super().set_params(**params)  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_network": None}


def _pieces(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (values[first : first + size] for first in range(0, len(values), size))
