"""The paper's data for the accuracy benchmarks, read from their original files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from annotmix import Annotations


class Dataset(NamedTuple):
    """Standardised features, labels, true classes, and the settings of the paper for them."""

    X: np.ndarray
    labels: Annotations
    y: np.ndarray
    X_valid: np.ndarray
    y_valid: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    settings: dict


def data_folder(given: str | None) -> Path:
    folder = given or os.environ.get("ANNOTMIX_DATA")
    if not folder:
        raise SystemExit("Where are the data? Pass --data FOLDER or set ANNOTMIX_DATA.")
    return Path(folder)


def load_mgc(folder: Path) -> Dataset:
    folder = folder / "mgc"
    given = pd.read_csv(folder / "music_genre_mturk.csv")
    gold = pd.read_csv(folder / "music_genre_gold.csv").set_index("id")
    other = pd.read_csv(folder / "music_genre_test.csv")
    features = [c for c in gold.columns if c.startswith("feature")]
    labels = Annotations.from_long(given, task="id", worker="annotator", label="class", items=gold.index)
    held_out = train_test_split(
        other[features].to_numpy(),
        other["class"].to_numpy(),
        train_size=100,
        random_state=0,
        stratify=other["class"],
    )
    X_valid, X_test, y_valid, y_test = held_out
    scaler = StandardScaler().fit(gold[features].to_numpy())
    return Dataset(
        scaler.transform(gold[features].to_numpy()).astype(np.float32),
        labels,
        gold["class"].to_numpy(),
        scaler.transform(X_valid).astype(np.float32),
        y_valid,
        scaler.transform(X_test).astype(np.float32),
        y_test,
        {
            "hidden": (256, 128),
            "dropout": 0.5,
            "max_epochs": 50,
            "batch_size": 64,
            "lr": 1e-2,
            "weight_decay": 0.0,
        },
    )


def load_labelme(folder: Path) -> Dataset:
    """LabelMe with pooled VGG-16 features (the paper uses DINOv2)."""
    folder = folder / "labelme"
    X, X_valid, X_test = (np.load(folder / f"vgg16_avg_{part}.npy") for part in ("train", "valid", "test"))
    y, y_valid, y_test = (
        np.loadtxt(folder / f"labels_{part}.txt", dtype=int) for part in ("train", "valid", "test")
    )
    answers = np.loadtxt(folder / "answers.txt", dtype=int)
    answers = answers[:, (answers >= 0).any(axis=0)]
    scaler = StandardScaler().fit(X)
    return Dataset(
        scaler.transform(X).astype(np.float32),
        Annotations.from_matrix(answers),
        y,
        scaler.transform(X_valid).astype(np.float32),
        y_valid,
        scaler.transform(X_test).astype(np.float32),
        y_test,
        {
            "hidden": (128,),
            "dropout": 0.5,
            "max_epochs": 50,
            "batch_size": 64,
            "lr": 1e-2,
            "weight_decay": 1e-4,
        },
    )


LOADERS = {"mgc": load_mgc, "labelme": load_labelme}
