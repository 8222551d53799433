"""The report of a run: one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from annotmix._common.files import write_bytes
from annotmix._common.words import count, shorten
from annotmix.runs.conclusions import counts_of
from annotmix.runs.findings import Findings
from annotmix.runs.report.agreement import agreement
from annotmix.runs.report.charts import Content, balance, checked, learning
from annotmix.runs.report.err_together import err_together
from annotmix.runs.report.formatting import between, named, share, whole
from annotmix.runs.report.making import making
from annotmix.runs.report.markup import Markup, element, join
from annotmix.runs.report.opening import opening
from annotmix.runs.report.over_time import over_time
from annotmix.runs.report.page import page, section, table
from annotmix.runs.report.payload import ShownTable, payload, shown_tables
from annotmix.runs.report.people_and_models import people_and_models
from annotmix.runs.report.single_classes import single_classes
from annotmix.runs.result_columns import Column

#: Rows of a table without a script, as in the preview of a mail.
STATIC_ROWS = 10
SCRIPTS = (
    "elements", "data", "matrices", "address", "clipboard", "columns", "csv", "tables", "details", "start",
)  # fmt: skip


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
    sections: dict[str, tuple[str, Content]] = {
        "annotators": ("Annotators", _annotators(findings, shown["annotators"])),
        "kinds": ("People and models", people_and_models(findings)),
        "together": ("Annotators who err together", err_together(findings)),
        "labels": ("Labels most likely wrong", _labels(findings, shown["labels"])),
        "agreement": ("How far annotators agree", agreement(findings)),
        "disputed": ("Items where the crowd disagrees", _disputed(findings, shown["disputed"])),
        "items": ("All items", [*_items(findings, shown["items"]), *_pictures(data)]),
        "classes": ("Classes one by one", single_classes(findings)),
        "balance": ("Classes before and after", balance(findings)),
        "learning": ("Learning curves", learning(findings)),
        "checked": ("Checked against known labels", checked(findings)),
        "time": ("Annotators over time", over_time(findings)),
        "suggestions": ("Whom to ask what next", _suggestions(findings, shown["suggestions"])),
        "making": ("How this was made", making(findings)),
    }
    written = {name: (title, content) for name, (title, content) in sections.items() if content}
    links = (
        element("li", element("a", title, href=f"#{name}-section")) for name, (title, _) in written.items()
    )
    contents = element("nav", element("ul", *links), class_="contents", aria_label="Sections")
    return page(
        f"{shorten(findings.title)}: annotmix report",
        join([opening(findings), contents]),
        *(section(title, *content, id=f"{name}-section") for name, (title, content) in written.items()),
        scripts=[f"script/{name}.js" for name in SCRIPTS],
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
    counts = counts_of(findings)
    verb = "is" if counts.wrong == 1 else "are"
    wrong = f"{whole(counts.wrong)} of {whole(counts.labels)} {verb} more likely wrong than right."
    if findings.several is not None:
        wrong = (
            f"{whole(counts.wrong)} of {whole(counts.labels)} are not the set found: they name a class that "
            "is probably wrong, or overlook one."
        )
    which = (
        "All are here"
        if len(shown.rows) == len(labels)
        else f"The {whole(len(shown.rows))} least trusted of {whole(len(labels))} are here, all in labels.csv"
    )
    return [
        "Of every label the model says how likely it is right, from the item and from all its "
        f"labels. {wrong} "
        f"{which}, the least trusted first.",
        _table(findings, "labels", "Labels, least likely right first", shown),
    ]


def _pictures(data: Mapping[str, Any]) -> Content:
    """Where only some of the items that the page lists have a thumbnail: how many."""
    shown, listed = len(data["images"]), len(data["items"])
    if shown in (0, listed):
        return []
    return [
        f"To keep this page small, {whole(shown)} of its {whole(listed)} items have a picture here, those at "
        f"the top of its tables; {whole(listed - shown)} were left out."
    ]


def _disputed(findings: Findings, shown: ShownTable) -> Content:
    if not len(shown.rows):
        return ["No item has labels that disagree."]
    n = int((findings.items["disagreement"] > 0).sum())
    several = int((findings.items["n_labels"] > 1).sum())
    cut = (
        ""
        if n == len(shown.rows)
        else f" The {whole(len(shown.rows))} least sure of them are here, all in items.csv."
    )
    return [
        f"{whole(n)} of {whole(several)} items with several labels have labels that disagree.{cut} "
        "The least sure come first, by the chance that the label found is right. Every item shows who gave "
        "which label, and the chance that this label is right. Disagreement of the votes is in bits: 0 where "
        "all agree, 1 where two classes have equal votes. Where annotators disagree, the item or the "
        "instruction is often unclear.",
        _table(findings, "disputed", "Items with labels that disagree, the least sure first", shown),
    ]


def _items(findings: Findings, shown: ShownTable) -> Content:
    n, unlabelled = len(findings.items), counts_of(findings).unlabelled
    which = (
        f"All {count(n, 'item')} in the order of items.csv"
        if len(shown.rows) == n
        else f"The {whole(len(shown.rows))} least sure of {count(n, 'item')}; items.csv has all of them"
    )
    few = (
        f" {count(unlabelled, 'item')} without labels got theirs from the classifier alone."
        if unlabelled
        else ""
    )
    return [
        f"{which}, each with the label found and all its votes.{few} The search looks into names, texts, "
        "labels and annotators. Choose an item for everything about it.",
        _table(findings, "items", "All items", shown),
    ]


def _suggestions(findings: Findings, shown: ShownTable) -> Content:
    n = len(findings.suggestions)
    note = findings.unmatched.note
    warning = [element("p", shorten(note, 1000), class_="warning")] if note else []
    if not n:
        return [] if findings.several is not None else [*warning, "There are no suggestions."]
    cut = "" if len(shown.rows) == n else f" The best {whole(len(shown.rows))} of {whole(n)} are here."
    return [
        *warning,
        "Each line is one question to one annotator: an item whose label is in doubt, and someone who is "
        "likely to be right about this very item. The best come first; the gain is in bits, 1 being a yes or "
        f"no settled.{cut}",
        _table(findings, "suggestions", "Questions worth asking, best first", shown),
    ]


def _table(findings: Findings, name: str, caption: str, shown: ShownTable) -> Markup:
    """The first rows of a table, for readers without scripts; the script replaces them."""
    columns = [column for column in shown.columns if column.kind != "matrix" and not column.details]
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
