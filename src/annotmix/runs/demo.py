"""The demonstration: a run on handwritten digits that simulated annotators have labelled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.files import write_text
from annotmix.datasets.simulation import confuser, hammer, simulate, spammer, specialist, thin
from annotmix.reading import Columns
from annotmix.runs.evaluate import evaluate
from annotmix.runs.findings import Findings, Preview
from annotmix.runs.fit import fit
from annotmix.runs.folder import RunFolder
from annotmix.runs.inputs import Say
from annotmix.runs.previews import as_jpeg
from annotmix.runs.request import EPOCHS, Request
from annotmix.runs.summary import summary_lines

N_ITEMS = 1000
N_CLASSES = 10
#: Pixels of a digit in the report; there are 8 × 8 in the data.
SIDE = 64

#: Confusion matrix and load (labels, relative to the others) of every annotator.
CROWD = {
    "expert": (hammer(N_CLASSES, 0.97), 2),
    "good-1": (hammer(N_CLASSES, 0.85), 4),
    "good-2": (hammer(N_CLASSES, 0.8), 3),
    "mediocre-1": (hammer(N_CLASSES, 0.6), 4),
    "mediocre-2": (hammer(N_CLASSES, 0.5), 3),
    "knows-0-to-4": (specialist(N_CLASSES, range(5), 0.95, 0.2), 3),
    "knows-5-to-9": (specialist(N_CLASSES, range(5, 10), 0.95, 0.2), 3),
    "swaps-pairs": (confuser(N_CLASSES, [(3, 8), (4, 9), (1, 7)], 0.7), 3),
    "spammer-1": (spammer(N_CLASSES), 3),
    "spammer-2": (spammer(N_CLASSES), 2),
    "always-says-1": (spammer(N_CLASSES, always=1), 1),
    "contrarian": (hammer(N_CLASSES, 0.04), 2),
}


def run_demo(out: Path, say: Say, seed: int = 0, epochs: int = EPOCHS, progress: bool = True) -> Findings:
    """Write the files of a crowd that labels digits into `out`, run `fit` on them, and check it.

    Parameters
    ----------
    out : Path
        Folder for `labels.csv`, `features.csv`, `truth.csv` and the run, `run`.
    say : callable
        Called with every line of output.
    seed : int, default=0
    epochs : int, default=50
    progress : bool, default=True
        Show progress bars.
    """
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {str(out)!r} is a file, expected a folder.")
    X, y = digits()
    names = [f"digit-{n:04}" for n in range(len(y))]
    _write_files(out, X, y, names, seed)
    request = Request(
        (out / "labels.csv",), out / "run", features=out / "features.csv", seed=seed, epochs=epochs,
        overwrite=True,
    )  # fmt: skip
    check = f"annotmix evaluate {request.out} --truth {out / 'truth.csv'}"
    say(f"$ {request.command('--overwrite')}")
    fit(request, say, progress, pictures(X, names))
    say(f"$ {check}")
    findings = evaluate(request.out, out / "truth.csv", Columns())
    for line in summary_lines(findings, request.out):
        say(line)
    report = request.out / "report.html"
    say(f"Report: {report}  ({report.resolve().as_uri()})")
    return findings


def digits() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Grey values from 0 to 16, shape (N, 64), and classes, shape (N,), of scikit-learn's first digits."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X[:N_ITEMS].astype(np.int64), y[:N_ITEMS]


def pictures(X: NDArray[np.int64], names: list[str]) -> dict[str, Preview]:
    """Small pictures of the digits, dark on light; none without pillow."""
    try:
        from PIL import Image
    except ImportError:
        return {}
    grey = (255 * (1 - X / 16)).astype(np.uint8).reshape(-1, 8, 8)
    large = (Image.fromarray(one).resize((SIDE, SIDE), Image.Resampling.BICUBIC) for one in grey)
    return {name: Preview("", as_jpeg(image)) for name, image in zip(names, large, strict=True)}


def _write_files(out: Path, X: NDArray[np.int64], y: NDArray[np.int64], names: list[str], seed: int) -> None:
    """The files that a user of `annotmix fit` has."""
    rng = np.random.default_rng(seed)
    matrices, loads = {name: m for name, (m, _) in CROWD.items()}, [load for _, load in CROWD.values()]
    labels = thin(simulate(y, matrices, random_state=rng), (3, 4), loads=loads, random_state=rng).to_long()
    labels["item"] = np.array(names)[labels["item"]]
    features = pd.DataFrame(X, columns=[f"pixel-{row}-{column}" for row in range(8) for column in range(8)])
    features.insert(0, "item", names)
    truth = pd.DataFrame({"item": names, "truth": y})
    for name, table in {"labels.csv": labels, "features.csv": features, "truth.csv": truth}.items():
        _write_own(out, name, table.to_csv(index=False, lineterminator="\n"))


def _write_own(out: Path, name: str, text: str) -> None:
    """Write a file of the demonstration, but not over another of the same name."""
    path = out / name
    if path.exists() and not RunFolder(out / "run").complete and path.read_text("utf-8") != text:
        raise ValueError(f"{str(out)!r} holds another {name}; choose a new folder with --out.")
    write_text(path, text)
