"""The report of a run: one HTML file with what was found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from annotmix._common.files import write_atomically
from annotmix.runs.findings import Findings
from annotmix.runs.report.charts import Content, balance, checked, learning
from annotmix.runs.report.markup import Markup, element, join
from annotmix.runs.report.opening import opening
from annotmix.runs.report.page import page, section, table
from annotmix.runs.report.payload import MOST, disputed_items, payload, short, shown_annotators
from annotmix.runs.report.words import named, share, whole

#: Rows of a table that are there without a script, as in a preview of a mail.
STATIC_ROWS = 10

SECTIONS = {
    "annotators": "Annotators",
    "labels": "Labels most likely wrong",
    "disputed": "Items where the crowd disagrees",
    "balance": "Classes before and after",
    "learning": "Learning curves",
    "checked": "Checked against known labels",
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
    html = run_page(findings).encode("utf-8", "replace")  # half a character pair cannot be written
    write_atomically(Path(path), lambda temporary: Path(temporary).write_bytes(html))


def run_page(found: Findings) -> str:
    """The whole page."""
    data = payload(found)
    parts = [
        _annotators(found),
        [*_labels(found), *_pictures(data["images"])],
        _disputed(found),
        balance(found),
        learning(found),
        checked(found),
        _suggestions(found),
        _making(found),
    ]
    sections = {name: part for name, part in zip(SECTIONS, parts, strict=True) if part}
    links = (element("li", element("a", SECTIONS[name], href=f"#{name}-section")) for name in sections)
    contents = element("nav", element("ul", *links), class_="contents", aria_label="Sections")
    return page(
        f"{short(found.title)}: annotmix report",
        join([opening(found), contents]),
        *(section(SECTIONS[name], *part, id=f"{name}-section") for name, part in sections.items()),
        styles=("style.css", "run.css"),
        scripts=("run.js",),
        data=data,
    )


def _annotators(found: Findings) -> Content:
    people = found.annotators.iloc[shown_annotators(found)]
    rows = [
        [
            named(name),
            whole(row.n_labels),
            share(row.accuracy),
            _between(row.low, row.high),
            named(row.confusion),
        ]
        for name, row in zip(people.index, people.itertuples(), strict=True)
    ]
    rest = len(found.annotators) - len(people)
    return [
        "The estimated accuracy is the chance that a label of this annotator is right, with a 95% interval. "
        "In the small squares a row is a true class and a column the label it got: a clean diagonal is a "
        "good sign. Choose a name for more.",
        *(
            [f"Shown are those with the most labels; {whole(rest)} more are in annotators.csv."]
            if rest
            else []
        ),
        _table(
            "annotators",
            "Annotators and how far to trust their labels",
            ["Annotator", "Labels", "Accuracy", "Interval", "Most frequent confusion"],
            rows,
        ),
    ]


def _labels(found: Findings) -> Content:
    if not len(found.labels):
        return ["There are no labels."]
    shown = found.labels.head(MOST["labels"])
    doubted = int((found.labels["probability"] < 0.5).sum())
    which = (
        "All are here"
        if len(shown) == len(found.labels)
        else f"The {whole(len(shown))} least trusted of {whole(len(found.labels))} are here, all in "
        "suspicious_labels.csv"
    )
    rows = [
        [
            _item(found, row.task),
            named(row.label),
            named(row.worker),
            named(row.consensus),
            share(row.probability),
        ]
        for row in shown.head(STATIC_ROWS).itertuples()
    ]
    return [
        "Of every label the model says how likely it is right, from the item and from all that was said "
        f"about it. {whole(doubted)} {'is' if doubted == 1 else 'are'} more likely wrong than right. "
        f"{which}, the least trusted first.",
        _table(
            "labels",
            "Labels, least likely right first",
            ["Item", "Label", "Given by", "Probably", "Chance that it is right"],
            rows,
        ),
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


def _disputed(found: Findings) -> Content:
    items = disputed_items(found)
    if not len(items):
        return ["No item has labels that disagree."]
    n = int((found.items["disagreement"] > 0).sum())
    several = int((found.items["n_labels"] > 1).sum())
    rows = [
        [
            _item(found, task),
            named(row.votes),
            named(row.label),
            share(row.probability),
            f"{row.disagreement:.2f}",
        ]
        for task, row in zip(items.index[:STATIC_ROWS], items.itertuples(), strict=False)
    ]
    cut = "" if n == len(items) else f" The {whole(len(items))} most disputed are here, all in labels.csv."
    return [
        f"{whole(n)} of {whole(several)} items with several labels have labels that disagree.{cut} "
        "Disagreement is in bits: 0 where all agree, 1 where two classes have equal votes. Where people "
        "disagree, the item or the instruction is often unclear.",
        _table("disputed", "Items, most disputed first", ["Item", "Votes", "Label", "Sure", "Bits"], rows),
    ]


def _suggestions(found: Findings) -> Content:
    asked = found.suggestions
    if not len(asked):
        return ["There are no suggestions."]
    shown = asked.head(MOST["suggestions"])
    rows = [
        [_item(found, row.task), named(row.worker), share(row.performance), f"{row.gain:.2f}"]
        for row in shown.head(STATIC_ROWS).itertuples()
    ]
    cut = (
        "" if len(shown) == len(asked) else f" The best {whole(len(shown))} of {whole(len(asked))} are here."
    )
    return [
        "Each line is one question to one annotator: an item whose label is in doubt, and someone who is "
        "likely to be right about this very item. The best come first; the gain is in bits, 1 being a yes or "
        f"no settled.{cut}",
        _table(
            "suggestions",
            "Questions worth asking, best first",
            ["Item", "Ask", "Chance of a right answer", "Expected gain"],
            rows,
        ),
    ]


def _making(found: Findings) -> Content:
    parts: list[object] = []
    if found.notes:
        parts += [
            element("h3", "On the way"),
            element("ul", *(element("li", short(note, 1000)) for note in found.notes), class_="notes"),
        ]
    if found.inputs:
        rows = [
            [
                str(f.get("role", "")),
                named(f.get("name", "")),
                whole(f.get("rows")),
                _code(f.get("sha256", "")),
            ]
            for f in found.inputs
        ]
        parts += [
            element("h3", "Files read"),
            table("Files read", ["What", "File", "Rows", "SHA-256"], rows, class_="inputs"),
        ]
    if found.settings:
        pairs = [
            element("div", element("dt", str(name)), element("dd", *_setting(value)))
            for name, value in found.settings.items()
        ]
        parts += [element("h3", "Settings"), element("dl", *pairs, class_="settings")]
    return [
        "The figures are estimates of a model that learnt from the same labels; it can be wrong, above all "
        "where all annotators make the same error. run.json has everything needed to do this again.",
        *parts,
    ]


def _table(name: str, caption: str, columns: list[str], rows: Sequence[Sequence[object]]) -> Markup:
    """The first rows of a table, for where no script runs; the script puts its own in their place."""
    few = table(caption, columns, rows[:STATIC_ROWS])
    return element("div", few, id=name, class_="data")


def _item(found: Findings, task: str) -> object:
    preview = found.previews.get(task)
    return named(f"{task}: {preview.text}" if preview and preview.text not in ("", task) else task)


def _code(text: object) -> Markup:
    return element("code", short(text))


def _setting(value: Any) -> list[object]:
    if isinstance(value, Mapping):
        return [element("div", f"{name} ", _code(_plain(inner))) for name, inner in value.items()]
    return [_code(_plain(value))]


def _plain(value: Any) -> str:
    return short(value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False), 500)


def _between(low: float, high: float) -> str:
    return "" if not np.isfinite(low) else f"{low:.0%} to {high:.0%}"
