"""The columns of the table of datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from annotmix.datasets.rows import Raw

#: The paper's settings for tables, as keyword arguments of an estimator.
TABULAR: dict[str, Any] = {
    "backbone": "mlp",
    "hidden": (256, 128),
    "dropout": 0.0,
    "max_epochs": 50,
    "batch_size": 64,
    "lr": 1e-2,
    "weight_decay": 0.0,
}
#: For the features of a frozen encoder; in the paper DINOv2 ViT-S/14 for photos and BERT-base for texts.
ENCODED: dict[str, Any] = {**TABULAR, "hidden": (128,), "dropout": 0.5, "weight_decay": 1e-4}
#: For images of 32 × 32 pixels.
RESNET: dict[str, Any] = {
    "backbone": "resnet18",
    "augment": "crop-flip",
    "max_epochs": 100,
    "batch_size": 128,
    "lr": 1e-3,
    "weight_decay": 1e-4,
}


@dataclass(frozen=True)
class File:
    """A file or folder of a dataset, and where it comes from.

    Parameters
    ----------
    path : str
        Its place in a data folder.
    url : str, optional
        Its original address, or the address of the archive that holds it.
    checksum : str, optional
        "sha256:…" or "md5:…" of the file at `url`, checked after a download. None where no trustworthy one is
        known: then only the format is checked, when the file is read.
    inside : str, optional
        Its path in the archive at `url`.
    also : tuple of str
        Other places in a data folder where it is accepted.
    """

    path: str
    url: str | None = None
    checksum: str | None = None
    inside: str | None = None
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figures:
    """The figures of a dataset as in Table 1 of the paper; None where one is not known."""

    train: int | None = None
    valid: int | None = None
    test: int | None = None
    classes: int | None = None
    annotators: int | None = None
    labels_per_item: float | None = None
    labels_per_annotator: float | None = None
    percent_false: float | None = None


@dataclass(frozen=True)
class Simulation:
    """How the annotators of a dataset are simulated.

    Parameters
    ----------
    per_item : (int, int)
        Least and most labels of a training item.
    max_epochs : int, optional
        Maximum number of epochs of a network. None: confusion matrices in place of networks.
    a, b : (float, float)
        Ranges of the two parameters of the Beta distribution of the ratio of a class that a network sees.
    """

    per_item: tuple[int, int]
    max_epochs: int | None = None
    a: tuple[float, float] = (0.0, 1.0)
    b: tuple[float, float] = (0.5, 2.0)


def words(text: str) -> tuple[str, ...]:
    """The words of a text, for lists of names."""
    return tuple(text.split())


#: Draw `count` items for the part `into`, stratified by class, out of the part `out_of`.
Draw = tuple[str, str, int]


@dataclass(frozen=True)
class Spec:
    """A row of the table of datasets.

    Parameters
    ----------
    name, kind, description, citation, licence : str
        `kind` is the kind of an item: "tabular", "text" or "image".
    reader : callable
        Reads the files: `reader(paths, classes, **options)`, paths by the keys of `files` and `item_files`.
    settings : mapping
        The paper's settings as keyword arguments of an estimator.
    files : mapping of str to File
        Files with the labels, and with the items where these are in the same files.
    item_files : mapping of str to File
        Files that only the items need; without them labels can still be counted.
    classes : tuple, optional
        Names of the classes where the files do not hold them.
    options : mapping
        Further arguments of the reader.
    sizes : mapping of str to int
        Items that the files hold for "train", "valid" and "test", before anything is drawn.
    draws : tuple of (into, out_of, count)
        How the remaining parts are drawn, in this order.
    simulation : Simulation, optional
        Where annotators are simulated.
    paper : Figures, optional
        Figures from Table 1 of the paper.
    """

    name: str
    kind: str
    description: str
    citation: str
    licence: str
    reader: Callable[..., Raw]
    settings: Mapping[str, Any]
    files: Mapping[str, File] = field(default_factory=dict)
    item_files: Mapping[str, File] = field(default_factory=dict)
    classes: tuple[Any, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    draws: tuple[Draw, ...] = ()
    simulation: Simulation | None = None
    paper: Figures | None = None

    @property
    def needs_encoder(self) -> bool:
        """Whether there are labels only with features: the annotators are networks that learn from them."""
        simulated = self.simulation is not None and self.simulation.max_epochs is not None
        return simulated and self.kind != "tabular"

    def read(self, paths: Mapping[str, Path]) -> Raw:
        """The content of the files; items only where `paths` has their files."""
        return self.reader(paths, self.classes, **self.options)
