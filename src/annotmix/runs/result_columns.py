"""The columns of a run's tables: their names, what they mean, and how the report shows them.

The CSV files, the saved findings and the report all follow these lists. A new column is computed in
`result_tables.py` (or `evaluate.py`) and declared here; no other file changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from annotmix.labels.kinds import KINDS

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
        Column("kind", "text", "people, models, rules or unknown, by --annotators", "Kind", needed=False),
        Column("n_labels", "count", "number of labels", "Labels"),
        Column(
            "unparsed",
            "count",
            "answers that could not be read as a label; they are missing",
            "No label",
            needed=False,
        ),
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
    "groups": (
        Column("annotators", "text", "annotators who err together", "Annotators"),
        Column("n_annotators", "count", "number of annotators", "Number"),
        Column("n_labels", "number", "mean number of their labels for an item with two or more", "Labels"),
        Column("votes", "number", "number of independent labels that these are worth", "Worth"),
        Column(
            "decides",
            "share",
            "share of items with another label where each of them counts fully than where they count as one",
            "Decides",
        ),
        Column("counts_less", "flag", "whether their labels count less in the label found"),
    ),
}

#: A share for each kind of annotators that has labels.
_BY_KIND = tuple(
    Column(kind, "share", f"share of the labels of {kind}", kind.capitalize(), needed=False) for kind in KINDS
)
#: Tables about kinds of annotators, in `Findings.kinds`; a run without --annotators FILE has none of them.
KIND_TABLES = {
    "crowd": (
        Column("annotator", "text", "an annotator with labels, or named by --annotators", "Annotator"),
        Column("kind", "text", "people, models, rules or unknown", "Kind"),
        Column("group", "text", "group, such as the family of a model", "Group"),
        Column("model", "text", "the model behind an annotator", "Model"),
        Column("prompt", "text", "its prompt", "Prompt"),
        Column("cost", "number", "cost of one label", "Cost"),
        Column("load", "number", "most labels that the annotator can give", "Load"),
    ),
    "kinds": (
        Column("kind", "text", "people, models, rules or unknown", "Kind"),
        Column("annotators", "count", "number of annotators with labels", "Annotators"),
        Column("labels", "count", "number of labels", "Labels"),
        Column("unparsed", "count", "answers that could not be read as a label", "No label", needed=False),
        Column("accuracy", "interval", "estimated share of right labels", "Accuracy", ("low", "high")),
        Column("low", "share", "lower bound of the interval"),
        Column("high", "share", "upper bound of the interval"),
        Column("real_accuracy", "share", "share of right labels where true labels are known", needed=False),
        Column("agreement", "share", "chance that two of them agree on an item", "Agreement"),
        Column("kappa", "number", "the same, corrected for chance"),
        Column("cost_per_label", "number", "mean cost of a label", "Cost of a label"),
        Column(
            "cost_per_right_label", "number", "cost of all labels by right labels", "Cost of a right label"
        ),
    ),
    "kind_agreement": (
        Column("kind", "text", "a kind", "Kind"),
        Column("other", "text", "another kind", "Other kind"),
        Column("n_items", "count", "items that both have labelled", "Items"),
        Column("agreement", "share", "chance that one of each agree on an item", "Agreement"),
        Column("kappa", "number", "the same, corrected for chance", "Kappa"),
    ),
    "kind_classes": (Column("class", "class", "the true class", "True class"), *_BY_KIND),
    "kind_confusions": (
        Column("class", "class", "the true class", "True class"),
        Column("label", "class", "the label given", "Label"),
        *_BY_KIND,
    ),
    "kind_items": (
        Column("item", "item", "the item", "Item"),
        Column("label", "class", "label found for the item", "Label found"),
        Column("probability", "share", "chance that the label found is right", "Sure"),
        *_BY_KIND,
    ),
    "replacements": (
        Column("model", "annotator", "the model", "Model"),
        Column("people", "count", "people whom it was compared with", "People"),
        Column("advantage", "share", "how often it represents the others as well as a person", "Advantage"),
        Column("experts", "share", "winning rate with epsilon 0.2", "ε = 0.2, experts"),
        Column("skilled", "share", "winning rate with epsilon 0.15", "ε = 0.15, skilled"),
        Column("crowd_workers", "share", "winning rate with epsilon 0.1", "ε = 0.1, crowd workers"),
    ),
}


#: Tables about single classes, in `SetFindings`, where items have several.
CLASS_TABLES = {
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
    declared = [column.name for column in (TABLES | KIND_TABLES | CLASS_TABLES)[name]]
    if unknown := set(table.columns) - set(declared):
        raise KeyError(
            f"columns of {name} that annotmix.runs.result_columns does not declare: {sorted(unknown)}"
        )
    table = table[[column for column in declared if column in table]]
    return table.set_index(declared[0]) if name in ("items", "annotators", "classes") else table
