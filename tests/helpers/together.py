"""Trainings that `test_processes` does alone, and torchrun in two processes, as a script."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import annotmix
from annotmix._common import progress
from annotmix._common.progress import Progress
from annotmix.networks import features

SHARED = {"hidden": (16, 8), "dropout": 0.25, "max_epochs": 2, "batch_size": 49, "random_state": 0}


class Photos(nn.Sequential):
    """A backbone from outside, with PyTorch's own layers that go over rows or draw, and an unused weight."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 6, 3, padding=1),
            nn.BatchNorm2d(6, momentum=None),
            nn.ReLU(),
            nn.Dropout2d(0.3),
            nn.Flatten(),
        )
        self.unused = nn.Parameter(torch.ones(3))


def problem(n=99, seed=0):
    """Three blobs, ten annotators, one to three labels an item; the shares of two processes are unequal."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = (2.5 * np.eye(3, 9)[y] + rng.normal(size=(n, 9))).astype(np.float32)
    Z = np.where(rng.random((n, 10)) < 0.8, y[:, None], (y[:, None] + rng.integers(1, 3, size=(n, 10))) % 3)
    keep = np.argsort(rng.random((n, 10)), axis=1) < rng.integers(1, 4, size=(n, 1))
    return X, np.where(keep, Z, -1), y


def fit(kind, **params):
    """The classifier of an approach, of a backbone from outside ("photos"), or in half precision ("bf16")."""
    X, Z, y = problem()
    own = {"photos": {"backbone": Photos()}, "bf16": {"precision": "bf16-mixed"}}.get(kind, {})
    name = "annot-mix" if own else kind
    if kind == "photos":
        X = X.reshape(-1, 1, 3, 3)
    clf = annotmix.make_classifier(name, **(SHARED | own | params))
    return clf.fit(X, y if name == "true-base" else Z, validation=(X, y))


def accuracy(name, **params):
    """Accuracy on new items after a training that is long enough to learn something."""
    X, Z, y = problem(700)
    clf = annotmix.make_classifier(
        name,
        **{"hidden": (32, 16), "dropout": 0.0, "max_epochs": 12, "batch_size": 32, "random_state": 0},
        **params,
        progress=False,
    )
    return clf.fit(X[:300], Z[:300]).score(X[300:], y[300:])


def kinds():
    return [*annotmix.list_approaches(), "photos", "bf16"]


def facts(clf):
    """Losses, scores, and a digest of all weights."""
    digest = hashlib.sha256()
    for tensor in clf.module_.state_dict().values():
        digest.update(tensor.contiguous().numpy().tobytes())
    history = clf.history_
    return {
        "loss": history["loss"].tolist(),
        "valid": history["valid/clf-acc"].tolist(),
        "weights": digest.hexdigest(),
    }


def main(folder: Path) -> None:
    """Everything once; then the second process is killed in the middle of a training."""
    rank = int(os.environ["RANK"])
    progress.PATIENCE = progress.LINE_EVERY = 0.0
    found = {}
    for kind in kinds():
        torch.manual_seed(rank)  # the first process gives a backbone from outside its weights
        found[kind] = facts(fit(kind))
    found["accuracy"] = {name: accuracy(name) for name in ("annot-mix", "annot-mix-plus")}

    features.ROW_BUDGET = 100  # several pieces, which the processes share
    params = {"max_epochs": 5, "checkpoint_every": 1, "progress": False}
    found["whole"] = facts(fit("annot-mix-plus", **params))
    with contextlib.suppress(KeyboardInterrupt), after(3, _interrupt):
        fit("annot-mix-plus", checkpoint=folder / "stopped", **params)
    found["stopped"] = facts(fit("annot-mix-plus", checkpoint=folder / "stopped", **params))
    (folder / f"{rank}.json").write_text(json.dumps(found))

    with after(3, _die if rank == 1 else lambda: None):
        fit("annot-mix", checkpoint=folder / "killed", **params)


@contextlib.contextmanager
def after(epochs, act):
    """Act after so many epochs of a training."""
    advance = Progress.advance

    def acting(self, note="", steps=1):
        advance(self, note, steps)
        if self.done == epochs and self._outside is None:
            act()

    Progress.advance = acting
    try:
        yield
    finally:
        Progress.advance = advance


def _interrupt():
    raise KeyboardInterrupt


def _die():
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
