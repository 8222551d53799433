"""How right a run was, where true labels are known."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import some
from annotmix.labels.metrics import perf_auroc
from annotmix.runs.findings import Findings, label_weights

BINS = 10
#: True labels that an annotator needs to be ranked.
LEAST_LABELS = 5


def score(
    found: Findings, predicted: NDArray[np.object_], truth: Mapping[str, str]
) -> tuple[dict[str, float], pd.DataFrame, list[str]]:
    """Scores, calibration of the consensus, and notes.

    Parameters
    ----------
    found : Findings
    predicted : array of str, shape (n_items,)
        What the classifier alone says about `found.items`.
    truth : mapping of item to true label

    Returns
    -------
    scores : dict
        "n" items with a true label; "clf-acc", "consensus-acc" and "majority-acc" (the mean over ties; only
        items with labels) on them; "label-auroc": how well the probability of a label tells right from wrong;
        "annotator-rank": Spearman's correlation of estimated and real accuracy over "annotators" with five
        such labels or more; "ece": expected calibration error of the consensus.
    calibration : DataFrame
        `confidence`, `accuracy`, `count`, a row a bin of the consensus' probability.
    notes : list of str
    """
    items = found.items
    known = [task for task in truth if task in items.index]
    if not known:
        raise ValueError(
            f"None of the {len(truth)} items with a true label is an item of the run. True labels are about "
            f"{some(list(truth))}, the run about {some(list(items.index))}."
        )
    notes = []
    if len(known) < len(truth):
        lost = [task for task in truth if task not in items.index]
        notes.append(
            f"{len(lost)} of {len(truth)} true labels are about items the run does not have: {some(lost)}."
        )
    if unknown := sorted(set(truth.values()) - set(found.classes)):
        notes.append(
            f"True labels that nobody ever gave, and which count as wrong everywhere: {some(unknown)}."
        )
    true = pd.Series({task: truth[task] for task in known}, dtype=object)
    own = items.loc[known]
    by_classifier = pd.Series(predicted, index=items.index).loc[known]
    right = own["label"].to_numpy() == true.to_numpy()
    scores = {
        "n": float(len(known)),
        "clf-acc": float(np.mean(by_classifier.to_numpy() == true.to_numpy())),
        "consensus-acc": float(right.mean()),
        **_majority(found.labels, true),
        **_labels(found.labels, true),
        **_annotators(found, true),
    }
    calibration = _calibration(own["probability"].to_numpy(dtype=float), right)
    gap = (calibration["confidence"] - calibration["accuracy"]).abs()
    scores["ece"] = float((gap * calibration["count"]).sum() / len(known))
    return scores, calibration, notes


def _majority(labels: pd.DataFrame, true: pd.Series) -> dict[str, float]:
    given = labels[labels["task"].isin(true.index)]
    if given.empty:
        return {"majority-acc": float("nan")}
    votes = given.assign(weight=label_weights(given)).groupby(["task", "label"], sort=False)["weight"].sum()
    winners = votes[votes == votes.groupby(level="task").transform("max")].reset_index()
    hit = winners["label"].to_numpy() == true.loc[winners["task"]].to_numpy()
    return {"majority-acc": float(pd.Series(hit).groupby(winners["task"].to_numpy()).mean().mean())}


def _labels(labels: pd.DataFrame, true: pd.Series) -> dict[str, float]:
    given = labels[labels["task"].isin(true.index)]
    if given.empty:
        return {"label-auroc": float("nan")}
    correct = given["label"].to_numpy() == true.loc[given["task"]].to_numpy()
    probability = given["probability"].to_numpy(dtype=float)
    return {"label-auroc": perf_auroc(correct, probability, label_weights(given))}


def _annotators(found: Findings, true: pd.Series) -> dict[str, float]:
    given = found.labels[found.labels["task"].isin(true.index)]
    weight = label_weights(given)
    correct = weight * (given["label"].to_numpy() == true.loc[given["task"]].to_numpy())
    by_worker = pd.DataFrame({"correct": correct, "size": weight}).groupby(given["worker"].to_numpy()).sum()
    real = by_worker.assign(mean=by_worker["correct"] / by_worker["size"])
    real = real[real["size"] >= LEAST_LABELS]
    if len(real) < 3 or real["mean"].nunique() < 2:
        return {"annotator-rank": float("nan"), "annotators": float(len(real))}
    estimated = found.annotators["accuracy"].loc[real.index]
    rank = real["mean"].rank().corr(estimated.astype(float).rank())
    return {"annotator-rank": float(rank), "annotators": float(len(real))}


def _calibration(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> pd.DataFrame:
    """Mean confidence, share right and number of items, a row a bin that has items."""
    edge = np.minimum((confidence * BINS).astype(int), BINS - 1)
    table = pd.DataFrame({"bin": edge, "confidence": confidence, "accuracy": right.astype(float)})
    bins = table.groupby("bin").agg(
        confidence=("confidence", "mean"), accuracy=("accuracy", "mean"), count=("accuracy", "size")
    )
    return bins.reset_index(drop=True)
