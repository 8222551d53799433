"""The data of the accuracy benchmarks: those datasets of the package whose instances are features."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from annotmix.datasets import load_dataset


def data_folder(given: str | None) -> Path:
    folder = given or os.environ.get("ANNOTMIX_DATA")
    if not folder:
        raise SystemExit("Where are the data? Pass --data FOLDER or set ANNOTMIX_DATA.")
    return Path(folder)


LOADERS = {
    "mgc": partial(load_dataset, "mgc"),
    "labelme": partial(load_dataset, "labelme-vgg16"),  # the paper has DINOv2 features
}
