"""The labels that a crowd would give the items of a run: for questions without a single truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from annotmix._common.files import write_text
from annotmix._common.spreadsheet import to_csv
from annotmix.labels.group_opinions import compare_groups
from annotmix.labels.kinds import UNKNOWN
from annotmix.labels.soft_labels import SoftLabels
from annotmix.runs.findings import Findings
from annotmix.runs.folder import RunFolder


def write_soft_labels(run: Path, out: Path) -> tuple[int, SoftLabels]:
    """Write the labels that the crowd of a run would give its items to a CSV file.

    Where the table of annotators (--annotators FILE) names groups, or else kinds, the file has the labels
    that each of them would give, too.

    Returns
    -------
    int
        Number of items.
    SoftLabels
    """
    if RunFolder(run).findings().several is not None:
        raise ValueError("--soft is for one class per item, and this run has several.")
    posterior, findings = RunFolder(run).read("posterior", "findings")
    soft: SoftLabels = posterior.soft_labels()
    table = soft_table(soft)
    if groups := _groups(findings):
        a = posterior.annotations
        group = np.array([groups.get(str(name), "") for name in a.annotators], dtype=object)
        compared = compare_groups(a, dict(zip(a.annotators.tolist(), group, strict=True)))
        own = compared.soft_labels.rename(columns="P({})".format).reset_index()
        counts = {
            name: a.keep((group == name)[a.annotator]).labels_per_item for name in own["group"].unique()
        }
        own["n_labels"] = np.concatenate(list(counts.values()))
        table.insert(0, "group", "all")
        table = pd.concat([table, own[[*table.columns]]])
    write_text(out, to_csv(table))
    return len(soft.values), soft


def _groups(findings: Findings) -> dict[str, str]:
    """The group of each annotator, or else the kind; empty unless there are two."""
    crowd = findings.kinds.get("crowd")
    if crowd is None:
        return {}
    counted = crowd[crowd["annotator"].isin(findings.annotators.index)]
    for column, nothing in (("group", ""), ("kind", UNKNOWN)):
        known = counted[counted[column] != nothing]
        if known[column].nunique() > 1:
            return dict(zip(known["annotator"], known[column], strict=True))
    return {}


def soft_table(soft: SoftLabels) -> pd.DataFrame:
    """One row per item: `item`, `n_labels`, and the share of the crowd for every class, "P(class)"."""
    table = soft.probabilities.rename(columns="P({})".format).reset_index()
    table.insert(1, "n_labels", soft.annotations.labels_per_item)
    return table
