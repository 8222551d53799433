"""The labels that a crowd would give the items of a run: for questions without a single truth."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from annotmix._common.files import write_text
from annotmix._common.spreadsheet import to_csv
from annotmix.labels.soft_labels import SoftLabels
from annotmix.runs.folder import RunFolder


def write_soft_labels(run: Path, out: Path) -> tuple[int, SoftLabels]:
    """Write the labels that the crowd of a run would give its items to a CSV file.

    Returns
    -------
    int
        Number of items.
    SoftLabels
    """
    (model,) = RunFolder(run).read("model")
    soft: SoftLabels = model.posterior_.soft_labels()
    write_text(out, to_csv(soft_table(soft)))
    return len(soft.values), soft


def soft_table(soft: SoftLabels) -> pd.DataFrame:
    """One row per item: `item`, `n_labels`, and the share of the crowd for every class, "P(class)"."""
    table = soft.probabilities.rename(columns="P({})".format).reset_index()
    table.insert(1, "n_labels", soft.annotations.labels_per_item)
    return table
