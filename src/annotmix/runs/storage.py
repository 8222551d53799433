"""Findings on disk: CSV files and a report for readers, JSON and NPY to load again; never a pickle."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from annotmix._common.files import load_array, save_array, to_json, write_text
from annotmix._common.schema import read_json
from annotmix._common.spreadsheet import to_csv
from annotmix.runs.confusion_matrices import ConfusionMatrices
from annotmix.runs.crowd_agreement import CrowdAgreement
from annotmix.runs.findings import Findings, Preview
from annotmix.runs.findings_file import (
    FORMAT,
    FindingsFile,
    SavedAgreement,
    SavedPreview,
    require_consistent,
    to_frame,
)
from annotmix.runs.report.run import write_report
from annotmix.runs.set_findings import SetFindings
from annotmix.runs.unmatched import Unmatched

#: The CSV files and their contents.
FILES = {
    "items.csv": "the most probable label of every item",
    "labels.csv": "every label, least likely right first",
    "annotators.csv": "whom to trust",
}
#: Further files where items have several classes.
CLASS_FILES = {
    "findings/classes.csv": "how often each class is right, chosen and overlooked",
    "findings/annotator_classes.csv": "how well each annotator knows each class",
}
#: The prepared features of a run's items.
FEATURES = "findings/features.npy"
#: Probabilities of the classes of every item, where items have several.
PROBABILITIES = "class-probabilities.npy"
_AGREEMENT = ("alpha", "low", "high", "fleiss_kappa", "percent")
_TABLES = ("items", "annotators", "labels", "history", "suggestions")


def write_findings(folder: Path, findings: Findings) -> None:
    """Write findings into the folder of a run: CSV files, report, `findings/`."""
    write_text(folder / "items.csv", to_csv(_with_classes(findings), index=True))
    write_text(folder / "labels.csv", to_csv(findings.labels))
    write_text(folder / "annotators.csv", to_csv(findings.annotators, index=True))
    if findings.several is not None:
        write_text(folder / "findings/classes.csv", to_csv(findings.several.classes, index=True))
        write_text(folder / "findings/annotator_classes.csv", to_csv(findings.several.annotators))
    save_findings(folder / "findings", findings)
    write_report(findings, folder / "report.html")


def files_of(findings: Findings) -> dict[str, str]:
    """The CSV files of a run and their contents."""
    return FILES if findings.several is None else FILES | CLASS_FILES


def _with_classes(findings: Findings) -> pd.DataFrame:
    """The table of items, and where they have several classes the probability of each."""
    if findings.several is None:
        return findings.items
    columns = [f"P({name})" for name in findings.several.names]
    p = pd.DataFrame(findings.several.probabilities, index=findings.items.index, columns=columns)
    return findings.items.join(p)


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
        "unmatched": findings.unmatched._asdict(),
        "kinds": {name: _table_to_json(table) for name, table in findings.kinds.items()},
        "agreement": None if findings.agreement is None else _agreement_to_json(findings.agreement),
        "groups": None if findings.groups is None else _table_to_json(findings.groups),
    }
    if (several := findings.several) is not None:
        saved["several"] = {
            "classes": _table_to_json(several.classes),
            "annotators": _table_to_json(several.annotators),
        }
        save_array(folder / PROBABILITIES, several.probabilities)
    save_array(folder / "confusion.npy", findings.confusion.to_array())
    write_text(folder / "findings.json", json.dumps(saved, ensure_ascii=False, allow_nan=False))


def load_findings(folder: Path) -> Findings:
    """Read findings that `save_findings` wrote."""
    path = folder / "findings.json"
    if not path.is_file():
        raise ValueError(f"{str(folder.parent)!r} holds no finished run: {path.name} is absent.")
    saved = read_json(path, FindingsFile)
    try:
        findings = Findings(
            title=saved.title,
            classes=np.array([*saved.classes, None], dtype=object)[:-1],
            confusion=ConfusionMatrices.from_array(load_array(folder / "confusion.npy"), len(saved.classes)),
            previews={item: _preview_from_json(preview) for item, preview in saved.previews.items()},
            scores={name: math.nan if value is None else value for name, value in saved.scores.items()},
            calibration=None if saved.calibration is None else to_frame("calibration", saved.calibration),
            settings=saved.settings,
            inputs=[msgspec.to_builtins(own) for own in saved.inputs],
            notes=saved.notes,
            unmatched=Unmatched(saved.unmatched.note, saved.unmatched.items),
            several=None if saved.several is None else _several(folder, saved),
            kinds={name: to_frame(name, table) for name, table in saved.kinds.items()},
            agreement=None if saved.agreement is None else _agreement_from_json(saved.agreement),
            groups=None if saved.groups is None else to_frame("groups", saved.groups),
            **{name: to_frame(name, getattr(saved.tables, name)) for name in _TABLES},
        )
        require_consistent(findings)
    except ValueError as error:
        raise ValueError(f"{str(path)!r} is damaged or not written by annotmix ({error}).") from None
    return findings


def _several(folder: Path, saved: FindingsFile) -> SetFindings:
    assert saved.several is not None
    p, n_items = load_array(folder / PROBABILITIES), len(saved.tables.items.columns["item"])
    made = SetFindings(
        to_frame("classes", saved.several.classes),
        to_frame("annotator_classes", saved.several.annotators),
        p,
    )
    if p.dtype.kind != "f" or p.shape != (n_items, len(made.classes)) or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"{PROBABILITIES} does not hold probabilities of the classes of every item")
    return made


def _table_to_json(table: pd.DataFrame) -> dict[str, Any]:
    """A table as lists by column, and the name of its index; missing numbers are null."""
    index = table.index.name
    whole = table if index is None else table.reset_index()
    return {"index": index, "columns": {str(name): to_json(whole[name].tolist()) for name in whole.columns}}


def _agreement_to_json(found: CrowdAgreement) -> dict[str, Any]:
    figures: dict[str, Any] = to_json({name: getattr(found, name) for name in _AGREEMENT})
    return figures | {"n_items": found.n_items, "classes": _table_to_json(found.classes)}


def _agreement_from_json(saved: SavedAgreement) -> CrowdAgreement:
    known = {name: getattr(saved, name) for name in _AGREEMENT}
    figures = {name: math.nan if value is None else value for name, value in known.items()}
    return CrowdAgreement(n_items=saved.n_items, classes=to_frame("agreement", saved.classes), **figures)


def _preview_to_json(preview: Preview) -> dict[str, Any]:
    image = None if preview.image is None else base64.b64encode(preview.image).decode()
    return {"text": preview.text, "image": image}


def _preview_from_json(saved: SavedPreview) -> Preview:
    return Preview(saved.text, None if saved.image is None else base64.b64decode(saved.image, validate=True))
