"""Names that are hard to write and to read again."""

from __future__ import annotations

import json

import numpy as np

#: Names of items.
NASTY = [
    "-->",
    "'-->",
    "''-->",
    "-17",
    "'-17",
    "-17b",
    "=1+1",
    "'=1+1",
    "''=",
    "@x",
    "+49 170 123",
    "+49170123",
    "-",
    "'",
    "''",
    "'quoted'",
    "O'Brien",
    "Größe",
    '"quoted"',
    "a,b;c|d",
    "two\nlines",
    "carriage\rreturn",
    "tab\tinside",
    "'\tx",
    "=HYPERLINK(\"http://x\",'y')",
    "–",
    "🙂",
    "007",
    "1.0",
    "NULL",
]
ANNOTATORS = ["=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0", "-ann", '@bob, the "builder"']
CLASSES = ["-->", "'-->", "<--"]


def write_nasty_problem(folder, seed=0):
    """Labels and features with such names as JSON Lines, which keeps every text as it is."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=len(NASTY))
    items = [{"item": item, "x": float(label + rng.normal())} for item, label in zip(NASTY, y, strict=True)]
    labels = []
    for item, label in zip(NASTY, y, strict=True):
        for annotator in ANNOTATORS[:3] if label else ANNOTATORS[1:]:
            chosen = label if rng.random() < 0.8 else rng.integers(3)
            labels.append({"item": item, "annotator": annotator, "label": CLASSES[chosen]})
    for name, rows in (("items", items), ("labels", labels)):
        text = "\n".join(json.dumps(row) for row in rows)
        (folder / f"{name}.jsonl").write_text(text + "\n", "utf-8")
