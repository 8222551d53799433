"""What several test files share: the folder with real data, a small noisy problem, and a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

torch.set_num_threads(1)

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with real data: ANNOTMIX_DATA, else the one shared beside the repository."""
    named = os.environ.get("ANNOTMIX_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs real data: {str(folder)!r} is not a folder; set ANNOTMIX_DATA to one")
    return folder


@pytest.fixture(scope="session")
def data_file(data_dir: Path) -> Callable[[str], Path]:
    """Finds a file of the real data by its path there; the test is skipped where it is absent."""

    def find(name: str) -> Path:
        if not (data_dir / name).is_file():
            pytest.skip(f"needs real data: {str(data_dir / name)!r} is absent")
        return data_dir / name

    return find


class Noisy(NamedTuple):
    """300 instances of three blobs, labelled by five annotators of different skill."""

    X: NDArray[np.float32]  # (300, 5)
    Z: NDArray[np.int64]  # (300, 5), -1 where a label is missing
    y: NDArray[np.int64]  # (300,), the true classes


@pytest.fixture
def noisy() -> Noisy:
    """Accuracies .95, .8, .6, 1/3 (a spammer), and one who always says class 0; 60 % of labels missing."""
    rng = np.random.default_rng(0)
    n, n_features, n_classes = 300, 5, 3
    y = rng.integers(n_classes, size=n)
    X = (rng.normal(scale=3, size=(n_classes, n_features))[y] + rng.normal(size=(n, n_features))).astype(
        np.float32
    )
    columns: list[NDArray[Any]] = []
    for accuracy in (0.95, 0.8, 0.6, 1 / 3):
        wrong = (y + rng.integers(1, n_classes, size=n)) % n_classes
        columns.append(np.where(rng.random(n) < accuracy, y, wrong))
    columns.append(np.zeros(n, dtype=np.int64))
    Z = np.stack(columns, axis=1)
    Z[rng.random(Z.shape) < 0.6] = -1
    return Noisy(X, Z, y)


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("needs chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    from helpers.browser import Browser

    browser = Browser(chromium, driver, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.quit()


@pytest.fixture
def browser(_chromium):
    """The browser of the session, light and wide; what it complained about is an error."""
    _chromium.start()
    yield _chromium
    assert _chromium.complaints() == []
    assert _chromium.requests() == []
