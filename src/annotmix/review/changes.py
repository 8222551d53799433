"""What changed when a run was learnt again."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from annotmix.runs.findings import Findings

#: Items and annotators that are listed.
MOST = 50
#: An annotator has moved whose accuracy differs by this much.
MOVED = 0.02


def changes(before: Findings, after: Findings, decided: Collection[str]) -> dict[str, Any]:
    """The difference of two runs as JSON.

    Parameters
    ----------
    before, after : Findings
    decided : collection of str
        Items whose class reviewers gave.
    """
    old = before.items[["label", "probability"]]
    both = old.join(after.items[["label", "probability"]].add_suffix("_after"), how="inner")
    other = both[both["label"] != both["label_after"]].sort_values("probability_after", ascending=False)
    beyond = ~other.index.isin(list(decided))
    new = after.annotators[["accuracy"]].add_suffix("_after")
    who = before.annotators[["accuracy"]].join(new, how="inner")
    who["rise"] = who["accuracy_after"] - who["accuracy"]
    moved = who[who["rise"].abs() >= MOVED]
    moved = moved.loc[moved["rise"].abs().sort_values(ascending=False).index]
    return {
        "items": len(both),
        "other": len(other),
        "beyond": int(beyond.sum()),
        "wrong_before": float((1 - both["probability"]).sum()),
        "wrong_after": float((1 - both["probability_after"]).sum()),
        "examples": [
            {"item": str(item), "before": row.label, "after": row.label_after, "decided": not further}
            for item, row, further in zip(other.index, other.itertuples(), beyond, strict=True)
        ][:MOST],
        "moved": len(moved),
        "annotators": [
            {"annotator": str(name), "before": float(row.accuracy), "after": float(row.accuracy_after)}
            for name, row in zip(moved.index, moved.itertuples(), strict=True)
            if np.isfinite(row.rise)
        ][:MOST],
    }
