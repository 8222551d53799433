"""The columns of a run's tables: their names, what they mean, and how the report shows them.

The CSV files, the saved findings and the report all follow these lists. A new column is computed in
`result_tables.py` (or `evaluate.py`) and declared here; no other file changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

#: How the report shows a cell. "interval" is a share with its bounds, "rated" a text with a share, both from
#: the columns `beside`; "votes" are the labels of the item, each with its annotator and the chance that it is
#: right; "matrix" is a picture of a confusion matrix and has no column in the table.
Kind = Literal[
    "item",
    "annotator",
    "class",
    "text",
    "flag",
    "count",
    "number",
    "share",
    "interval",
    "rated",
    "votes",
    "matrix",
]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        In the DataFrame and in the CSV file.
    kind : Kind
    meaning : str
        Its meaning; the report shows it with the heading.
    title : str
        Heading in the report; without one the column is in the files alone.
    beside : tuple of str
        Columns that the report shows in the same cell.
    details : bool
        Whether the report shows it in the view of one item or annotator alone, and not in tables.
    needed : bool, default=True
        Whether every run has it.
    """

    name: str
    kind: Kind
    meaning: str
    title: str = ""
    beside: tuple[str, ...] = ()
    details: bool = False
    needed: bool = True


TABLES = {
    "items": (
        Column("item", "item", "the item", "Item"),
        Column("label", "class", "most probable class, by classifier and labels together", "Label found"),
        Column("probability", "share", "chance that the label found is right", "Sure"),
        Column(
            "gold",
            "class",
            "true class of the item, where --gold gave it",
            "True class",
            details=True,
            needed=False,
        ),
        Column(
            "classifier",
            "class",
            "most probable class by the classifier, which sees the item alone and, where the approach "
            "allows, has not learnt its labels",
            "By the classifier alone",
            details=True,
        ),
        Column(
            "majority",
            "text",
            "class with the most votes; of a tie all these classes: cat = dog; empty without labels",
            "Majority",
        ),
        Column(
            "votes",
            "votes",
            "votes of each class, most first: cat (3), dog (1); the report says whose, and how likely each "
            "is right",
            "Votes",
            ("item",),
        ),
        Column("differs", "flag", "whether the label found is not among the classes with the most votes"),
        Column("n_labels", "count", "number of labels", "Labels", details=True),
        Column("agreement", "share", "share of the item's labels that are the label found"),
        Column(
            "disagreement",
            "number",
            "entropy of the votes in bits: 0 where all agree, 1 where two classes have equal votes",
            "Disagreement",
        ),
    ),
    "annotators": (
        Column("annotator", "annotator", "the annotator", "Annotator"),
        Column("n_labels", "count", "number of labels", "Labels"),
        Column(
            "accuracy",
            "interval",
            "estimated chance that a label is right, with a 95 % interval; best first by its lower end",
            "Accuracy",
            ("low", "high"),
        ),
        Column("low", "share", "lower bound of the interval"),
        Column("high", "share", "upper bound of the interval"),
        Column(
            "real_accuracy",
            "share",
            "share of right labels among the items with a known true label",
            "Real accuracy",
            needed=False,
        ),
        Column(
            "n_checked",
            "number",
            "number, or weight, of the labels of items with a known true label",
            needed=False,
        ),
        Column(
            "sensitivity",
            "share",
            "of several classes per item: share of the right classes that the annotator chose",
            "Right classes found",
            needed=False,
        ),
        Column(
            "specificity",
            "share",
            "of several classes per item: share of the wrong classes that the annotator left out",
            "Wrong classes left out",
            needed=False,
        ),
        Column("agreement", "share", "mean share of the others' labels that are the same", "Agreement"),
        Column(
            "confusion",
            "rated",
            "the wrong label given most often, as true class → label, and how often",
            "Most frequent confusion",
            ("confusion_rate",),
        ),
        Column("confusion_rate", "share", "share of that true class that gets that label"),
        Column(
            "matrix",
            "matrix",
            "labels of each true class: one row per true class",
            "Confusions",
            needed=False,
        ),
    ),
    "labels": (
        Column("item", "item", "the item", "Item"),
        Column("annotator", "annotator", "who gave the label", "Given by"),
        Column("label", "class", "the label given", "Label"),
        Column("time", "text", "when the label was given, in UTC, where the files say so", needed=False),
        Column("weight", "number", "how much the label counts", "Weight", needed=False),
        Column("consensus", "class", "label found for the item", "Probably"),
        Column("probability", "share", "chance that the label is right", "Chance it is right"),
    ),
    "suggestions": (
        Column("item", "item", "the item", "Item"),
        Column("annotator", "annotator", "who should label the item", "Annotator"),
        Column("gain", "number", "expected gain in bits, 1 being a yes or no settled", "Gain in bits"),
        Column("performance", "share", "chance that this annotator is right", "Chance of a right label"),
        Column("cost", "number", "cost of the label", "Cost", needed=False),
    ),
    "classes": (
        Column("class", "text", "the class", "Class"),
        Column("share", "share", "share of the labelled items that have the class", "Items"),
        Column("share_chosen", "share", "share of the answers that name the class", "Answers"),
        Column(
            "sensitivity", "share", "share of the items with the class where annotators chose it", "Found"
        ),
        Column(
            "specificity",
            "share",
            "share of the items without the class where annotators left it out",
            "Left out rightly",
        ),
        Column(
            "agreement", "share", "chance that two answers about an item agree about the class", "Agreement"
        ),
        Column("n_wrong", "count", "number of answers that are probably wrong about the class", "Wrong"),
    ),
    "annotator_classes": (
        Column("annotator", "text", "the annotator", "Annotator"),
        Column("class", "text", "the class", "Class"),
        Column("accuracy", "share", "share of answers that are right about the class", "Accuracy"),
        Column("sensitivity", "share", "share of the items with the class where it was chosen", "Found"),
        Column(
            "specificity", "share", "share of the items without the class where it was left out", "Left out"
        ),
        Column("n_true", "number", "expected number of items with the class", "Items with it"),
        Column("n_chosen", "number", "how often the annotator chose the class", "Chosen"),
    ),
}


def make_table(name: str, values: dict[str, Any] | pd.DataFrame) -> pd.DataFrame:
    """A table with its columns in the order declared; an undeclared column is an error.

    Tables of items and annotators are indexed by their first column.
    """
    table = pd.DataFrame(values)
    declared = [column.name for column in TABLES[name]]
    if unknown := set(table.columns) - set(declared):
        raise KeyError(
            f"columns of {name} that annotmix.runs.result_columns does not declare: {sorted(unknown)}"
        )
    table = table[[column for column in declared if column in table]]
    return table.set_index(declared[0]) if name in ("items", "annotators", "classes") else table
