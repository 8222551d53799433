"""The report of a run: one HTML file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from annotmix._common.files import write_bytes
from annotmix._common.words import shorten
from annotmix.runs.conclusions import probably_wrong
from annotmix.runs.findings import Findings
from annotmix.runs.report.charts import Content, balance, checked, learning
from annotmix.runs.report.formatting import between, named, share, whole
from annotmix.runs.report.markup import Markup, element, join
from annotmix.runs.report.opening import opening
from annotmix.runs.report.over_time import over_time
from annotmix.runs.report.page import page, section, table
from annotmix.runs.report.payload import ShownTable, payload, shown_tables
from annotmix.runs.result_columns import Column

#: Rows of a table without a script, as in the preview of a mail.
STATIC_ROWS = 10

SECTIONS = {
    "annotators": "Annotators",
    "labels": "Labels most likely wrong",
    "disputed": "Items where the crowd disagrees",
    "balance": "Classes before and after",
    "learning": "Learning curves",
    "checked": "Checked against known labels",
    "time": "Annotators over time",
    "suggestions": "Whom to ask what next",
    "making": "How this was made",
}


def write_report(findings: Findings, path: Path) -> None:
    """Write the report as one HTML file that needs nothing else.

    Parameters
    ----------
    findings : Findings
    path : Path
        The file; it is replaced in one step.
    """
    write_bytes(Path(path), run_page(findings).encode("utf-8", "replace"))  # half a pair cannot be written


def run_page(findings: Findings) -> str:
    """The whole page."""
    shown = shown_tables(findings)
    data = payload(findings, shown)
    parts = [
        _annotators(findings, shown["annotators"]),
        [*_labels(findings, shown["labels"]), *_pictures(data["images"])],
        _disputed(findings, shown["disputed"]),
        balance(findings),
        learning(findings),
        checked(findings),
        over_time(findings),
        _suggestions(findings, shown["suggestions"]),
        _making(findings),
    ]
    sections = {name: part for name, part in zip(SECTIONS, parts, strict=True) if part}
    links = (element("li", element("a", SECTIONS[name], href=f"#{name}-section")) for name in sections)
    contents = element("nav", element("ul", *links), class_="contents", aria_label="Sections")
    return page(
        f"{shorten(findings.title)}: annotmix report",
        join([opening(findings), contents]),
        *(section(SECTIONS[name], *part, id=f"{name}-section") for name, part in sections.items()),
        scripts=("run.js",),
        data=data,
    )


def _annotators(findings: Findings, shown: ShownTable) -> Content:
    rest = len(findings.annotators) - len(shown.rows)
    return [
        "The estimated accuracy is the chance that a label of this annotator is right, with a 95% interval. "
        "In the small squares a row is a true class and a column the label it got: a clean diagonal is a "
        "good sign. The lower end of the interval gives the order, so nobody leads by a handful of labels. "
        "Choose a name for more.",
        *(
            [f"Shown are those with the most labels; {whole(rest)} more are in annotators.csv."]
            if rest
            else []
        ),
        _table(findings, "annotators", "Annotators and how far to trust their labels", shown),
    ]


def _labels(findings: Findings, shown: ShownTable) -> Content:
    labels = findings.labels
    if not len(labels):
        return ["There are no labels."]
    doubted, n = probably_wrong(labels)
    verb = "is" if doubted == 1 else "are"
    which = (
        "All are here"
        if len(shown.rows) == len(labels)
        else f"The {whole(len(shown.rows))} least trusted of {whole(len(labels))} are here, all in labels.csv"
    )
    return [
        "Of every label the model says how likely it is right, from the item and from all its "
        f"labels. {whole(doubted)} of {whole(n)} {verb} more likely wrong than right. "
        f"{which}, the least trusted first.",
        _table(findings, "labels", "Labels, least likely right first", shown),
    ]


def _pictures(images: Sequence[str]) -> Content:
    """Where only some of the items that the page lists have a thumbnail: how many."""
    shown = sum(map(bool, images))
    if shown in (0, len(images)):
        return []
    return [
        f"To keep this page small, {whole(shown)} of the {whole(len(images))} items that it lists have a "
        f"thumbnail, those at the top of its tables; {whole(len(images) - shown)} were left out."
    ]


def _disputed(findings: Findings, shown: ShownTable) -> Content:
    if not len(shown.rows):
        return ["No item has labels that disagree."]
    n = int((findings.items["disagreement"] > 0).sum())
    several = int((findings.items["n_labels"] > 1).sum())
    cut = (
        ""
        if n == len(shown.rows)
        else f" The {whole(len(shown.rows))} most disputed are here, all in items.csv."
    )
    return [
        f"{whole(n)} of {whole(several)} items with several labels have labels that disagree.{cut} "
        "Disagreement is in bits: 0 where all agree, 1 where two classes have equal votes. Where annotators "
        "disagree, the item or the instruction is often unclear.",
        _table(findings, "disputed", "Items, most disputed first", shown),
    ]


def _suggestions(findings: Findings, shown: ShownTable) -> Content:
    n = len(findings.suggestions)
    note = findings.unmatched.note
    warning = [element("p", shorten(note, 1000), class_="warning")] if note else []
    if not n:
        return [*warning, "There are no suggestions."]
    cut = "" if len(shown.rows) == n else f" The best {whole(len(shown.rows))} of {whole(n)} are here."
    return [
        *warning,
        "Each line is one question to one annotator: an item whose label is in doubt, and someone who is "
        "likely to be right about this very item. The best come first; the gain is in bits, 1 being a yes or "
        f"no settled.{cut}",
        _table(findings, "suggestions", "Questions worth asking, best first", shown),
    ]


def _making(findings: Findings) -> Content:
    parts: list[object] = []
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
                _code(f.get("sha256", "")),
            ]
            for f in findings.inputs
        ]
        parts += [
            element("h3", "Files read"),
            table("Files read", ["What", "File", "Rows", "SHA-256"], rows, class_="inputs"),
        ]
    if findings.settings:
        pairs = [
            element("div", element("dt", str(name)), element("dd", *_setting(value)))
            for name, value in findings.settings.items()
        ]
        parts += [element("h3", "Settings"), element("dl", *pairs, class_="settings")]
    return [
        "The figures are estimates of a model that learnt from the same labels; it can be wrong, above all "
        "where all annotators make the same error. run.json has everything needed to do this again.",
        *parts,
    ]


def _table(findings: Findings, name: str, caption: str, shown: ShownTable) -> Markup:
    """The first rows of a table, for readers without scripts; the script replaces them."""
    columns = [column for column in shown.columns if column.kind != "matrix"]
    rows = [
        [_cell(findings, column, row) for column in columns]
        for row in shown.rows.head(STATIC_ROWS).to_dict("records")
    ]
    few = table(caption, [column.title for column in columns], rows)
    return element("div", few, id=name, class_="data")


def _cell(findings: Findings, column: Column, row: Mapping[str, Any]) -> object:
    value, beside = row[column.name], [row[name] for name in column.beside]
    if column.kind == "item":
        preview = findings.previews.get(value)
        return named(f"{value}: {preview.text}" if preview and preview.text not in ("", value) else value)
    if column.kind == "count":
        return whole(value)
    if column.kind == "number":
        return f"{value:.2f}" if np.isfinite(value) else "–"
    if column.kind == "share":
        return share(value)
    if column.kind == "interval":
        return f"{share(value)} {between(*beside)}"
    return named(value)


def _code(text: object) -> Markup:
    return element("code", shorten(text))


def _setting(value: Any) -> list[object]:
    if isinstance(value, Mapping):
        return [element("div", f"{name} ", _code(_text(inner))) for name, inner in value.items()]
    return [_code(_text(value))]


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return shorten(text, 500)
