"""Invented findings to make reports of: hostile names, many labels, and what is seldom missing in a run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import annotator_agreement
from annotmix.labels.posterior import Posterior
from annotmix.reading.times import iso
from annotmix.runs.confusion_matrices import ConfusionMatrices
from annotmix.runs.crowd_agreement import crowd_agreement
from annotmix.runs.findings import Findings, Preview
from annotmix.runs.result_columns import make_table
from annotmix.runs.result_tables import item_table

UNKNOWN_TO_TWO_STAGES = ["accuracy", "low", "high", "agreement", "confusion_rate"]
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
    for kind, n in (("item", n_items), ("annotator", n_annotators), ("class", n_classes)):
        own = [f"{kind} {i}" for i in range(n)]
        own[: len(names or [])] = (names or [])[:n]
        lists.append(np.array(own, dtype=object))
    named = Annotations(pairs[:, 0], pairs[:, 1], given, *lists)
    classes = lists[2]
    probability = np.maximum(rng.beta(8, 1, size=n_items), 0.5)  # of the most probable class
    q = np.repeat(((1 - probability) / n_classes)[:, None], n_classes, axis=1)
    q[np.arange(n_items), code] = probability
    confusion = np.stack([np.eye(n_classes) * s for s in skill])
    confusion += (1 - skill)[:, None, None] * rng.dirichlet(
        np.full(n_classes, 0.3), size=(n_annotators, n_classes)
    )
    quality = np.clip(
        np.where(named.label == code[named.item], 0.9, 0.1) + rng.normal(scale=0.05, size=len(named)), 0, 1
    )
    long = named.to_long().assign(probability=quality, consensus=classes[code[named.item]])
    long = make_table("labels", long)
    asked = rng.integers(n_items, size=200)
    return Findings(
        title=names[0] if names else "Invented figures",
        classes=classes,
        items=_items(named, q),
        annotators=_annotators(named, skill, confusion),
        confusion=ConfusionMatrices.of(confusion),
        labels=long.sort_values("probability", kind="stable").reset_index(drop=True),
        history=pd.DataFrame({"loss": [2.0, 1.0, 0.8]}, index=pd.Index([1, 2, 3], name="epoch")),
        suggestions=make_table(
            "suggestions",
            {"item": lists[0][asked], "annotator": lists[1][rng.integers(n_annotators, size=200)],
             "gain": np.sort(rng.random(200))[::-1], "performance": rng.random(200)}
        ),
        previews={name: Preview(f"{name} " * 20) for name in lists[0]},
        settings={"approach": "annot-mix", **({name: name for name in names} if names else {})},
        inputs=[{"role": "labels", "name": name, "sha256": name, "rows": 1} for name in names or []],
        notes=list(names or []),
        agreement=crowd_agreement(named),
    )  # fmt: skip


def small() -> Findings:
    """30 annotators, four classes, 200 items; of three annotators the agreement is not known."""
    found = invented(200, 30, 4, 500)
    found.annotators.loc[["annotator 3", "annotator 8", "annotator 21"], "agreement"] = float("nan")
    return found


def over_time() -> Findings:
    """Findings whose labels have times."""
    found = invented(200, 6, 4, 900)
    seconds = 1.7e9 + 600 * np.arange(len(found.labels))
    return replace(found, labels=found.labels.assign(time=iso(seconds)))


def bare() -> Findings:
    """Findings without labels, opinions, history, suggestions or anything else that may be missing."""
    found, unknown = small(), float("nan")
    return replace(
        found,
        labels=found.labels.iloc[:0],
        items=found.items.assign(
            n_labels=0, disagreement=unknown, agreement=unknown, differs=False, votes=""
        ),
        annotators=found.annotators.assign(
            n_labels=0, confusion="", **dict.fromkeys(UNKNOWN_TO_TWO_STAGES, unknown)
        ),
        confusion=ConfusionMatrices.of(found.confusion.whole * unknown),
        history=found.history.iloc[:0],
        suggestions=found.suggestions.iloc[:0],
        previews={},
        settings={},
        notes=[],
        agreement=None,
    )


def _items(named: Annotations, q: Any) -> pd.DataFrame:
    nothing = np.zeros(0, np.int64)
    answer: Any = SimpleNamespace(q=q, gold=(nothing, nothing))
    return item_table(Posterior(named, answer), q)


def _annotators(named: Annotations, skill: Any, confusion: Any) -> pd.DataFrame:
    counts, classes = named.labels_per_annotator, named.classes
    half = 1 / np.sqrt(np.maximum(counts, 1))
    off = np.where(np.eye(len(classes), dtype=bool), 0, confusion).reshape(len(counts), -1)
    true, given = np.divmod(off.argmax(axis=1), len(classes))
    return make_table(
        "annotators",
        {
            "annotator": named.annotators,
            "n_labels": counts,
            "accuracy": skill,
            "low": np.clip(skill - half, 0, 1),
            "high": np.clip(skill + half, 0, 1),
            "agreement": annotator_agreement(named)[0],
            "confusion": [f"{classes[c]} → {classes[k]}" for c, k in zip(true, given, strict=True)],
            "confusion_rate": off.max(axis=1),
        },
    )
