"""The classifier of a run alone, as ONNX, checked against the original."""

from __future__ import annotations

import io
import logging
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

import annotmix
from annotmix._common.files import write_bytes, write_json
from annotmix._common.optional import require
from annotmix.estimators.crowd import CrowdClassifier
from annotmix.estimators.preparation import LIMIT, Preparation
from annotmix.runs.folder import RunFolder
from annotmix.runs.prepare import ItemPreparation

INPUT, OUTPUT = "features", "probabilities"
#: Largest accepted difference of a probability from the original.
TOLERANCE = 1e-5
SAMPLE = 256


class Exported(nn.Module):
    """Features before imputation and standardisation, shape (n, d), to probabilities, shape (n, C)."""

    median: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(self, classifier: Any, preparation: Preparation):
        super().__init__()
        self.classifier = classifier
        extra = np.zeros(
            len(preparation.feature_names) - len(preparation.numeric)
        )  # one-hot columns stay as they are
        values = {"median": extra, "mean": extra, "scale": extra + 1}
        for name, rest in values.items():
            whole = np.concatenate([getattr(preparation, name), rest])
            self.register_buffer(name, torch.tensor(whole, dtype=torch.float32))

    def forward(self, features: Tensor) -> Tensor:
        """Impute, standardise, classify."""
        known = torch.where(torch.isnan(features), self.median, features)
        x = torch.clamp((known - self.mean) / self.scale, -LIMIT, LIMIT)
        return torch.exp(self.classifier.log_proba(self.classifier.features(x)))


def export_onnx(run: Path, path: Path) -> dict[str, Any]:
    """Write the classifier of a run as ONNX, and beside it a JSON file that describes its input.

    Parameters
    ----------
    run : Path
    path : Path
        The ONNX file; the JSON file has its name and ".json".

    Returns
    -------
    dict
        The content of the JSON file, with the largest difference from the original on a sample of items.
    """
    runtime = require("onnxruntime", "onnx", "Exporting")
    require("onnxscript", "onnx", "Exporting")
    items, model, features = RunFolder(run).read("preparation", "model", "features")
    if isinstance(model, CrowdClassifier):
        raise ValueError(f"{str(run)!r} holds no network: only runs with --model network can be exported.")
    preparation = items.table
    network = Exported(model.module_.classifier.cpu(), preparation).eval()
    X = features[:SAMPLE]
    raw = _raw(X, preparation)
    data = _export(network, torch.from_numpy(raw[:2].repeat(2, axis=0)))
    difference = _largest_difference(runtime, data, raw, model.predict_proba(X))
    if not difference <= TOLERANCE:
        raise ValueError(
            f"The exported classifier differs from the original by {difference:g}; nothing was written."
        )
    facts = {
        "annotmix": annotmix.__version__,
        "input": {"name": INPUT, "dtype": "float32", "shape": ["n", len(preparation.feature_names)]},
        "output": {"name": OUTPUT, "dtype": "float32", "shape": ["n", len(model.classes_)]},
        "classes": [str(name) for name in model.classes_],
        "columns": preparation.feature_names,
        "items": items.to_dict()["items"],
        "preparation": _how(items),
        "checked": {"items": len(raw), "largest difference": difference},
    }
    write_bytes(path, data)
    write_json(path.with_name(path.name + ".json"), facts)
    return facts


def _raw(X: Any, preparation: Preparation) -> Any:
    """Prepared features as they were before they were standardised."""
    raw = X.astype(np.float64)
    n = len(preparation.numeric)
    raw[:, :n] = raw[:, :n] * preparation.scale + preparation.mean
    return raw.astype(np.float32)


def _export(network: nn.Module, sample: Tensor) -> bytes:
    """The network as ONNX with any number of rows, in one piece."""
    quiet = logging.getLogger("torch.onnx")
    level, buffer = quiet.level, io.BytesIO()
    quiet.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                network,
                (sample,),
                input_names=[INPUT],
                output_names=[OUTPUT],
                dynamic_shapes={"features": {0: torch.export.Dim("n", min=1)}},
                dynamo=True,
            )
            cast(Any, program).save(buffer)
    finally:
        quiet.setLevel(level)
    return buffer.getvalue()


def _largest_difference(runtime: Any, data: bytes, raw: Any, expected: Any) -> float:
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    gaps = [
        np.abs(session.run([OUTPUT], {INPUT: raw[rows]})[0] - expected[rows]).max()
        for rows in (slice(0, len(raw)), slice(0, 1))
    ]
    return float(max(gaps))


def _how(items: ItemPreparation) -> str:
    if items.encoder is not None:
        return (
            f"The input are the features of the encoder {items.encoder_name}; they are standardised inside."
        )
    inside = "Numbers go in as they are, nan where one is missing: imputing and standardising happen inside."
    if items.table.levels:
        inside += " A column 'name=category' is 1 where it has that category, else 0; '(other)' is any other."
    return inside
