"""The preparation of items as features; kept with the run, so that new items are prepared alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.schema import Strict
from annotmix.encoders.saved import SavedEncoder
from annotmix.estimators.preparation import Preparation, SavedPreparation, fit_preparation
from annotmix.reading import Items

#: Encoders that need no download at run time.
ENCODERS = {"text": "text:minilm", "images": "image:efficientnet-lite0"}
#: The number of a column of an encoder; the widest encoders have some thousand.
_COLUMN = re.compile("0|[1-9][0-9]{0,4}")


class SavedItems(Strict):
    """The items of a run, in `preparation.json`."""

    kind: Literal["features", "text", "images"]
    id_column: str | None
    encoder: SavedEncoder | None

    def __post_init__(self) -> None:
        expected = {"features": None, "text": "text", "images": "image"}[self.kind]
        if (self.encoder and self.encoder.__struct_config__.tag) != expected:
            raise ValueError(f"items of the kind {self.kind!r} need the encoder {expected}")


class PreparationFile(Strict):
    """The content of `preparation.json`."""

    items: SavedItems
    preparation: SavedPreparation

    def __post_init__(self) -> None:
        if self.items.encoder is not None and not all(map(_COLUMN.fullmatch, self.preparation.numeric)):
            raise ValueError("numeric must be the numbers of an encoder's columns")


@dataclass(frozen=True, eq=False)
class ItemPreparation:
    """How items become features.

    Parameters
    ----------
    kind : {"features", "text", "images"}
    id_column : str or None
        The column that held the ids of the items.
    encoder : dict or None
        The encoder of texts or images, as `Encoder.to_dict` describes it.
    table : Preparation
        Imputes, standardises and one-hot-encodes the columns.
    """

    kind: str
    id_column: str | None
    encoder: dict[str, Any] | None
    table: Preparation

    @property
    def encoder_name(self) -> str | None:
        """The name as --encoder takes it."""
        return None if self.encoder is None else f"{self.encoder['kind']}:{self.encoder['params']['model']}"

    def columns(self, items: Items) -> dict[str, Any] | None:
        """How columns are used: standardised, one-hot or left out; None for texts and images."""
        if self.kind != "features":
            return None
        return {
            "standardised": self.table.numeric,
            "one-hot": {column: list(levels) for column, levels in self.table.levels.items()},
            "left out": {**items.left_out, **self.table.left_out},
        }

    def transform(self, items: Items, name: str) -> NDArray[np.float32]:
        """Features of new items, shape (n, D); `name` is the name of their file, for messages."""
        if self.encoder is None:
            return self.table.transform(items.X, name)
        from annotmix.encoders import encoder_from_dict  # it imports torch

        return self.table.transform(numbered(encoder_from_dict(self.encoder).encode(items.X)), name)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        about = {"kind": self.kind, "id_column": self.id_column, "encoder": self.encoder}
        return {"items": about, "preparation": self.table.to_dict()}

    @classmethod
    def from_file(cls, saved: PreparationFile) -> ItemPreparation:
        """The inverse of `to_dict`."""
        about, table = saved.items, Preparation.from_file(saved.preparation)
        return cls(about.kind, about.id_column, msgspec.to_builtins(about.encoder), table)


def fit_item_preparation(
    items: Items, encoder: str | None, progress: bool
) -> tuple[ItemPreparation, NDArray[np.float32], list[str]]:
    """The preparation of items, their features, shape (N, D), and notes about the columns."""
    if items.kind == "features":
        if encoder is not None:
            raise ValueError("--encoder is for --text and --images; features are taken as they are.")
        table, notes = fit_preparation(items.X)
        return ItemPreparation(items.kind, items.id_column, None, table), table.transform(items.X), notes
    from annotmix.encoders import make_encoder  # it imports torch

    made = make_encoder(encoder or ENCODERS[items.kind], progress=progress)
    if made.kind != {"text": "text", "images": "image"}[items.kind]:
        raise ValueError(f"--encoder {encoder} does not take {items.kind}.")
    encoded = numbered(made.encode(items.X))
    table, _ = fit_preparation(encoded)
    return ItemPreparation(items.kind, items.id_column, made.to_dict(), table), table.transform(encoded), []


def numbered(features: NDArray[Any]) -> pd.DataFrame:
    """An encoder's features as a table whose columns are numbered."""
    return pd.DataFrame(features, columns=[str(n) for n in range(features.shape[1])])
