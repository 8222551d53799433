"""The section of the report about single classes, where items have several."""

from __future__ import annotations

from annotmix.runs.findings import Findings
from annotmix.runs.report.charts import Content
from annotmix.runs.report.formatting import named, share, whole
from annotmix.runs.report.markup import element
from annotmix.runs.report.page import table
from annotmix.runs.result_columns import CLASS_TABLES

#: Classes, and pairs of annotator and class, that the tables list.
MOST_CLASSES, MOST_PAIRS = 200, 500


def single_classes(findings: Findings) -> Content:
    """How well each class is known, and by whom; empty where items have one class."""
    several = findings.several
    if several is None or not len(several.classes):
        return []
    known = several.classes["sensitivity"].dropna()
    overlooked = (
        [
            element(
                "p",
                "Annotators overlook ",
                named(known.idxmin(), 40),
                f" most: they choose it for {known.min():.0%} of the items that have it.",
            )
        ]
        if len(known)
        else []
    )
    pairs = several.annotators.assign(n=several.annotators["n_true"]).sort_values(
        "n", ascending=False, kind="stable"
    )
    return [
        "An item may have any number of classes. Every class is judged on its own: does it belong to the "
        "item? A label is right where exactly the right classes were chosen; an annotator’s accuracy is the "
        "share of right answers, yes or no, over all classes. findings/classes.csv and "
        "findings/annotator_classes.csv have all figures.",
        *overlooked,
        _table("Classes", "classes", several.classes.reset_index().head(MOST_CLASSES)),
        element(
            "details",
            element("summary", "Annotators by class"),
            _table("Annotators by class, most items first", "annotator_classes", pairs.head(MOST_PAIRS)),
        ),
    ]


def _table(caption: str, name: str, rows: object) -> object:
    columns = [column for column in CLASS_TABLES[name] if column.title]
    shown = {"share": share, "count": whole, "number": whole, "text": named}
    cells = [
        [shown[column.kind](row[column.name]) for column in columns]
        for row in rows.to_dict("records")  # type: ignore[attr-defined]
    ]
    return table(caption, [column.title for column in columns], cells)
