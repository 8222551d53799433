"""The results of a run about labels, annotators and items; files and report are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import count, some
from annotmix.runs.confusion_matrices import ConfusionMatrices
from annotmix.runs.crowd_agreement import CrowdAgreement
from annotmix.runs.set_findings import SetFindings
from annotmix.runs.unmatched import NOTHING_UNMATCHED, Unmatched

#: With a mean probability of the labels found below this, labels and classifier say too little.
HARDLY_SURE = 0.5


@dataclass(frozen=True)
class Preview:
    """The part of an item that the report shows.

    Parameters
    ----------
    text : str
        A text, shortened; or the name of the image file.
    image : bytes, optional
        A thumbnail, encoded as JPEG.
    """

    text: str = ""
    image: bytes | None = None


@dataclass(frozen=True, eq=False)
class Findings:
    """The results of a run.

    Names of items, annotators and classes are text here, as they will be shown. The columns of the tables
    are listed and explained in `annotmix.runs.result_columns`.

    Attributes
    ----------
    title : str
        The approach and the files, for a heading.
    classes : array of str, shape (C,)
    items : DataFrame, one row per item, indexed by its name
        Most probable label, its probability, votes, disagreement.
    annotators : DataFrame, one row per annotator, indexed by name
        Estimated accuracy with its interval, agreement with others, most frequent confusion.
    confusion : ConfusionMatrices
        P(label k | true class c) of every annotator in the order of `annotators`.
    labels : DataFrame, one row per label, least likely right first
        Probability that it is right, and the label found for its item.
    history : DataFrame, indexed by `epoch`
        `loss` and the scores of monitored sets ("valid/clf-acc").
    suggestions : DataFrame, one row per suggestion, best first
        Pairs of annotator and item to label next.
    previews : mapping of item to Preview
        Texts of all items, or thumbnails of those that are most likely to be shown.
    scores : mapping of str to float
        Where true labels are known: "consensus-acc", "majority-acc", "clf-acc", … and on how many items
        ("n"); see `annotmix.runs.evaluate.score`.
    calibration : DataFrame, optional
        Where true labels are known, one row per bin: `confidence`, `accuracy`, `count`.
    settings : mapping
        How it was made: approach, parameters, seed, versions; as "posterior", how much classifier and
        labels count.
    inputs : list of mappings
        The files read: `role`, `name`, `sha256`, `rows`.
    notes : list of str
        Messages of the run, about imputed values, dropped rows and unmatched items.
    groups : DataFrame, optional
        One row per group of annotators who err together; None where no pair could be judged.
    unmatched : Unmatched
        Labels that were left out because their items were not found, and items that are not suggested.
    kinds : mapping of str to DataFrame
        Tables about people, models and rules, where --annotators told them apart.
    agreement : CrowdAgreement, optional
        How far the annotators agree; runs of older versions have none.
    several : SetFindings, optional
        What is known about single classes, where items have several. `classes` are then names of sets of
        classes, such as "live|rock" and "(none)".
    """

    title: str
    classes: NDArray[Any]
    items: pd.DataFrame
    annotators: pd.DataFrame
    confusion: ConfusionMatrices
    labels: pd.DataFrame
    history: pd.DataFrame
    suggestions: pd.DataFrame
    previews: Mapping[str, Preview] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    calibration: pd.DataFrame | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: list[Mapping[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    groups: pd.DataFrame | None = None
    unmatched: Unmatched = NOTHING_UNMATCHED
    kinds: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    agreement: CrowdAgreement | None = None
    several: SetFindings | None = None

    @property
    def class_names(self) -> list[str]:
        """Names of the single classes."""
        return [str(name) for name in self.classes] if self.several is None else self.several.names

    @property
    def chance(self) -> float:
        """The accuracy of guessing: a class among all, or yes or no about each class."""
        return 1 / max(len(self.classes), 1) if self.several is None else 0.5


def label_weights(labels: pd.DataFrame) -> NDArray[np.float64]:
    """How much each label counts, shape (n,); `labels` as `Findings.labels`."""
    return np.asarray(labels["weight"] if "weight" in labels else np.ones(len(labels)), dtype=np.float64)


def is_gold(items: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether the true class of each item was learnt, shape (n,); `items` as `Findings.items`."""
    if "gold" not in items:
        return np.zeros(len(items), dtype=bool)
    gold = items["gold"]
    return np.asarray(gold.notna() & ~gold.isin([False, ""]), dtype=bool)


def items_to_score(items: pd.DataFrame, truth: Mapping[str, Any], what: str) -> tuple[list[str], list[str]]:
    """Items whose truth is known and was not learnt, and notes about the others; `items` as `Findings.items`.

    `what` is the name of one truth, such as "true label".
    """
    known, notes = [item for item in truth if item in items.index], list[str]()
    if not known:
        raise ValueError(
            f"None of the {len(truth)} items with a {what} is an item of the run. The {what}s are about "
            f"{some(list(truth))}, the run about {some(list(items.index))}."
        )
    if lost := [item for item in truth if item not in items.index]:
        notes.append(
            f"The run does not know the items of {len(lost)} of {count(len(truth), what)}: {some(lost)}."
        )
    gold = set(items.index[is_gold(items)])
    if n_gold := sum(item in gold for item in known):
        notes.append(
            f"The scores leave out {n_gold} of {count(len(known), 'item')} with a {what}: gold, whose "
            "true class was learnt."
        )
    return [item for item in known if item not in gold], notes


def least_sure(items: pd.DataFrame) -> pd.DataFrame:
    """`Findings.items` by the probability of the label found, smallest first."""
    return items.sort_values("probability", kind="stable")


def doubts(items: pd.DataFrame) -> list[str]:
    """Warnings about the labels found; `items` as `Findings.items`."""
    sure = items.loc[items["n_labels"] > 0, "probability"].mean()
    if not sure < HARDLY_SURE:
        return []
    return [
        f"The labels found are only {sure:.0%} sure on average: labels and classifier say too little. "
        "More labels per item help, or more --epochs where the classifier counts."
    ]
