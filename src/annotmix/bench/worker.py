"""One run, as a worker does it: a configuration goes in, its scores come out. Nothing is written here."""

from __future__ import annotations

import importlib
import os
import platform
import resource
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import annotmix
from annotmix.bench import study_data
from annotmix.datasets import DatasetMissingError

#: Runs share torch's random generator with their process: one at a time, however many threads a worker has.
_ONE_AT_A_TIME = threading.Lock()


def prepare(source: Mapping[str, Any], data_dir: str | None) -> dict[str, Any]:
    """Load a dataset, which also fills the caches of features and of simulated annotators.

    Returns
    -------
    dict
        `facts`; or `absent`, the reason why the dataset is not available; or `error`, a traceback.
    """
    with _ONE_AT_A_TIME:
        _one_thread()
        try:
            return {"facts": study_data.facts(study_data.load(source, data_dir))}
        except DatasetMissingError as error:
            missing = str(error).partition(" It comes from ")[0].partition(" It has no public home")[0]
            return {"absent": f"{missing} See `annotmix datasets {source['name']}`."}
        except (FileNotFoundError, ImportError) as error:  # of an encoder
            return {"absent": " ".join(str(error).split())}
        except Exception:
            return {"error": traceback.format_exc(), "environment": environment()}


def execute(
    configuration: Mapping[str, Any], data_dir: str | None, history: bool, modules: Sequence[str] = ()
) -> dict[str, Any]:
    """Train and score; an exception is returned as `error`, a traceback.

    Parameters
    ----------
    configuration : mapping
        See `Run.configuration`.
    data_dir : str, optional
    history : bool
        Score test and training set after every epoch.
    modules : sequence of str
        To import first: they register approaches.

    Returns
    -------
    dict
        `environment`, and either `error` or `scores` (by "last" and "best", then by name), `history` (one
        dict per epoch), `best_epoch`, `fit_seconds`, `evaluate_seconds`, `peak_mb`.
    """
    with _ONE_AT_A_TIME:
        _one_thread()
        try:
            for module in modules:
                importlib.import_module(module)
            result = _train_and_score(configuration, data_dir, history)
        except Exception:
            result = {"error": traceback.format_exc()}
        return {**result, "environment": environment()}


def _train_and_score(configuration: Mapping[str, Any], data_dir: str | None, history: bool) -> dict[str, Any]:
    data = study_data.load(configuration["dataset"], data_dir)
    name = configuration["approach"]
    parameters = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in configuration["parameters"].items()
    }
    clf = annotmix.make_classifier(name, **parameters, random_state=configuration["seed"], progress=False)
    knows_annotators = annotmix.get_approach(name).perf is not None
    labels, test_labels = (data.labels, data.test_labels) if knows_annotators else (None, None)
    sets: dict[str, tuple[Any, ...]] = {
        "test": (data.X_test, data.y_test, test_labels),
        "valid": (data.X_valid, data.y_valid),
        "train": (data.X, data.y, labels),
    }
    monitor = {key: sets[key] for key in ("test", "train")} if history else None
    started = time.perf_counter()
    clf.fit(data.X, data.y if name == "true-base" else data.labels, validation=sets["valid"], monitor=monitor)
    fitted = time.perf_counter()
    scores: dict[str, dict[str, float]] = {}
    for epoch in ("last", "best"):
        clf.use(epoch)
        scores[epoch] = {
            f"{part}/{score}": value for part, s in sets.items() for score, value in clf.evaluate(*s).items()
        }
        if name != "true-base":  # which has no labels of annotators
            consensus = clf.consensus(data.X, data.labels)["label"].to_numpy()
            scores[epoch]["train/consensus-acc"] = float((consensus == data.y).mean())
    return {
        "scores": scores,
        "history": clf.history_.reset_index().to_dict("records"),
        "best_epoch": clf.best_epoch_,
        "fit_seconds": fitted - started,
        "evaluate_seconds": time.perf_counter() - fitted,
        "peak_mb": _peak_mb(),
    }


def environment() -> dict[str, Any]:
    """Versions of code and libraries, and the kind of machine; neither its name nor its paths."""
    import numpy
    import torch

    return {
        "version": annotmix.__version__,
        **code(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
    }


@cache
def code() -> dict[str, Any]:
    """The commit of the checkout that the package runs from, and whether its files differ from it.

    Looked up once per process. Both None where the package is not in a checkout of its own.
    """
    folder = Path(annotmix.__file__).parent
    if _git(folder, "ls-files", "__init__.py") != "__init__.py":
        return {"commit": None, "dirty": None}
    return {
        "commit": _git(folder, "rev-parse", "HEAD"),
        "dirty": bool(_git(folder, "status", "--porcelain", ".")),
    }


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _peak_mb() -> float:
    """The most memory that this process ever held, also in runs before this one."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
