"""Sections of the report that are charts: classes before and after, learning curves, known labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from annotmix.runs.findings import SCORES, Findings, label_weights
from annotmix.runs.report import svg
from annotmix.runs.report.markup import element
from annotmix.runs.report.page import figure, key, table
from annotmix.runs.report.payload import short
from annotmix.runs.report.words import named

#: Paragraphs and elements of a section; one without any is left out.
Content = list[object]

#: Classes in the chart of the class balance.
MOST_CLASSES = 30


def balance(found: Findings) -> Content:
    """Share of every class among votes and among labels found."""
    votes = _shares(found.labels, found.classes)
    after = _shares(found.items, found.classes)
    change = (after - votes).abs().sort_values(ascending=False, kind="stable")
    shown = [name for name in found.classes if name in set(change.index[:MOST_CLASSES])]
    largest = change.index[0]
    cut = (
        ""
        if len(shown) == len(found.classes)
        else f" Of {len(found.classes)} classes the chart has the {len(shown)} that change most."
    )
    high = min(4 * svg.round_up(max(votes.max(), after.max(), 0.02) / 4), 1.0)  # four round steps
    return [
        element(
            "p",
            "Votes for a class among all votes, and items with that label among all items. The share of ",
            named(largest),
            f" changes most, from {votes[largest]:.1%} to {after[largest]:.1%}.{cut}",
        ),
        figure(
            element("span", key("ring"), "votes", key("full"), "labels found", class_="keys"),
            svg.dumbbells(
                [short(name) for name in shown],
                list(after[shown]),
                list(votes[shown]),
                "Dot plot: share of every class among votes and among labels, as in the table below",
                called=("labels found", "votes"),
                high=high,
            ),
        ),
        element(
            "details",
            element("summary", "The figures as a table"),
            table(
                "Share of every class",
                ["Class", "Votes", "Labels found"],
                [[named(name), f"{votes[name]:.1%}", f"{after[name]:.1%}"] for name in found.classes],
            ),
        ),
    ]


def learning(found: Findings) -> Content:
    """Loss and scores after every epoch."""
    history = found.history.dropna(axis=1, how="all").replace([np.inf, -np.inf], np.nan)
    if not len(history):
        return []
    losses = [name for name in history if str(name).split("/")[-1] == "loss"]
    scores = [name for name in history if "/" in str(name) and name not in losses]
    charts = [
        figure(
            caption,
            svg.line_chart(
                {str(name): list(history[name]) for name in names[:3]},
                f"Line chart: {caption} after every epoch. At the end: "
                + ", ".join(f"{name} {history[name].dropna().iloc[-1]:{form}}" for name in names[:3]),
                "epoch",
                height=220,
                form=form,
            ),
        )
        for caption, names, form in (
            ("Training loss", losses, "#.3g"),
            ("Scores on monitored items", scores, ".1%"),
        )
        if names
    ]
    last = history[losses[0]].dropna() if losses else pd.Series(dtype=float)
    sentence = (
        f"The loss fell from {last.iloc[0]:#.3g} to {last.iloc[-1]:#.3g} in {len(history)} epochs."
        if len(last) and last.iloc[-1] < last.iloc[0]
        else f"Training took {len(history)} epochs."
    )
    return [sentence, element("div", *charts, class_="charts")]


def checked(found: Findings) -> Content:
    """Scores and calibration, where labels are known."""
    if not found.scores and found.calibration is None:
        return []
    parts: list[object] = []
    if found.scores:
        rows = [
            [words, f"{value:{form}}" if np.isfinite(value) else "–"]
            for name, value in found.scores.items()
            for words, form in [SCORES.get(name, (short(name), ".3g"))]
        ]
        parts.append(table("Scores on items with known labels", ["Score", "Value"], rows))
    bins = found.calibration
    if bins is not None and bins["count"].sum():
        bins = bins[bins["count"] > 0]
        gap = float(np.average((bins["confidence"] - bins["accuracy"]).abs(), weights=bins["count"]))
        surer = float(np.average(bins["confidence"] - bins["accuracy"], weights=bins["count"]))
        parts += [
            f"When the model says how sure it is, it is off by {100 * gap:.1f} points on average, "
            f"{'too sure' if surer > 0 else 'not sure enough'} on the whole.",
            figure(
                "Share of right labels by confidence. A larger dot stands for more items; on the dashed line "
                "the confidence would be exact.",
                svg.reliability(
                    list(bins["confidence"]),
                    list(bins["accuracy"]),
                    [int(n) for n in bins["count"]],
                    "Reliability diagram: "
                    + ", ".join(
                        f"{b.accuracy:.0%} right where {b.confidence:.0%} sure" for b in bins.itertuples()
                    ),
                ),
            ),
        ]
    return parts


def _shares(table: pd.DataFrame, classes: Any) -> pd.Series:
    weight = pd.Series(label_weights(table), index=table.index)
    counts = weight.groupby(table["label"]).sum().reindex(classes, fill_value=0)
    return counts / max(counts.sum(), 1e-12)
