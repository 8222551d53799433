"""The section of the report that says how far annotators agree."""

from __future__ import annotations

import numpy as np
import pandas as pd

from annotmix._common.words import count
from annotmix.labels.agreement import usual
from annotmix.runs.findings import Findings
from annotmix.runs.report.charts import Content
from annotmix.runs.report.formatting import named, share
from annotmix.runs.report.markup import Markup, element
from annotmix.runs.report.page import scrolling_table

#: Classes that are shown at once.
MOST_CLASSES = 10


def agreement(findings: Findings) -> Content:
    """Krippendorff's α in words, and the classes on which annotators agree least."""
    found = findings.agreement
    if found is None:
        return []
    if not found.n_items:
        return ["No item has labels of two annotators, so nobody knows how far they agree."]
    if np.isnan(found.alpha):
        return ["All items with two labels or more have labels of one class, so chance explains them too."]
    kappa = "" if np.isnan(found.fleiss_kappa) else f" Fleiss' κ is {found.fleiss_kappa:.3f}."
    return [
        f"Two labels of one item are the same in {share(found.percent)} of cases, counted on "
        f"{count(found.n_items, 'item')} with two labels or more. Some of that is chance. Krippendorff's α "
        "corrects for it: 1 where all agree, 0 where labels have nothing to do with the item. Here α is "
        f"{_alpha(found.alpha, found.low, found.high)}.{kappa}",
        f"{usual(found.alpha, found.low, found.high)} This is about single labels: the labels found in this "
        "run weigh all labels of an item, and are usually more reliable than one of them.",
        "The table has α with its interval for each class against all others, the least reliable first. "
        "Agreement is the chance that a second label of an item names the class where a first one does. "
        "Share is how many of all labels name it.",
        *_classes(found.classes),
    ]


def _classes(classes: pd.DataFrame) -> list[Markup]:
    """The least reliable classes, and the others to be opened."""
    columns = ["Class", "α", "Agreement", "Share"]
    rows = [
        [
            named(name, 40),
            _number(row["alpha"])
            + ("" if np.isnan(row["low"]) else f" ({_number(row['low'])} to {_number(row['high'])})"),
            _percent(row["agreement"]),
            _percent(row["share"]),
        ]
        for name, row in classes.iterrows()
    ]
    caption = "Agreement on every class against all others, the least reliable first"
    parts = [scrolling_table(caption, columns, rows[:MOST_CLASSES])]
    if rest := rows[MOST_CLASSES:]:
        summary = element("summary", f"{len(rest)} more {'class' if len(rest) == 1 else 'classes'}")
        parts.append(
            element("details", summary, scrolling_table("Agreement on the other classes", columns, rest))
        )
    return parts


def _alpha(alpha: float, low: float, high: float) -> str:
    if np.isnan(low):
        return _number(alpha)
    return f"{_number(alpha)}, with a 95% interval from {_number(low)} to {_number(high)}"


def _percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.0%}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"
