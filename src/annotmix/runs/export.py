"""The classifier of a run alone, as ONNX, checked against the original."""

from __future__ import annotations

import io
import json
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
from annotmix.estimators.preparation import LIMIT, Preparation
from annotmix.runs import onnx_inputs
from annotmix.runs.exportable import require_exportable
from annotmix.runs.folder import RunFolder
from annotmix.runs.onnx_inputs import FEATURES, PIXELS
from annotmix.runs.prepare import numbered
from annotmix.runs.storage import FEATURES as STORED

OUTPUT = "probabilities"
#: Largest accepted difference of a probability from the original; small differences of features grow where a
#: feature hardly varies.
TOLERANCE, TOLERANCE_WITH_ENCODER = 1e-5, 1e-3
#: Items, and pictures, of the run that the difference is measured on.
SAMPLE, PICTURES = 256, 16


class Exported(nn.Module):
    """Features before imputation and standardisation, shape (n, d), to probabilities, shape (n, C).

    `columns` are the features that are used, by default all.
    """

    median: Tensor
    mean: Tensor
    scale: Tensor
    columns: Tensor | None

    def __init__(self, classifier: Any, preparation: Preparation, columns: list[int] | None = None):
        super().__init__()
        self.classifier = classifier
        self.register_buffer("columns", None if columns is None else torch.tensor(columns))
        extra = np.zeros(
            len(preparation.feature_names) - len(preparation.numeric)
        )  # one-hot columns stay as they are
        values = {"median": extra, "mean": extra, "scale": extra + 1}
        for name, rest in values.items():
            whole = np.concatenate([getattr(preparation, name), rest])
            self.register_buffer(name, torch.tensor(whole, dtype=torch.float32))

    def forward(self, features: Tensor) -> Tensor:
        """Select, impute, standardise, classify."""
        if self.columns is not None:
            features = features.index_select(1, self.columns)
        known = torch.where(torch.isnan(features), self.median, features)
        x = torch.clamp((known - self.mean) / self.scale, -LIMIT, LIMIT)
        return torch.exp(self.classifier.log_proba(self.classifier.features(x)))


def export_onnx(run: Path, path: Path, with_encoder: bool = False) -> dict[str, Any]:
    """Write the classifier of a run as ONNX, and beside it a JSON file that describes its input.

    Parameters
    ----------
    run : Path
    path : Path
        The ONNX file; the JSON file has its name and ".json".
    with_encoder : bool, default=False
        Include the encoder, so that pictures go in; refused for encoders that a file cannot hold.

    Returns
    -------
    dict
        The content of the JSON file, with the largest difference from the original on a sample of items.
    """
    require_exportable(run, with_encoder)
    runtime = require("onnxruntime", "onnx", "Exporting")
    require("onnxscript", "onnx", "Exporting")
    items, model, features, results = RunFolder(run).read("preparation", "model", "features", "findings")
    preparation = items.table
    expected_shape = (len(results.items), len(preparation.feature_names))
    if features.shape != expected_shape or features.dtype != np.float32:
        raise ValueError(
            f"{str(run / STORED)!r} is damaged: it holds {features.dtype!s:.60} of shape {features.shape}, "
            f"expected float32 of shape {expected_shape}."
        )
    columns = onnx_inputs.encoder_columns(items)
    network: nn.Module = Exported(model.module_.classifier.cpu(), preparation, columns).eval()
    if with_encoder:
        network = onnx_inputs.PictureClassifier(onnx_inputs.load_encoder(), network).eval()
        raw, encoded = onnx_inputs.some_pictures(run, items, PICTURES)
        expected = model.predict_proba(preparation.transform(numbered(encoded)))
    else:
        X = features[:SAMPLE]
        raw, expected = _raw(X, preparation, columns), model.predict_proba(X)
    name, meaning = PIXELS if with_encoder else FEATURES, onnx_inputs.input_meaning(items, with_encoder)
    shape = ["n", "d"] if name == FEATURES and columns is not None else ["n", *raw.shape[1:]]
    facts = {
        "annotmix": annotmix.__version__,
        "input": {"name": name, "dtype": str(raw.dtype), "shape": shape, "meaning": meaning},
        "output": {"name": OUTPUT, "dtype": "float32", "shape": ["n", len(model.classes_)]},
        "classes": [str(one) for one in model.classes_],
        "columns": None if with_encoder else preparation.feature_names,
        "items": items.to_dict()["items"],
    }
    data = _export(network, torch.from_numpy(raw[:2].repeat(2, axis=0)), facts)
    difference = _largest_difference(runtime, data, name, raw, expected)
    if not difference <= (TOLERANCE_WITH_ENCODER if with_encoder else TOLERANCE):
        raise ValueError(
            f"The exported classifier differs from the original by {difference:g}; nothing was written."
        )
    facts["checked"] = {"items": len(raw), "largest difference": difference}
    write_bytes(path, data)
    write_json(path.with_name(path.name + ".json"), facts)
    return facts


def _raw(X: Any, preparation: Preparation, columns: list[int] | None) -> Any:
    """Prepared features as they were before they were selected and standardised."""
    raw = X.astype(np.float64)
    n = len(preparation.numeric)
    raw[:, :n] = raw[:, :n] * preparation.scale + preparation.mean
    if columns is None:
        return raw.astype(np.float32)
    every = np.zeros((len(raw), max(columns) + 2), dtype=np.float32)  # one more, which is not used
    every[:, columns] = raw
    return every


def _export(network: nn.Module, sample: Tensor, facts: dict[str, Any]) -> bytes:
    """The network as ONNX with any number of rows, in one piece, and what its input is."""
    name, shape, meaning = (facts["input"][key] for key in ("name", "shape", "meaning"))
    least = {"n": 1, "d": sample.shape[1] - 1}
    sizes = {
        axis: torch.export.Dim(size, min=least[size]) for axis, size in enumerate(shape) if size in ("n", "d")
    }
    quiet = logging.getLogger("torch.onnx")
    level, buffer = quiet.level, io.BytesIO()
    quiet.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            program = cast(
                Any,
                torch.onnx.export(
                    network,
                    (sample,),
                    input_names=[name],
                    output_names=[OUTPUT],
                    dynamic_shapes={name: sizes},
                    dynamo=True,
                ),
            )
            program.model.doc_string = meaning
            program.model.graph.inputs[0].doc_string = meaning
            described = {"input": meaning, "classes": json.dumps(facts["classes"])}
            described |= {"items": json.dumps(facts["items"]), "annotmix": facts["annotmix"]}
            program.model.metadata_props.update(described)
            program.save(buffer)
    finally:
        quiet.setLevel(level)
    return buffer.getvalue()


def _largest_difference(runtime: Any, data: bytes, name: str, raw: Any, expected: Any) -> float:
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    gaps = [
        np.abs(session.run([OUTPUT], {name: raw[rows]})[0] - expected[rows]).max()
        for rows in (slice(0, len(raw)), slice(0, 1))
    ]
    return float(max(gaps))
