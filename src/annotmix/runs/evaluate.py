"""Scores of a run on known true labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import some
from annotmix.labels.metrics import perf_auroc
from annotmix.reading import Columns, read_truth
from annotmix.runs.findings import Findings, label_weights
from annotmix.runs.folder import RunFolder
from annotmix.runs.result_columns import make_table
from annotmix.runs.storage import write_findings

BINS = 10
#: Labels of known items that an annotator needs to be ranked.
LEAST_LABELS = 5


def evaluate(run: Path, truth: Path, columns: Columns) -> Findings:
    """Score a run on true labels; its files and its report show the scores from then on."""
    known, notes, source = read_truth(truth, columns)
    findings = score(RunFolder(run).findings(), known)
    findings = replace(
        findings,
        inputs=[*(own for own in findings.inputs if own["role"] != "truth"), vars(source)],
        notes=list(dict.fromkeys([*findings.notes, *notes])),
    )
    write_findings(run, findings)
    return findings


def score(findings: Findings, truth: Mapping[str, str]) -> Findings:
    """Findings with scores on true labels, calibration, and the real accuracy of every annotator.

    Parameters
    ----------
    findings : Findings
    truth : mapping of item to true label

    Returns
    -------
    Findings
        In `scores`: "n" items with a true label; "clf-acc", "consensus-acc" and "majority-acc" (the mean over
        ties; only items with labels) on them; "label-auroc": how well the probability of a label tells right
        from wrong; "annotator-rank": Spearman's correlation of estimated and real accuracy over "annotators"
        with five such labels or more; "ece": expected calibration error of the consensus. In `calibration`:
        one row per bin of the consensus' probability. In `annotators`: `real_accuracy` and `n_checked`.
    """
    items = findings.items
    truth, notes = _without_gold(items, truth)
    known = [item for item in truth if item in items.index]
    if not known:
        raise ValueError(
            f"None of the {len(truth)} items with a true label is an item of the run. True labels are about "
            f"{some(list(truth))}, the run about {some(list(items.index))}."
        )
    notes = [*findings.notes, *notes]
    if len(known) < len(truth):
        lost = [item for item in truth if item not in items.index]
        notes.append(
            f"{len(lost)} of {len(truth)} true labels are about items unknown to the run: {some(lost)}."
        )
    if unknown := sorted(set(truth.values()) - set(findings.classes)):
        notes.append(
            f"True labels that no annotator ever gave; they count as wrong everywhere: {some(unknown)}."
        )
    true = pd.Series({item: truth[item] for item in known}, dtype=object)
    own = items.loc[known]
    right = (own["label"] == true).to_numpy()
    labels = findings.labels[findings.labels["item"].isin(true.index)]
    correct = labels["label"].to_numpy() == true.loc[labels["item"]].to_numpy()
    annotators = _real_accuracy(findings.annotators, labels, correct)
    calibration = _calibration(own["probability"].to_numpy(dtype=float), right)
    gap = (calibration["confidence"] - calibration["accuracy"]).abs()
    scores = {
        "n": float(len(known)),
        "clf-acc": float((own["classifier"] == true).mean()),
        "consensus-acc": float(right.mean()),
        "majority-acc": _majority_accuracy(labels, true),
        "label-auroc": _label_auroc(labels, correct),
        **_rank(annotators),
        "ece": float((gap * calibration["count"]).sum() / len(known)),
    }
    return replace(findings, scores=scores, calibration=calibration, annotators=annotators, notes=notes)


def _without_gold(items: pd.DataFrame, truth: Mapping[str, str]) -> tuple[Mapping[str, str], list[str]]:
    """True labels of items whose true label was not learnt, and a note about the others."""
    if "gold" not in items:
        return truth, []
    learnt = set(items.index[items["gold"] != ""])
    left = {item: label for item, label in truth.items() if item not in learnt}
    if not left:
        raise ValueError(f"All {len(truth)} items with a true label are items of --gold, which were learnt.")
    if len(left) == len(truth):
        return truth, []
    return left, [
        f"{len(truth) - len(left)} of {len(truth)} true labels are about items of --gold, which were learnt; "
        "they do not count in the scores."
    ]


def _majority_accuracy(labels: pd.DataFrame, true: pd.Series) -> float:
    if labels.empty:
        return float("nan")
    weighted = labels.assign(weight=label_weights(labels))
    votes = weighted.groupby(["item", "label"], sort=False)["weight"].sum()
    winners = votes[votes == votes.groupby(level="item").transform("max")].reset_index()
    hit = winners["label"].to_numpy() == true.loc[winners["item"]].to_numpy()
    return float(pd.Series(hit).groupby(winners["item"].to_numpy()).mean().mean())


def _label_auroc(labels: pd.DataFrame, correct: NDArray[np.bool_]) -> float:
    if labels.empty:
        return float("nan")
    return perf_auroc(correct, labels["probability"].to_numpy(dtype=float), label_weights(labels))


def _real_accuracy(
    annotators: pd.DataFrame, labels: pd.DataFrame, correct: NDArray[np.bool_]
) -> pd.DataFrame:
    """The table of annotators with their share of right labels; nan without a label of a known item."""
    weight = label_weights(labels)
    sums = pd.DataFrame({"right": weight * correct, "all": weight})
    sums = sums.groupby(labels["annotator"].to_numpy()).sum()
    sums = sums.reindex(annotators.index, fill_value=0)
    table = annotators.assign(
        real_accuracy=(sums["right"] / sums["all"]).astype(float), n_checked=sums["all"]
    )
    return make_table("annotators", table.reset_index())


def _rank(annotators: pd.DataFrame) -> dict[str, float]:
    """Spearman's correlation of estimated and real accuracy, and over how many annotators."""
    ranked = annotators[annotators["n_checked"] >= LEAST_LABELS]
    rank = float("nan")
    if len(ranked) >= 3 and ranked["real_accuracy"].nunique() >= 2:
        rank = float(ranked["real_accuracy"].rank().corr(ranked["accuracy"].astype(float).rank()))
    return {"annotator-rank": rank, "annotators": float(len(ranked))}


def _calibration(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> pd.DataFrame:
    """Mean confidence, share right and number of items, one row per bin that has items."""
    edge = np.minimum((confidence * BINS).astype(int), BINS - 1)
    table = pd.DataFrame({"bin": edge, "confidence": confidence, "accuracy": right.astype(float)})
    bins = table.groupby("bin").agg(
        confidence=("confidence", "mean"), accuracy=("accuracy", "mean"), count=("accuracy", "size")
    )
    return bins.reset_index(drop=True)
