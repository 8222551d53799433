"""Findings on disk: CSV files and a report for readers, JSON and NPY to load again; never a pickle."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.files import load_array, save_array, to_json, write_text
from annotmix.runs.confusion_matrices import ConfusionMatrices
from annotmix.runs.findings import Findings, Preview
from annotmix.runs.report.run import write_report
from annotmix.runs.spreadsheet import to_csv

FORMAT = 2
#: The CSV files and their contents.
FILES = {
    "items.csv": "the most probable label of every item",
    "labels.csv": "every label, least likely right first",
    "annotators.csv": "whom to trust",
}
_TABLES = ("items", "annotators", "labels", "history", "suggestions")


def write_findings(folder: Path, findings: Findings) -> None:
    """Write findings into the folder of a run: CSV files, report, `findings/`."""
    write_text(folder / "items.csv", to_csv(findings.items, index=True))
    write_text(folder / "labels.csv", to_csv(findings.labels))
    write_text(folder / "annotators.csv", to_csv(findings.annotators, index=True))
    save_findings(folder / "findings", findings)
    write_report(findings, folder / "report.html")


def save_findings(folder: Path, findings: Findings) -> None:
    """Write findings into a folder: `findings.json` and `confusion.npy`."""
    saved = {
        "format": FORMAT,
        "title": findings.title,
        "classes": [str(name) for name in findings.classes],
        "tables": {name: _table_to_json(getattr(findings, name)) for name in _TABLES},
        "calibration": None if findings.calibration is None else _table_to_json(findings.calibration),
        "previews": {item: _preview_to_json(preview) for item, preview in findings.previews.items()},
        "scores": to_json(findings.scores),
        "settings": to_json(findings.settings),
        "inputs": to_json(findings.inputs),
        "notes": list(findings.notes),
    }
    save_array(folder / "confusion.npy", findings.confusion.to_array())
    write_text(folder / "findings.json", json.dumps(saved, ensure_ascii=False, allow_nan=False))


def load_findings(folder: Path) -> Findings:
    """Read findings that `save_findings` wrote."""
    path = folder / "findings.json"
    try:
        saved = json.loads(path.read_text("utf-8"))
        if saved["format"] != FORMAT:
            raise ValueError(f"format {saved['format']!r}, this version reads {FORMAT}")
        calibration = saved["calibration"]
        return Findings(
            title=str(saved["title"]),
            classes=_objects(saved["classes"]),
            confusion=ConfusionMatrices.from_array(
                load_array(folder / "confusion.npy"), len(saved["classes"])
            ),
            previews={item: _preview_from_json(preview) for item, preview in saved["previews"].items()},
            scores={name: math.nan if value is None else value for name, value in saved["scores"].items()},
            calibration=None if calibration is None else _table_from_json(calibration),
            settings=saved["settings"],
            inputs=saved["inputs"],
            notes=[str(note) for note in saved["notes"]],
            **{name: _table_from_json(saved["tables"][name]) for name in _TABLES},
        )
    except FileNotFoundError:
        raise ValueError(f"{str(folder.parent)!r} holds no finished run: {path.name} is absent.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is damaged or not written by annotmix ({error}).") from None


def _table_to_json(table: pd.DataFrame) -> dict[str, Any]:
    """A table as lists by column, and the name of its index; missing numbers are null."""
    index = table.index.name
    whole = table if index is None else table.reset_index()
    return {"index": index, "columns": {str(name): to_json(whole[name].tolist()) for name in whole.columns}}


def _table_from_json(saved: Mapping[str, Any]) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name, values in saved["columns"].items():
        texts = any(isinstance(value, str) for value in values)
        columns[name] = _objects(values) if texts else pd.Series(values, dtype=None if values else object)
    table = pd.DataFrame(columns)
    return table if saved["index"] is None else table.set_index(saved["index"])


def _objects(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _preview_to_json(preview: Preview) -> dict[str, Any]:
    image = None if preview.image is None else base64.b64encode(preview.image).decode()
    return {"text": preview.text, "image": image}


def _preview_from_json(saved: Mapping[str, Any]) -> Preview:
    image = saved["image"]
    return Preview(str(saved["text"]), None if image is None else base64.b64decode(image, validate=True))
