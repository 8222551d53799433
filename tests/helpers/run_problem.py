"""A small problem as files."""

from __future__ import annotations

import numpy as np
import pandas as pd

EPOCHS = 8


def write_problem(folder, n=150, seed=0):
    """Three blobs with a category and missing numbers; four annotators, one of whom always says "c"."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(scale=3, size=(3, 4))[y] + rng.normal(size=(n, 4))
    names = np.array(["a", "b", "c"])
    table = pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"])
    table.loc[::10, "x1"] = np.nan
    table["colour"] = np.where(rng.random(n) < 0.8, names[y], "red")
    table["name"] = [f"photo {i}" for i in range(n)]
    table.insert(0, "id", [f"{i:03d}" for i in range(n)])
    table.to_csv(folder / "items.csv", index=False)
    rows = []
    for m, accuracy in enumerate((0.95, 0.8, 0.5, 0.0)):
        for i in np.flatnonzero(rng.random(n) < 0.6):
            label = names[y[i]] if rng.random() < accuracy else names[rng.integers(3)]
            rows.append((f"{i:03d}", f"w{m}", "c" if m == 3 else label))
    rows += [("nowhere", "w0", "a"), ("005", "=2+3", "b"), ("006", "=2+3", "a")]
    pd.DataFrame(rows, columns=["item", "annotator", "label"]).to_csv(folder / "labels.csv", index=False)
    pd.DataFrame({"id": table["id"], "truth": names[y]}).to_csv(folder / "truth.csv", index=False)
