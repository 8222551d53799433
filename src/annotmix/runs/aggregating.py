"""`annotmix aggregate`: one label an item from a file of labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from annotmix.labels.aggregation import aggregate
from annotmix.reading import Columns, read_labels
from annotmix.runs.matching import Say


def aggregate_file(
    paths: Sequence[Path], method: str, seed: int, form: str | None, columns: Columns, say: Say
) -> pd.DataFrame:
    """Labels of every item by `method`: `task`, `label`, `n_labels`."""
    labelled = read_labels(paths, form, columns)
    a = labelled.annotations
    say(
        f"{len(a)} labels by {a.n_annotators} annotators on {a.n_items} items, {a.n_classes} "
        f"classes ({labelled.format})."
    )
    for note in labelled.notes:
        say(f"  - {note}")
    found = aggregate(a, method, random_state=seed)
    counts = pd.Series(a.labels_per_item, index=pd.Index(a.items, dtype=object))
    return pd.DataFrame(
        {
            "task": found.index.to_numpy(),
            "label": found.to_numpy(),
            "n_labels": counts.loc[found.index].to_numpy(),
        }
    )
