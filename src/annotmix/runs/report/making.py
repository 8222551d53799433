"""The last section of the report: notes, the command, the files read and the settings of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from annotmix._common.words import shorten
from annotmix.runs.findings import Findings
from annotmix.runs.report.charts import Content
from annotmix.runs.report.formatting import named, whole
from annotmix.runs.report.markup import element
from annotmix.runs.report.page import table


def making(findings: Findings) -> Content:
    """Notes, the command, the files read and the settings of a run."""
    parts: list[object] = []
    settings = {name: value for name, value in findings.settings.items() if name != "command"}
    if command := findings.settings.get("command"):
        parts += [
            element("h3", "Command"),
            element("div", element("pre", element("code", command)), class_="command"),  # whole, to be copied
        ]
    if findings.notes:
        parts += [
            element("h3", "On the way"),
            element("ul", *(element("li", shorten(note, 1000)) for note in findings.notes), class_="notes"),
        ]
    if findings.inputs:
        rows = [
            [
                str(f.get("role", "")),
                named(f.get("name", "")),
                whole(f.get("rows")),
                element("code", shorten(f.get("sha256", ""))),
            ]
            for f in findings.inputs
        ]
        parts += [
            element("h3", "Files read"),
            table("Files read", ["What", "File", "Rows", "SHA-256"], rows, class_="inputs"),
        ]
    if settings:
        pairs = [
            element("div", element("dt", str(name)), element("dd", *_setting(value)))
            for name, value in settings.items()
        ]
        parts += [element("h3", "Settings"), element("dl", *pairs, class_="settings")]
    return [
        "The figures are estimates of a model that learnt from the same labels; it can be wrong, above all "
        "where all annotators make the same error. run.json has everything needed to do this again.",
        *parts,
    ]


def _setting(value: Any) -> list[object]:
    if isinstance(value, Mapping):
        return [element("div", f"{name} ", element("code", _text(inner))) for name, inner in value.items()]
    return [element("code", _text(value))]


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return shorten(text, 500)
