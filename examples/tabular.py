"""Crowd labels of a table: from two CSV files to right labels, trusted annotators and the next questions.

    python examples/tabular.py FOLDER

Makes its own data: 400 flowers-like items, six annotators of different skill, one of whom never looks.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

SKILL = {"ada": 0.95, "bo": 0.85, "cem": 0.75, "dot": 0.6, "eva": 0.5, "fay": 0.0}
CLASSES = np.array(["iris", "lily", "rose"])


def make_data(folder: Path) -> None:
    """`labels.csv` (item, annotator, label), `items.csv` (features) and `truth.csv`, to judge the result."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    size = rng.normal(loc=y[:, None] * [1.0, -0.8], scale=0.9, size=(400, 2))
    items = pd.DataFrame({"item": np.arange(400), "petal": size[:, 0], "sepal": size[:, 1]})
    items["colour"] = np.where(rng.random(400) < 0.5, "white", np.array(["blue", "yellow", "red"])[y])
    items.loc[rng.random(400) < 0.05, "sepal"] = np.nan
    rows = [
        (item, annotator, CLASSES[y[item]] if rng.random() < skill else rng.choice(CLASSES))
        for annotator, skill in SKILL.items()
        for item in np.flatnonzero(rng.random(400) < 0.5)
    ]
    pd.DataFrame(rows, columns=["item", "annotator", "label"]).to_csv(folder / "labels.csv", index=False)
    items.to_csv(folder / "items.csv", index=False)
    pd.DataFrame({"item": np.arange(400), "truth": CLASSES[y]}).to_csv(folder / "truth.csv", index=False)


def annotmix(*arguments: object) -> None:
    """Run the command line."""
    print("\n$ annotmix", *arguments, flush=True)
    code = "from annotmix.cli import main; main()"
    subprocess.run([sys.executable, "-c", code, *map(str, arguments)], check=True)


def main(folder: Path) -> None:
    """Make the data, learn, judge, ask."""
    folder.mkdir(parents=True, exist_ok=True)
    make_data(folder)
    run = folder / "run"
    annotmix("fit", folder / "labels.csv", "--features", folder / "items.csv", "--out", run, "--epochs", 20)
    annotmix("evaluate", run, "--truth", folder / "truth.csv")
    annotmix("suggest", run, "--budget", 10, "--out", folder / "ask.csv")
    annotmix("predict", run, folder / "items.csv", "--out", folder / "predictions.csv")
    print(pd.read_csv(run / "annotators.csv")[["annotator", "n_labels", "accuracy", "low", "high"]].round(2))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "annotmix-tabular"))
