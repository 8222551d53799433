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
from numpy.typing import NDArray
from torch import Tensor, nn

import annotmix
from annotmix._common.files import write_bytes, write_json
from annotmix._common.optional import require
from annotmix.encoders.efficientnet import SIZE, scaled
from annotmix.estimators.crowd import CrowdClassifier
from annotmix.estimators.preparation import LIMIT, Preparation
from annotmix.runs import onnx_inputs
from annotmix.runs.folder import RunFolder
from annotmix.runs.onnx_inputs import FEATURES, PIXELS
from annotmix.runs.prepare import numbered

OUTPUT = "probabilities"
#: Largest accepted difference of a probability from the original; small differences of features grow where a
#: feature hardly varies.
TOLERANCE, TOLERANCE_WITH_ENCODER = 1e-5, 1e-3
#: Items, and random pictures, that the difference is measured on.
SAMPLE, PICTURES = 256, 8


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
    runtime = require("onnxruntime", "onnx", "Exporting")
    require("onnxscript", "onnx", "Exporting")
    items, model, features = RunFolder(run).read("preparation", "model", "features")
    if isinstance(model, CrowdClassifier):
        raise ValueError(f"{str(run)!r} holds no network: only runs with --model network can be exported.")
    if with_encoder:
        onnx_inputs.require_includable(items)
    preparation = items.table
    network: nn.Module = Exported(model.module_.classifier.cpu(), preparation).eval()
    if with_encoder:
        network, raw, expected = _include_encoder(network, model, preparation)
    else:
        X = features[:SAMPLE]
        raw, expected = _raw(X, preparation), model.predict_proba(X)
    name, meaning = PIXELS if with_encoder else FEATURES, onnx_inputs.input_meaning(items, with_encoder)
    facts = {
        "annotmix": annotmix.__version__,
        "input": {"name": name, "dtype": str(raw.dtype), "shape": ["n", *raw.shape[1:]], "meaning": meaning},
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
    what = "random pictures" if with_encoder else "items of the run"
    facts["checked"] = {"on": what, "items": len(raw), "largest difference": difference}
    write_bytes(path, data)
    write_json(path.with_name(path.name + ".json"), facts)
    return facts


def _include_encoder(
    network: nn.Module, model: Any, preparation: Preparation
) -> tuple[nn.Module, NDArray[np.uint8], NDArray[np.float64]]:
    """The network with the encoder before it, random pictures, and their probabilities by the original."""
    encoder = onnx_inputs.load_encoder()
    pixels = np.random.default_rng(0).integers(0, 256, (PICTURES, SIZE, SIZE, 3), dtype=np.uint8)
    with torch.inference_mode():
        features = encoder(scaled(torch.from_numpy(pixels))).numpy()
    expected = model.predict_proba(preparation.transform(numbered(features)))
    return onnx_inputs.PictureClassifier(encoder, network).eval(), pixels, expected


def _raw(X: Any, preparation: Preparation) -> Any:
    """Prepared features as they were before they were standardised."""
    raw = X.astype(np.float64)
    n = len(preparation.numeric)
    raw[:, :n] = raw[:, :n] * preparation.scale + preparation.mean
    return raw.astype(np.float32)


def _export(network: nn.Module, sample: Tensor, facts: dict[str, Any]) -> bytes:
    """The network as ONNX with any number of rows, in one piece, and what its input is."""
    name, meaning = facts["input"]["name"], facts["input"]["meaning"]
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
                    dynamic_shapes={name: {0: torch.export.Dim("n", min=1)}},
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
