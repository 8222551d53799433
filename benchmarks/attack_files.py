"""Campaigns with damaged files: pickles of others, the files of a run, label files."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from attack_mutations import (
    cifar_batch,
    crafted_pickles,
    mutate_bytes,
    mutate_json,
    safetensors,
    torch_file,
    zip_bomb,
)
from attack_tools import Trials, fitted, in_children, unclear, write_problem

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))


def clear_command(*arguments: Any, codes: tuple[int, ...] = (0, 1)) -> tuple[str, str]:
    """A command in this process: a failure to tell, and what it printed."""
    from typer.testing import CliRunner

    from annotmix.cli import app

    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{type(result.exception).__name__}: {result.exception}", result.stdout
    return unclear(result.exit_code, result.stderr, *codes), result.stdout


# ---------------------------------------------------------------- pickles


def pickles(trials: Trials) -> None:
    """Read mutated and crafted CIFAR and PyTorch files; only the reader's own error is clear."""
    in_children(trials, _pickle)


def _pickle(number: int, folder: Path) -> str:
    from annotmix.datasets.cifar import read_images, read_torch
    from annotmix.datasets.rows import DatasetFileError

    crafted = crafted_pickles()
    rng = np.random.default_rng([number, 1])
    images, labels = cifar_batch(), torch_file()
    if number < len(crafted):
        images, labels = crafted[number], torch_file(crafted[number])
    elif number == len(crafted):
        labels = zip_bomb()
    else:
        images, labels = mutate_bytes(rng, images), mutate_bytes(rng, labels)
        if rng.random() < 0.5:
            small = [own for own in crafted if len(own) < 1000]
            labels = torch_file(mutate_bytes(rng, small[rng.integers(len(small))]))
    for name, data in (("images", images), ("labels.pt", labels)):
        (folder / name).write_bytes(data)
    for read in (lambda: read_images(folder, ["images"], 10), lambda: read_torch(folder / "labels.pt")):
        try:
            result = read()
        except DatasetFileError as error:
            if len(str(error)) > 2000 or "\n" in str(error):
                return f"trial {number}: no line: {str(error)[:100]}"
            if out_of_memory(error):
                return f"trial {number}: it took all memory before it was refused"
        else:
            parts = result.values() if isinstance(result, dict) else result
            arrays = [part for part in parts if isinstance(part, np.ndarray)]
            if any(array.dtype.kind not in "biuf" for array in arrays):
                return f"trial {number}: an array of {[str(array.dtype) for array in arrays]}"
    return ""


def out_of_memory(error: BaseException | None) -> bool:
    """Whether an error came of a MemoryError."""
    while error is not None and not isinstance(error, MemoryError):
        error = error.__context__
    return error is not None


# ---------------------------------------------------------------- the files of a run


def runs(trials: Trials) -> None:
    """Use a run of which one file was changed: of a network, of logistic regression, and of boosted trees."""
    write_problem(trials.folder)
    kinds = ("network", "logistic", "boosting")
    whole = [str(fitted(trials.folder / kind, "--model", kind)) for kind in kinds]
    in_children(trials, _changed_run, whole, str(trials.folder))


def _changed_run(number: int, folder: Path, whole: list[str], problem: str) -> str:
    rng = np.random.default_rng([number, 2])
    run = whole[number % len(whole)]
    names = [path.relative_to(run) for path in sorted(Path(run).rglob("*")) if path.suffix in _CHANGED]
    target, name = folder / "run", names[rng.integers(len(names))]
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(run, target)
    what, structural = _CHANGED[name.suffix](rng, target, name)
    if run not in _PREDICTED:
        _PREDICTED[run] = clear_command("predict", run, f"{problem}/items.csv")[1]
    expected = _PREDICTED[run]
    for words in _USES.get(name.name, _USES["run.json"]):
        failure, printed = clear_command(words[0], target, *(word.format(problem) for word in words[1:]))
        if failure:
            return f"trial {number}, {name}, {what}, {words[0]}: {failure}"
        if words[0] == "predict" and structural and printed.strip() and printed != expected:
            return f"trial {number}, {name}, {what}: other predictions without a word"
    return ""


#: What is predicted with the run as it was, once per process.
_PREDICTED: dict[str, str] = {}
_USES = {
    "preparation.json": [("predict", "{}/items.csv")],
    "model.json": [("predict", "{}/items.csv"), ("suggest",)],
    "findings.json": [("report",), ("evaluate", "--truth", "{}/truth.csv")],
    "confusion.npy": [("report",)],
    "features.npy": [("export", "--onnx", "classifier.onnx")],
    "run.json": [("predict", "{}/items.csv"), ("report",), ("suggest",)],
}


def _change_json(rng: np.random.Generator, target: Path, name: Path) -> tuple[str, bool]:
    path = target / name
    if rng.random() < 0.1:
        path.write_bytes(mutate_bytes(rng, path.read_bytes()))
        return "bytes changed", False
    value, structural, what = mutate_json(rng, json.loads(path.read_text("utf-8")))
    path.write_text(json.dumps(value), "utf-8", "surrogatepass")
    return what, structural


def _change_array(rng: np.random.Generator, target: Path, name: Path) -> tuple[str, bool]:
    path = target / name
    path.write_bytes(mutate_bytes(rng, path.read_bytes()))
    return "bytes changed", False


def _change_weights(rng: np.random.Generator, target: Path, name: Path) -> tuple[str, bool]:
    """Change the header or the bytes of the weights, and let the checksum agree."""
    data = (target / name).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, what = json.loads(data[8 : 8 + size]), "bytes changed"
    if rng.random() < 0.7:
        header, _, what = mutate_json(rng, header)
        data = safetensors(header, data[8 + size :])
    else:
        data = mutate_bytes(rng, data)
    replace_weights(target / "model", data)
    return what, False


def replace_weights(model: Path, data: bytes) -> None:
    """Give a saved model other weights with the right checksum."""
    import hashlib

    saved = json.loads((model / "model.json").read_text("utf-8"))
    (model / saved["weights"]).write_bytes(data)
    saved["sha256"] = hashlib.sha256(data).hexdigest()
    (model / "model.json").write_text(json.dumps(saved), "utf-8")


_CHANGED: dict[str, Callable[..., tuple[str, bool]]] = {
    ".json": _change_json,
    ".npy": _change_array,
    ".safetensors": _change_weights,
}


# ---------------------------------------------------------------- label files


def labels(trials: Trials) -> None:
    """Read mutated label files of every format; only a ValueError is clear."""
    write_problem(trials.folder)
    in_children(trials, _labels, str(trials.folder))


def _labels(number: int, folder: Path, problem: str) -> str:
    from helpers.exports import DOCCANO, LABEL_STUDIO, PRODIGY, lines

    from annotmix.reading import read_labels
    from annotmix.reading.formats import FORMATS

    rng = np.random.default_rng([number, 3])
    table = pd.read_csv(f"{problem}/labels.csv")
    wide = table.pivot(index="item", columns="annotator", values="label").reset_index()
    kinds: dict[str, Callable[[], bytes]] = {
        "long.csv": lambda: table.to_csv(index=False).encode(),
        "long.tsv": lambda: table.to_csv(index=False, sep="\t").encode("utf-16"),
        "long.jsonl": lambda: table.to_json(orient="records", lines=True).encode(),
        "long.parquet": lambda: table.to_parquet(),
        "wide.csv": lambda: wide.to_csv(index=False).encode("cp1252"),
        "studio.json": lambda: json.dumps(mutate_json(rng, LABEL_STUDIO)[0]).encode("utf-8", "surrogatepass"),
        "anna.jsonl": lambda: lines(mutate_json(rng, r)[0] for r in DOCCANO["anna"]).encode(
            "utf-8", "surrogatepass"
        ),
        "answers.jsonl": lambda: lines(mutate_json(rng, r)[0] for r in PRODIGY).encode(
            "utf-8", "surrogatepass"
        ),
    }
    name = list(kinds)[rng.integers(len(kinds))]
    data = kinds[name]()
    (folder / name).write_bytes(mutate_bytes(rng, data) if "." in name and rng.random() < 0.8 else data)
    form = None if rng.random() < 0.7 else list(FORMATS)[rng.integers(len(FORMATS))]
    try:
        read_labels([folder / name], form)
    except ValueError as error:
        if not str(error) or len(str(error)) > 5000:
            return f"trial {number}, {name}: no clear line: {str(error)[:100]}"
    return ""
