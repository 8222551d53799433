"""The section of the report about people, models and rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from annotmix.labels.kinds import KINDS, UNKNOWN
from annotmix.runs.findings import Findings
from annotmix.runs.report.charts import Content
from annotmix.runs.report.formatting import between, named, share, whole
from annotmix.runs.report.markup import Markup, element
from annotmix.runs.report.page import scrolling_table

#: Rows of the tables about classes, confusions, items and models.
MOST = 10


def people_and_models(findings: Findings) -> Content:
    """Kinds of annotators compared; empty where the run does not know them."""
    kinds = findings.kinds.get("kinds", pd.DataFrame())
    if not len(kinds):
        return []
    return [
        _summary(kinds),
        "The estimates rest on the labels found. Where one kind gives most of the labels and its annotators "
        "make the same errors, the labels found follow them, and the others look worse than they are. True "
        "labels of some items (--gold) set this right.",
        _kinds(kinds),
        *_agreement(findings.kinds["kind_agreement"]),
        *_errors(findings),
        *_replacements(findings.kinds.get("replacements")),
    ]


def _summary(kinds: pd.DataFrame) -> str:
    sentences = [
        f"{'Unknown annotators' if row['kind'] == UNKNOWN else row['kind'].capitalize()} are right in "
        f"{row['accuracy']:.0%} of their labels, by estimate."
        for row in kinds.to_dict("records")
    ]
    cost = kinds.dropna(subset=["cost_per_right_label"])
    if len(cost) > 1:
        dear, cheap = (
            cost.loc[at]
            for at in (cost["cost_per_right_label"].idxmax(), cost["cost_per_right_label"].idxmin())
        )
        if cheap["cost_per_right_label"] > 0:
            times = dear["cost_per_right_label"] / cheap["cost_per_right_label"]
            sentences.append(
                f"A right label of {dear['kind']} costs {times:.3g} times as much as one of {cheap['kind']}."
            )
    return " ".join(sentences)


def _kinds(kinds: pd.DataFrame) -> Markup:
    real = "real_accuracy" in kinds and bool(kinds["real_accuracy"].notna().any())
    lost = "unparsed" in kinds and bool(kinds["unparsed"].any())
    heads = [
        "Kind",
        "Annotators",
        "Labels",
        *(["Answers without label"] if lost else []),
        "Accuracy",
        *(["Real accuracy"] if real else []),
    ]
    heads += ["Agreement within", "Cost of a label", "Cost of a right label"]
    rows = [
        [
            row["kind"],
            whole(row["annotators"]),
            whole(row["labels"]),
            *([_unparsed(row)] if lost else []),
            f"{share(row['accuracy'])} ({between(row['low'], row['high'])})",
            *([share(row["real_accuracy"])] if real else []),
            share(row["agreement"]),
            _money(row["cost_per_label"]),
            _money(row["cost_per_right_label"]),
        ]
        for row in kinds.to_dict("records")
    ]
    return scrolling_table("Kinds of annotators, by the labels found", heads, rows)


def _agreement(pairs: pd.DataFrame) -> Content:
    if not len(pairs):
        return []
    rows = [
        [
            f"{row['kind']} and {row['other']}",
            whole(row["n_items"]),
            share(row["agreement"]),
            f"{row['kappa']:.2f}" if np.isfinite(row["kappa"]) else "–",
        ]
        for row in pairs.to_dict("records")
    ]
    return [
        element("h3", "Agreement between kinds"),
        "The chance that a label of one kind and a label of the other kind for the same item are the same. "
        "Kappa is 0 where they agree by chance alone, and 1 where they always agree.",
        scrolling_table("Agreement between kinds", ["Kinds", "Items", "Agreement", "Kappa"], rows),
    ]


def _errors(findings: Findings) -> Content:
    """Classes, confusions and items, where there is more than one kind."""
    kinds = findings.kinds
    there = [kind for kind in KINDS if kind in kinds["kind_classes"]]
    if len(there) < 2:
        return []
    heads = [kind.capitalize() for kind in there]

    def shares(row: Mapping[str, Any]) -> list[str]:
        return [share(row[kind]) for kind in there]

    classes, confusions, items = (kinds[f"kind_{name}"] for name in ("classes", "confusions", "items"))
    spread = classes[there].max(axis=1) - classes[there].min(axis=1)
    apart = classes.loc[spread.sort_values(ascending=False, kind="stable").index[:MOST]]
    parts: Content = [
        element("h3", "Classes that one kind knows better"),
        scrolling_table(
            "Share of right labels by true class, the largest difference first",
            ["True class", *heads],
            [[named(row["class"]), *shares(row)] for row in apart.to_dict("records")],
        ),
    ]
    if len(confusions):
        rows = [
            [named(f"{row['class']} → {row['label']}"), *shares(row)]
            for row in confusions.head(MOST).to_dict("records")
        ]
        parts += [
            element("h3", "Where models err and people do not"),
            "Wrong labels that models give more often than people do: the share of the true class that gets "
            "this label.",
            scrolling_table("Wrong labels of models", ["True class → label", *heads], rows),
        ]
    if len(items):
        rows = [
            [_item(findings, row["item"]), named(row["label"]), *shares(row)]
            for row in items.head(MOST).to_dict("records")
        ]
        parts += [
            "Items where models are probably wrong and people right: the mean chance that their labels are "
            f"right.{'' if len(items) <= MOST else f' The {MOST} with the largest difference are here.'}",
            scrolling_table("Items where models are probably wrong", ["Item", "Label found", *heads], rows),
        ]
    return parts


def _item(findings: Findings, item: str) -> Markup:
    preview = findings.previews.get(item)
    return named(f"{item}: {preview.text}" if preview and preview.text not in ("", item) else item, 120)


def _replacements(tests: pd.DataFrame | None) -> Content:
    if tests is None or not len(tests):
        return []
    passing = tests[tests["skilled"] >= 0.5]
    verdict = (
        f"{whole(len(passing))} of {whole(len(tests))} models may replace skilled annotators, by this test."
        if len(passing)
        else f"None of {whole(len(tests))} models may replace skilled annotators, by this test."
    )
    more = f" The {MOST} with the greatest advantage are in the table." if len(tests) > MOST else ""
    rows = [
        [
            named(row["model"]),
            whole(row["people"]),
            share(row["advantage"]),
            *(
                f"{row[name]:.2f}{' passes' if row[name] >= 0.5 else ''}"
                for name in ("experts", "skilled", "crowd_workers")
            ),
        ]
        for row in tests.head(MOST).to_dict("records")
    ]
    return [
        element("h3", "May a model replace people?"),
        f"{verdict}{more} The alternative annotator test (Calderon, Reichart and Dror, ACL 2025) leaves one "
        "person out at a time and asks who represents the other people better, the model or this person. The "
        "advantage tells how often the model does at least as well. The winning rate is the share of people "
        "whom it may replace; 0.5 passes. A model may be worse by ε, as it costs less: the authors advise "
        "0.2 where people are experts, 0.15 where they are skilled, 0.1 for crowd workers.",
        scrolling_table(
            "Winning rates of models against people",
            ["Model", "People", "Advantage", "Experts, ε = 0.2", "Skilled, ε = 0.15", "Crowd, ε = 0.1"],
            rows,
        ),
    ]


def _unparsed(row: Mapping[str, Any]) -> str:
    total = row["unparsed"] + row["labels"]
    return f"{whole(row['unparsed'])} ({share(row['unparsed'] / total if total else 0)})"


def _money(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "–"
