"""Runs of `annotmix fit` on real data, written to files as a user would have them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from annotmix.datasets.simulation import hammer, simulate, specialist
from annotmix.reading import Columns
from annotmix.runs.evaluate import evaluate
from annotmix.runs.fit import fit
from annotmix.runs.request import Request

EPOCHS = 3
LABELME = ["highway", "insidecity", "tallbuilding", "street", "forest", "coast", "mountain", "opencountry"]


def mgc(data: Path, folder: Path) -> Path:
    """Songs: labels of a crowd, features in a table, and the true genres to check the run with."""
    said = pd.read_csv(_file(data, "mgc/music_genre_mturk.csv"))
    songs = pd.read_csv(_file(data, "mgc/music_genre_gold.csv"))
    said[["id", "annotator", "class"]].to_csv(folder / "labels.csv", index=False)
    songs.drop(columns="class").to_csv(folder / "songs.csv", index=False)
    songs[["id", "class"]].to_csv(folder / "truth.csv", index=False)
    _fit(Request((folder / "labels.csv",), folder / "run", features=folder / "songs.csv", epochs=EPOCHS))
    evaluate(folder / "run", folder / "truth.csv", Columns())
    return folder / "run"


def labelme(data: Path, folder: Path, n: int = 40) -> Path:
    """Photographs of the first items, in a folder, with a crowd's labels in a table."""
    names = _file(data, "labelme/filenames_train.txt").read_text().split()[:n]
    codes = np.loadtxt(_file(data, "labelme/answers.txt"), dtype=int, max_rows=n)
    (folder / "photos").mkdir()
    for name in names:
        shutil.copy(_file(data, f"labelme/train/{name.partition('_')[0]}/{name}"), folder / "photos")
    item, annotator = np.nonzero(codes >= 0)
    label = np.array(LABELME)[codes[item, annotator]]
    table = pd.DataFrame({"item": np.array(names)[item], "annotator": annotator, "label": label})
    table.to_csv(folder / "labels.csv", index=False)
    _fit(Request((folder / "labels.csv",), folder / "run", images=folder / "photos", epochs=EPOCHS))
    return folder / "run"


def trec6(data: Path, folder: Path, n: int = 150) -> Path:
    """Questions as texts, labelled by simulated annotators."""
    lines = _file(data, "trec6/train_5500.label").read_text("latin-1").splitlines()[:n]
    kinds, texts = zip(*((line.split(":")[0], line.split(" ", 1)[1]) for line in lines), strict=True)
    classes, y = np.unique(kinds, return_inverse=True)
    crowd = {f"reader {m}": hammer(len(classes), chance) for m, chance in enumerate((0.9, 0.85, 0.7, 0.5))}
    crowd["knows people"] = specialist(len(classes), [int(np.flatnonzero(classes == "HUM")[0])])
    labels = simulate(y, crowd, classes=classes, random_state=0).to_long()
    labels.to_csv(folder / "labels.csv", index=False)
    pd.DataFrame({"item": range(n), "question": texts}).to_csv(folder / "questions.csv", index=False)
    _fit(
        Request(
            (folder / "labels.csv",),
            folder / "run",
            text=folder / "questions.csv",
            text_column="question",
            epochs=EPOCHS,
        )
    )
    return folder / "run"


def _file(data: Path, name: str) -> Path:
    if not (data / name).is_file():
        pytest.skip(f"needs real data: {str(data / name)!r} is absent")
    return data / name


def _fit(request: Request) -> None:
    fit(request, lambda line: None, progress=False)
