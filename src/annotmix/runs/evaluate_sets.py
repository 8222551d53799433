"""Scores of a run whose items have several classes, on known true sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from annotmix._common.words import some
from annotmix.labels.label_sets import Bools
from annotmix.labels.metrics import set_scores
from annotmix.labels.set_texts import write_set
from annotmix.runs.conclusions import out_of_fold
from annotmix.runs.findings import Findings, items_to_score
from annotmix.runs.result_columns import make_table
from annotmix.runs.set_findings import members_of


def score_sets(findings: Findings, truth: Mapping[str, tuple[str, ...]]) -> Findings:
    """Findings with scores on true sets of classes, and the real accuracy of every annotator.

    Returns
    -------
    Findings
        In `scores`: "n" items with a true set, of which "learnt" have answers and "new" have none; on learnt
        items "subset-acc", "macro-f1", "micro-f1" and "hamming" (see `annotmix.labels.metrics.set_scores`),
        and the same of the vote by class as "vote-…"; of the classifier as "out-of-fold-…" on learnt items,
        and as "clf-…" on new ones. In `annotators`: `real_accuracy`, the share of right answers, yes or no
        about one class, and `n_checked`.
    """
    several = findings.several
    assert several is not None
    known, true, notes = _known(findings, truth, several.names)
    notes = [*findings.notes, *notes]
    if not len(known):
        return replace(findings, notes=notes)
    items = findings.items.loc[known]
    learnt = (items["n_labels"] > 0).to_numpy()
    scores = {"n": float(len(known)), "learnt": float(learnt.sum()), "new": float((~learnt).sum())}
    parts = [("", "label", learnt), ("clf-", "classifier", ~learnt)]
    if out_of_fold(findings):
        parts.insert(1, ("out-of-fold-", "classifier", learnt))
    for prefix, column, rows in parts:
        if rows.any():
            found = set_scores(true[rows], several.members(items.loc[rows, column]))
            scores |= {prefix + name: value for name, value in found.items()}
    labels = findings.labels[findings.labels["item"].isin(set(known))]
    place = pd.Index(known).get_indexer(labels["item"])
    chosen = several.members(labels["label"])
    if learnt.any():
        votes = np.zeros(true.shape)
        np.add.at(votes, place, chosen)
        voted = votes > items["n_labels"].to_numpy()[:, None] / 2
        vote_scores = set_scores(true[learnt], voted[learnt])
        scores |= {f"vote-{name}": value for name, value in vote_scores.items()}
    right = pd.Series((chosen == true[place]).mean(axis=1)).groupby(labels["annotator"].to_numpy())
    annotators = findings.annotators.assign(
        real_accuracy=right.mean().reindex(findings.annotators.index).astype(float),
        n_checked=right.size().reindex(findings.annotators.index, fill_value=0).astype(float),
    )
    table = make_table("annotators", annotators.reset_index())
    return replace(findings, scores=scores, annotators=table, notes=notes)


def _known(
    findings: Findings, truth: Mapping[str, tuple[str, ...]], names: list[str]
) -> tuple[list[str], Bools, list[str]]:
    """Items of the run with a true set that was not learnt, these sets, and notes about the others."""
    kept, notes = items_to_score(findings.items, truth, "true set")
    unknown = sorted({name for own in truth.values() for name in own} - set(names))
    if unknown:
        raise ValueError(
            f"The truth names classes that no annotator ever chose: {some(unknown)}. Known classes are "
            f"{some(names)}; leave these items out, or correct the names."
        )
    return kept, members_of([write_set(truth[item]) for item in kept], names), notes
