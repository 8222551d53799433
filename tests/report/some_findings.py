"""Invented findings to make reports of: hostile names, many labels, and what is seldom missing in a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from annotmix.annotations import Annotations
from annotmix.findings import Findings, Preview

IMG = "<img src=x onerror=alert(1)>"
HOSTILE = [
    IMG,
    "\"'`><script>alert(2)</script>",
    "</script><script>alert(3)</script>",
    "\u202eright to left\u202c שלום",
    "🦊 \u2028 \u2029 &amp; &lt;b&gt;",
    "=HYPERLINK(1)",
    "n" * 10_000,
    "\x00\x1b[31m control",
]


def _items(named: Annotations, votes: Any, classes: Any, code: Any, probability: Any) -> pd.DataFrame:
    n = votes.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = votes / n[:, None]
        entropy = -np.nansum(np.where(share > 0, share * np.log2(share), 0), axis=1)
    texts = [
        ", ".join(f"{classes[k]} {row[k]}" for k in np.argsort(-row, kind="stable") if row[k])
        for row in votes
    ]
    mine = votes[np.arange(len(votes)), code]
    return pd.DataFrame(
        {
            "label": classes[code],
            "probability": probability,
            "votes": texts,
            "majority": classes[votes.argmax(axis=1)],
            "differs": mine < votes.max(axis=1),
            "n_labels": n,
            "agreement": np.where(n > 0, mine / np.maximum(n, 1), np.nan),
            "disagreement": np.where(n > 0, entropy, np.nan),
        },
        index=pd.Index(named.items, name="task"),
    )


def _annotators(
    named: Annotations, classes: Any, counts: Any, accuracy: Any, half: Any, confusion: Any
) -> pd.DataFrame:
    off = np.where(np.eye(len(classes), dtype=bool), 0, confusion).reshape(len(counts), -1)
    true, given = np.divmod(off.argmax(axis=1), len(classes))
    return pd.DataFrame(
        {
            "n_labels": counts,
            "accuracy": accuracy,
            "low": np.clip(accuracy - half, 0, 1),
            "high": np.clip(accuracy + half, 0, 1),
            "agreement": np.where(counts > 3, accuracy * 0.9, np.nan),
            "confusion": [f"{classes[c]} → {classes[k]}" for c, k in zip(true, given, strict=True)],
            "confusion_rate": off.max(axis=1),
        },
        index=pd.Index(named.annotators, name="worker"),
    )


def invented(
    n_items: int, n_annotators: int, n_classes: int, n_labels: int, names: list[str] | None = None
) -> Findings:
    """Drawn figures in the form of findings; `names` are those of the first items, annotators, classes."""
    rng = np.random.default_rng(0)
    code = rng.integers(n_classes, size=n_items)
    pairs = np.unique(rng.integers([n_items, n_annotators], size=(n_labels, 2)), axis=0)
    skill = rng.beta(6, 2, size=n_annotators)
    right = rng.random(len(pairs)) < skill[pairs[:, 1]]
    given = np.where(right, code[pairs[:, 0]], rng.integers(n_classes, size=len(pairs)))
    lists = []
    for kind, n in (("item", n_items), ("worker", n_annotators), ("class", n_classes)):
        own = [f"{kind} {i}" for i in range(n)]
        own[: len(names or [])] = (names or [])[:n]
        lists.append(np.array(own, dtype=object))
    named = Annotations(pairs[:, 0], pairs[:, 1], given, *lists)
    classes = lists[2]
    votes = np.zeros((n_items, n_classes), dtype=int)
    np.add.at(votes, (named.item, named.label), 1)
    probability = rng.beta(8, 1, size=n_items)
    confusion = np.stack([np.eye(n_classes) * s for s in skill])
    confusion += (1 - skill)[:, None, None] * rng.dirichlet(
        np.full(n_classes, 0.3), size=(n_annotators, n_classes)
    )
    quality = np.clip(
        np.where(named.label == code[named.item], 0.9, 0.1) + rng.normal(scale=0.05, size=len(named)), 0, 1
    )
    long = named.to_long().assign(probability=quality, consensus=classes[code[named.item]])
    counts = named.labels_per_annotator
    asked = rng.integers(n_items, size=200)
    return Findings(
        title=names[0] if names else "Invented figures",
        classes=classes,
        items=_items(named, votes, classes, code, probability),
        annotators=_annotators(named, classes, counts, skill, 1 / np.sqrt(np.maximum(counts, 1)), confusion),
        confusion=confusion,
        labels=long.sort_values("probability", kind="stable").reset_index(drop=True),
        history=pd.DataFrame({"loss": [2.0, 1.0, 0.8]}, index=pd.Index([1, 2, 3], name="epoch")),
        suggestions=pd.DataFrame(
            {"task": lists[0][asked], "worker": lists[1][rng.integers(n_annotators, size=200)],
             "gain": np.sort(rng.random(200))[::-1], "performance": rng.random(200)}
        ),
        previews={name: Preview(f"{name} " * 20) for name in lists[0]},
        settings={"approach": "annot-mix", **({name: name for name in names} if names else {})},
        inputs=[{"role": "labels", "name": name, "sha256": name, "rows": 1} for name in names or []],
        notes=list(names or []),
    )  # fmt: skip
