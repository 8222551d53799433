"""What a review comes to, as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from annotmix._common.files import write_text
from annotmix._common.spreadsheet import to_csv
from annotmix.reading.decisions import NAME, Decisions
from annotmix.review.board import Board
from annotmix.review.queue import STATUSES, Index
from annotmix.runs.folder import RunFolder


def corrected_labels(index: Index, board: Board) -> pd.DataFrame:
    """One row per item: the class by its reviewers, else the label found; invalid items are left out.

    The columns are `item`, `label`, `probability` (1 where reviewers decided), `status` and `found`, the
    label before the review.
    """
    board.refresh()
    items, true = index.findings.items, board.true_labels()
    found = items["label"].to_numpy(dtype=object)
    decided = np.fromiter((name in true for name in index.items), dtype=bool, count=len(index.items))
    table = pd.DataFrame(
        {
            "item": index.items,
            "label": [true.get(name, label) for name, label in zip(index.items, found, strict=True)],
            "probability": np.where(decided, 1.0, items["probability"].to_numpy()),
            "status": np.array(list(STATUSES), dtype=object)[board.status],
            "found": found,
        }
    )
    return table[table["status"] != "invalid"].reset_index(drop=True)


def export(run: Path, decisions: Path | None, labels: Path | None) -> list[tuple[Path, int]]:
    """Write the decisions about a run, and its corrected labels, as CSV; the files and their rows."""
    folder = RunFolder(run)
    index = Index(folder.findings())
    written = []
    with Decisions(folder.path / NAME) as own:
        made = ((decisions, own.table), (labels, lambda: corrected_labels(index, Board(index, own))))
        for path, table in made:
            if path is not None:
                rows = table()
                write_text(path, to_csv(rows))
                written.append((path, len(rows)))
    return written
