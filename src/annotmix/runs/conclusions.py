"""What a run's findings come to, the same in its report, its summary and on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from annotmix.labels.err_together import DECIDES
from annotmix.labels.posterior import n_probably_wrong
from annotmix.labels.soft_labels import SURE
from annotmix.runs.findings import Findings, doubts
from annotmix.runs.leaks import LEAKS


class Counts(NamedTuple):
    """How much of everything a run has."""

    annotators: int
    items: int
    labelled: int
    labels: int
    wrong: int

    @property
    def unlabelled(self) -> int:
        """Items without labels."""
        return self.items - self.labelled

    @property
    def per_item(self) -> float:
        """Mean number of labels of a labelled item."""
        return self.labels / max(self.labelled, 1)


def counts_of(findings: Findings) -> Counts:
    """The numbers of annotators, items, labelled items, labels and probably wrong labels.

    A soft label, which has several rows, is one label. A set of classes is wrong where it names a class that
    is probably wrong, or overlooks one: where it is not the set found.
    """
    wrong, n_labels = probably_wrong(findings.labels)
    if findings.several is not None:
        wrong = int((findings.labels["label"] != findings.labels["consensus"]).sum())
    labelled = int((findings.items["n_labels"] > 0).sum())
    return Counts(len(findings.annotators), len(findings.items), labelled, n_labels, wrong)


def probably_wrong(labels: pd.DataFrame) -> tuple[int, int]:
    """The number of labels with a probability of being right below 1/2, and that of all labels.

    Several rows of one annotator for one item are one soft label: right with the mean probability of its
    classes by their weights. `labels` as `Findings.labels`.
    """
    right = labels["probability"]
    if "weight" in labels:
        weight = labels["weight"].clip(lower=np.finfo(float).tiny)
        sums = pd.DataFrame({"right": weight * right, "all": weight})
        sums = sums.groupby([labels["item"], labels["annotator"]], sort=False).sum()
        right = sums["right"] / sums["all"]
    return n_probably_wrong(right), len(right)


def by_reliability(annotators: pd.DataFrame) -> pd.DataFrame:
    """`Findings.annotators` by the lower end of their interval, greatest first."""
    return annotators.sort_values("low", ascending=False, kind="stable")


def extremes(annotators: pd.DataFrame) -> tuple[pd.Series, pd.Series] | None:
    """The annotators with the greatest lower and the smallest upper end of the interval.

    None where these intervals meet: labels do not suffice to tell the best from the worst. So nobody is best
    or worst by a handful of labels. `annotators` as `Findings.annotators`.
    """
    known = annotators.dropna(subset=["low", "high"])
    if known.empty:
        return None
    best, worst = known.iloc[int(known["low"].argmax())], known.iloc[int(known["high"].argmin())]
    return (best, worst) if best["low"] > worst["high"] else None


def out_of_fold(findings: Findings) -> bool:
    """Whether networks that have not seen the learnt items classified them, in `items`."""
    weights = findings.settings.get("posterior")
    if not isinstance(weights, Mapping):
        return False
    if "out of fold" in weights:
        return bool(weights["out of fold"])
    with_it, without = weights.get("likelihood with"), weights.get("likelihood without")
    if with_it is None or without is None or np.isnan([with_it, without]).any():
        return False
    return bool(with_it != without)  # the same number twice: there was no classifier to ask


def rests_on(findings: Findings) -> str:
    """A sentence about how much classifier and labels count; empty where the run does not know."""
    weights = findings.settings.get("posterior")
    if not isinstance(weights, Mapping) or "classifier" not in weights:
        return ""
    if weights["classifier"]:
        trust = f"with a weight of {weights['classifier']:g} for the classifier"
        return f"The labels found rest on labels and classifier together, {trust}{_together(weights)}."
    why = (
        "the classifier does not predict a label better than the other labels of its item do"
        if out_of_fold(findings)
        else "no network that has not seen an item could be asked about it"
    )
    return f"The labels found rest on labels alone, as {why}{_together(weights)}."


def _together(weights: Mapping[str, Any]) -> str:
    """How far labels of one item err together, by the example of three."""
    correlation = weights.get("correlation") or 0.0
    if not correlation:
        return ""
    return (
        f"; annotators err together, so three labels of one item count as {3 / (1 + 2 * correlation):.1f} "
        "independent ones"
    )


def disagreement(rise: float) -> str:
    """A sentence about where disagreement comes from; `rise` as in `SoftLabels`."""
    if not rise > SURE:
        return "One right class per item and errors of annotators explain the labels as well as votes do."
    return (
        "Annotators disagree about the items themselves: the votes of an item predict a further label better "
        f"than one right class per item and errors of annotators do, by {rise:.1f} standard errors. Either "
        "the items are hard or ambiguous, or annotators err together, or the question is a matter of "
        "opinion. For opinions use annotmix export RUN --soft FILE, the share of the crowd for every class, "
        "in place of one label."
    )


def warnings_of(findings: Findings) -> list[str]:
    """Messages that a reader must not miss: labels left out, doubts, useless or leaking features."""
    missed = [note for note in findings.notes if any(part in note for part in ("not help", LEAKS, DECIDES))]
    # that a whole set is exactly right is seldom sure
    unsure = doubts(findings.items) if findings.several is None else []
    unmatched = [findings.unmatched.note] if findings.unmatched.note else []
    weights = findings.settings.get("posterior")
    rise = weights.get("rise by votes", 0.0) if isinstance(weights, Mapping) else 0.0
    opinions = [disagreement(rise)] if rise > SURE else []
    return list(dict.fromkeys([*unmatched, *unsure, *missed, *opinions]))
