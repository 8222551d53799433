"""Scores of a run on known true labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.files import link_or_copy
from annotmix._common.words import some
from annotmix.labels.annotations import ROUNDING, Annotations
from annotmix.labels.dawid_skene import dawid_skene
from annotmix.labels.metrics import perf_auroc
from annotmix.reading import Columns, read_truth
from annotmix.reading.label_files import read_true_sets
from annotmix.runs.conclusions import out_of_fold
from annotmix.runs.evaluate_sets import score_sets
from annotmix.runs.findings import Findings, is_gold, items_to_score, label_weights
from annotmix.runs.folder import RunFolder
from annotmix.runs.kind_tables import with_real_accuracy
from annotmix.runs.result_columns import make_table
from annotmix.runs.storage import FEATURES, write_findings

BINS = 10
#: Labels of known items that an annotator needs to be ranked.
LEAST_LABELS = 5


def evaluate(run: Path, truth: Path, columns: Columns) -> Findings:
    """Score a run on true labels; its files and its report show the scores from then on."""
    folder = RunFolder(run).require()
    several, known = folder.findings().several is not None, dict[str, Any]()
    if several:
        sets, notes, source = read_true_sets(truth, replace(columns, several=True))
        known.update(sets)
    else:
        labels, notes, source = read_truth(truth, columns)
        known.update(labels)
    with folder.replace() as stage:
        findings = score_sets(folder.findings(), known) if several else score(folder.findings(), known)
        findings = replace(
            findings,
            inputs=[*(own for own in findings.inputs if own["role"] != "truth"), vars(source)],
            notes=list(dict.fromkeys([*findings.notes, *notes])),
        )
        write_findings(stage, findings)
        link_or_copy(run / FEATURES, stage / FEATURES)
    return findings


def score(findings: Findings, truth: Mapping[str, str]) -> Findings:
    """Findings with scores on true labels, calibration, and the real accuracy of every annotator.

    Items whose labels were learnt and new ones, which have no labels in the run, have scores of their own.
    Items whose true class was learnt (gold) have none.

    Parameters
    ----------
    findings : Findings
    truth : mapping of item to true label

    Returns
    -------
    Findings
        In `scores`: "n" items with a true label, of which "learnt" have labels in the run and "new" have
        none. On learnt items: "consensus-acc", "majority-acc" (the mean over ties), "dawid-skene-acc", the
        lead over both, "majority-gap" and "dawid-skene-gap", with its standard error, "…-gap-se", and
        "out-of-fold-acc" where networks that have not seen the items classified them. On new items:
        "clf-acc". "label-auroc": how well the probability of a label tells right from wrong;
        "annotator-rank": Spearman's correlation of estimated and real accuracy over "annotators" with five
        such labels or more; "ece": expected calibration error of the consensus. In `calibration`: one row
        per bin of the consensus' probability. In `annotators`: `real_accuracy` and `n_checked`.
    """
    true, notes = _known(findings, truth)
    notes = [*findings.notes, *notes]
    if true.empty:
        return replace(findings, notes=notes)
    own = findings.items.loc[true.index]
    learnt = (own["n_labels"] > 0).to_numpy()
    right = (own["label"] == true).to_numpy()[learnt]
    labels = findings.labels[findings.labels["item"].isin(true.index)]
    correct = labels["label"].to_numpy() == true.loc[labels["item"]].to_numpy()
    annotators = _real_accuracy(findings.annotators, labels, correct)
    calibration = _calibration(own.loc[learnt, "probability"].to_numpy(dtype=float), right)
    gap = (calibration["confidence"] - calibration["accuracy"]).abs()
    scores = {
        "n": float(len(true)),
        "learnt": float(learnt.sum()),
        **_consensus(findings, true[learnt], labels, right),
        **_classifier(findings, (own["classifier"] == true).to_numpy(), learnt),
        "label-auroc": _label_auroc(labels, correct),
        **_rank(annotators),
        "ece": float(np.average(gap, weights=calibration["count"])) if len(gap) else float("nan"),
    }
    kinds = with_real_accuracy(findings.kinds, annotators)
    return replace(
        findings, scores=scores, calibration=calibration, annotators=annotators, notes=notes, kinds=kinds
    )


def _known(findings: Findings, truth: Mapping[str, str]) -> tuple[pd.Series, list[str]]:
    """True labels of items of the run whose true class was not learnt, and notes about the others."""
    kept, notes = items_to_score(findings.items, truth, "true label")
    if unknown := sorted(set(truth.values()) - set(findings.classes)):
        notes.append(
            f"True labels that no annotator ever gave; they count as wrong everywhere: {some(unknown)}."
        )
    return pd.Series({item: truth[item] for item in kept}, dtype=object), notes


def _classifier(findings: Findings, right: NDArray[np.bool_], learnt: NDArray[np.bool_]) -> dict[str, float]:
    """Accuracy on new items, and of networks that have not seen them on learnt items, where there are any."""
    scores = {"new": float((~learnt).sum())}
    if learnt.any() and out_of_fold(findings):
        scores = {"out-of-fold-acc": float(right[learnt].mean()), **scores}
    if not learnt.all():
        scores["clf-acc"] = float(right[~learnt].mean())
    return scores


def _consensus(
    findings: Findings, true: pd.Series, labels: pd.DataFrame, right: NDArray[np.bool_]
) -> dict[str, float]:
    """Accuracy of run, majority vote and Dawid–Skene on learnt items, and the lead of the run."""
    if true.empty:
        return {}
    by_rival = {"majority": _majority_right(labels, true), "dawid-skene": _dawid_skene_right(findings, true)}
    scores = {"consensus-acc": float(right.mean())}
    scores |= {f"{name}-acc": float(share.mean()) for name, share in by_rival.items()}
    for name, share in by_rival.items():
        ahead = right - share
        scores[f"{name}-gap"] = float(ahead.mean())
        scores[f"{name}-gap-se"] = float(np.sqrt((ahead**2).sum()) / len(ahead))  # as in McNemar's test
    return scores


def _majority_right(labels: pd.DataFrame, true: pd.Series) -> NDArray[np.float64]:
    """The share of right classes among those with the most votes, one entry per item of `true`."""
    weighted = labels.assign(weight=label_weights(labels))
    votes = weighted.groupby(["item", "label"], sort=False)["weight"].sum()
    winners = votes[votes >= votes.groupby(level="item").transform("max") * (1 - ROUNDING)].reset_index()
    hit = pd.Series(winners["label"].to_numpy() == true.loc[winners["item"]].to_numpy(), dtype=float)
    return np.asarray(hit.groupby(winners["item"].to_numpy()).mean().loc[true.index])


def _dawid_skene_right(findings: Findings, true: pd.Series) -> NDArray[np.float64]:
    """1 where Dawid–Skene on the labels and the gold of the run is right, else 0; per item of `true`."""
    items = findings.items
    annotations = Annotations.from_long(
        findings.labels, "item", "annotator", "label", classes=findings.classes, items=items.index
    )
    gold = items.loc[is_gold(items), "label"]
    labels = dawid_skene(annotations, gold=gold if len(gold) else None).labels
    return np.asarray(labels.reindex(true.index) == true, dtype=np.float64)


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
