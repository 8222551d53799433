"""Reading of users' files as labels and items; notes say how they were understood.

The names are imported when they are first used: the command line lists `FORMATS` without loading pandas.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from annotmix.reading.formats import FORMATS, Columns, Format, LabelRows

if TYPE_CHECKING:
    from annotmix.reading.annotator_table import AnnotatorTable, read_annotators
    from annotmix.reading.items import Items, read_features, read_images, read_texts
    from annotmix.reading.label_files import LabelData, read_labels, read_truth

_HOMES = {
    "annotator_table": ("AnnotatorTable", "read_annotators"),
    "items": ("Items", "read_features", "read_images", "read_texts"),
    "label_files": ("LabelData", "read_labels", "read_truth"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "FORMATS",
    "AnnotatorTable",
    "Columns",
    "Format",
    "Items",
    "LabelData",
    "LabelRows",
    "read_annotators",
    "read_features",
    "read_images",
    "read_labels",
    "read_texts",
    "read_truth",
]
