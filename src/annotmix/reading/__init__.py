"""Files that people have, as labels and instances; what was understood comes with them."""

from __future__ import annotations

from annotmix.reading.availability import read_availability
from annotmix.reading.forms import Columns, Labelled
from annotmix.reading.instances import Instances, read_features, read_images, read_texts
from annotmix.reading.labels import FORMS, read_labels, read_truth

__all__ = [
    "FORMS",
    "Columns",
    "Instances",
    "Labelled",
    "read_availability",
    "read_features",
    "read_images",
    "read_labels",
    "read_texts",
    "read_truth",
]
