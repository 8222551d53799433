"""Findings on disk: JSON and NPY, never a pickle."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotmix.runs.findings import Findings, Preview
from annotmix.runs.spreadsheet import write_bytes, write_text

FORMAT = 1
_TABLES = {"items": "task", "annotators": "worker", "labels": None, "history": "epoch", "suggestions": None}


def save_findings(folder: Path, found: Findings) -> None:
    """Write findings into a folder: `findings.json` and `confusion.npy`."""
    saved = {
        "format": FORMAT,
        "title": found.title,
        "classes": [str(name) for name in found.classes],
        "tables": {name: table_to_json(getattr(found, name), index) for name, index in _TABLES.items()},
        "calibration": None if found.calibration is None else table_to_json(found.calibration, None),
        "previews": {task: _preview_to_json(preview) for task, preview in found.previews.items()},
        "scores": plain(found.scores),
        "settings": plain(found.settings),
        "inputs": plain(found.inputs),
        "notes": list(found.notes),
    }
    save_array(folder / "confusion.npy", found.confusion)
    write_text(folder / "findings.json", json.dumps(saved, ensure_ascii=False, allow_nan=False))


def load_findings(folder: Path) -> Findings:
    """Read what `save_findings` wrote."""
    path = folder / "findings.json"
    try:
        saved = json.loads(path.read_text("utf-8"))
        if saved["format"] != FORMAT:
            raise ValueError(f"format {saved['format']!r}, this version reads {FORMAT}")
        tables = {name: table_from_json(saved["tables"][name], index) for name, index in _TABLES.items()}
        calibration = saved["calibration"]
        return Findings(
            title=str(saved["title"]),
            classes=_objects(saved["classes"]),
            confusion=load_array(folder / "confusion.npy"),
            previews={task: _preview_from_json(preview) for task, preview in saved["previews"].items()},
            scores={name: math.nan if value is None else value for name, value in saved["scores"].items()},
            calibration=None if calibration is None else table_from_json(calibration, None),
            settings=saved["settings"],
            inputs=saved["inputs"],
            notes=[str(note) for note in saved["notes"]],
            **tables,
        )
    except FileNotFoundError:
        raise ValueError(f"{str(folder.parent)!r} holds no finished run: {path.name} is absent.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is damaged or not written by annotmix ({error}).") from None


def table_to_json(table: pd.DataFrame, index: str | None) -> dict[str, list[Any]]:
    """A table as lists by column; missing numbers are null."""
    whole = table.reset_index(names=index) if index is not None else table
    return {str(column): plain(whole[column].tolist()) for column in whole.columns}


def table_from_json(saved: Mapping[str, list[Any]], index: str | None) -> pd.DataFrame:
    """The inverse of `table_to_json`."""
    columns: dict[str, Any] = {}
    for name, values in saved.items():
        texts = any(isinstance(value, str) for value in values)
        columns[name] = _objects(values) if texts else pd.Series(values, dtype=None if values else object)
    table = pd.DataFrame(columns)
    return table if index is None else table.set_index(index)


def save_array(path: Path, array: Any) -> None:
    """Write an array of numbers as NPY."""
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array), allow_pickle=False)
    write_bytes(path, buffer.getvalue())


def load_array(path: Path) -> Any:
    """Read an array of numbers."""
    try:
        return np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{str(path)!r} is not a whole NPY file: {error}") from None


def plain(value: Any) -> Any:
    """A value as JSON has it: numpy's numbers as Python's, nan and infinity as None, paths as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(own) for key, own in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(own) for own in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


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
