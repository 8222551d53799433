"""The input of an exported classifier: what it is, in words, and the encoder as a part of the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from annotmix._common.schema import read_json
from annotmix.encoders import efficientnet, encoder_from_dict, pictures
from annotmix.reading.items import image_files
from annotmix.runs.exportable import INCLUDED, INCLUDED_NAME, in_python
from annotmix.runs.prepare import ItemPreparation

FEATURES, PIXELS = "features", "pixels"


class _RunRequest(msgspec.Struct):
    """The part of a request that says where the pictures were."""

    images: str | None = None


class _RunFile(msgspec.Struct):
    """The part of `run.json` that is read again."""

    request: _RunRequest


class PictureClassifier(nn.Module):
    """Pixels, shape (n, 224, 224, 3), dtype uint8, to what a network says about the encoder's features."""

    def __init__(self, encoder: nn.Module, network: nn.Module):
        super().__init__()
        self.encoder, self.network = encoder, network

    def forward(self, pixels: Tensor) -> Tensor:
        """Encode, then classify."""
        probabilities: Tensor = self.network(self.encoder(efficientnet.scaled(pixels)))
        return probabilities


def encoder_columns(items: ItemPreparation) -> list[int] | None:
    """Positions of the encoder's numbers that the classifier uses, as constant ones are left out."""
    return None if items.encoder is None else [int(name) for name in items.table.numeric]


def load_encoder() -> nn.Module:
    """The encoder that can be included, on the CPU."""
    return efficientnet.load_network(torch.device("cpu"))


def some_pictures(run: Path, items: ItemPreparation, n: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Pixels, shape (n, 224, 224, 3), of some pictures in the folder of a run, and their features."""
    folder = Path(read_json(run / "run.json", _RunFile).request.images or ".")
    paths, squares = list[Path](), list[NDArray[np.uint8]]()
    for path in image_files(folder):
        try:
            [picture] = pictures.read_all([path], pictures.read)
        except pictures.UnreadableImageError:
            continue
        paths.append(path)
        squares.append(np.asarray(efficientnet.resized(picture)))
        if len(paths) == n:
            break
    if not paths:
        raise ValueError(
            "--with-encoder checks the file with pictures of the run, which are not where they were: "
            f"the folder {str(folder)!r} holds none that can be read."
        )
    return np.stack(squares), encoder_from_dict(items.encoder or {}).encode(paths)


def input_meaning(items: ItemPreparation, with_encoder: bool) -> str:
    """One sentence or two that say what the input of the classifier is."""
    if with_encoder:
        return (
            f"The input '{PIXELS}' is pictures in RGB, dtype uint8, shape (n, {efficientnet.SIZE}, "
            f"{efficientnet.SIZE}, 3): the central {efficientnet.CROP:.1%} square of an upright picture, "
            f"resized with bicubic interpolation. The encoder {INCLUDED} is inside."
        )
    if items.encoder is not None:
        return (
            f"The input '{FEATURES}' is the numbers per {items.encoder['kind']} that the encoder "
            f"{items.encoder_name} gives ({_pooling(items.encoder)}), in Python "
            f"{in_python(items.encoder)}. The {len(items.table.numeric)} of them that vary are selected and "
            "standardised inside."
        )
    inside = (
        f"The input '{FEATURES}' is the columns of the table: numbers as they are, nan where one is missing, "
        "as imputing and standardising happen inside."
    )
    if items.table.levels:
        inside += " A column 'name=category' is 1 where it has that category, else 0; '(other)' is any other."
    return inside


def _pooling(encoder: dict[str, Any]) -> str:
    params = encoder["params"]
    if encoder["kind"] == "image" and params["model"] == INCLUDED_NAME:
        return "the mean over the picture"
    how = "the first token" if params["pooling"] == "cls" else "the mean over the tokens"
    return f"{how} of the first {params['max_length']}" if encoder["kind"] == "text" else how
