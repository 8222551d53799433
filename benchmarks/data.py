"""The data of the accuracy benchmarks, as features."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from sklearn.preprocessing import StandardScaler

from annotmix.datasets import Dataset, load_dataset
from annotmix.encoders import make_encoder


def data_folder(given: str | None) -> Path:
    folder = given or os.environ.get("ANNOTMIX_DATA")
    if not folder:
        raise SystemExit("Where are the data? Pass --data FOLDER or set ANNOTMIX_DATA.")
    return Path(folder)


def encoded(name: str, encoder: str, folder: Path) -> Dataset:
    """A dataset of texts or photographs as standardised features of a frozen encoder."""
    encode = make_encoder(encoder)
    data = load_dataset(name, folder, encoder=encode)
    scaler = StandardScaler().fit(encode.encode(data.X))
    X, X_valid, X_test = (
        scaler.transform(encode.encode(part)).astype("float32")
        for part in (data.X, data.X_valid, data.X_test)
    )
    return replace(data, X=X, X_valid=X_valid, X_test=X_test)


#: By the name on the command line. Annotators are simulated as designed, but for letter, whose published ones
#: err about as often as those of the paper.
LOADERS = {
    "mgc": partial(load_dataset, "mgc"),
    "labelme": partial(load_dataset, "labelme-vgg16"),  # the paper has DINOv2 features
    "labelme-efficientnet": partial(encoded, "labelme", "image:efficientnet-lite0"),
    "letter": partial(load_dataset, "letter", published=True),
    "letter-designed": partial(load_dataset, "letter"),
    "trec6-minilm": partial(encoded, "trec6", "text:minilm"),  # the paper has BERT features
}
