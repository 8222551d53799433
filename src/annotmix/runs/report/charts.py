"""Sections of the report that are charts: classes before and after, learning curves, known labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.words import count, shorten
from annotmix.runs.conclusions import by_reliability
from annotmix.runs.findings import Findings, label_weights
from annotmix.runs.report import svg
from annotmix.runs.report.formatting import between, named, whole
from annotmix.runs.report.markup import element
from annotmix.runs.report.page import figure, key, table
from annotmix.runs.score_words import classifier_words, score_rows, verdict

#: Paragraphs and elements of a section; one without any is left out.
Content = list[object]

#: Classes in the chart of the class balance, and annotators in the chart of their accuracy.
MOST_CLASSES = 30
MOST_ANNOTATORS = 30


def balance(findings: Findings) -> Content:
    """Share of every class among votes and among the labels found."""
    if (several := findings.several) is not None:
        votes, after = several.classes["share_chosen"], several.classes["share"]
    else:
        votes = _shares(findings.labels, findings.classes)
        after = _shares(findings.items[findings.items["n_labels"] > 0], findings.classes)
    classes = findings.class_names
    change = (after - votes).abs().sort_values(ascending=False, kind="stable")
    shown = [name for name in classes if name in set(change.index[:MOST_CLASSES])]
    largest = change.index[0]
    cut = (
        ""
        if len(shown) == len(classes)
        else f" Of {len(classes)} classes the chart has the {len(shown)} that change most."
    )
    high = min(4 * svg.round_up(max(votes.max(), after.max(), 0.02) / 4), 1.0)  # four round steps
    return [
        element(
            "p",
            "Votes for a class among all votes, and items with that label among all labelled items. The "
            "share of ",
            named(largest),
            f" changes most, from {votes[largest]:.1%} to {after[largest]:.1%}.{cut}",
        ),
        figure(
            element("span", key("ring"), "votes", key("full"), "labels found", class_="keys"),
            svg.dumbbells(
                [shorten(name) for name in shown],
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
                [[named(name), f"{votes[name]:.1%}", f"{after[name]:.1%}"] for name in classes],
            ),
        ),
    ]


def learning(findings: Findings) -> Content:
    """Loss and scores after every epoch."""
    history = findings.history.dropna(axis=1, how="all").replace([np.inf, -np.inf], np.nan)
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
        f"The loss fell from {last.iloc[0]:#.3g} to {last.iloc[-1]:#.3g} in {count(len(history), 'epoch')}."
        if len(last) and last.iloc[-1] < last.iloc[0]
        else f"Training took {count(len(history), 'epoch')}."
    )
    return [sentence, element("div", *charts, class_="charts")]


def checked(findings: Findings) -> Content:
    """Scores and calibration, where labels are known."""
    if not findings.scores and findings.calibration is None:
        return []
    parts: list[object] = []
    if findings.scores:
        told = (verdict(findings.scores), classifier_words(findings.scores))
        parts += [" ".join(sentences) for sentences in told if sentences]
        rows = [[shorten(words, 120), value] for words, value in score_rows(findings.scores)]
        parts.append(table("Scores on items with known labels", ["Score", "Value"], rows))
        parts += _accuracy(findings)
    bins = findings.calibration
    if bins is not None and bins["count"].sum():
        bins = bins[bins["count"] > 0]
        gap = float(np.average((bins["confidence"] - bins["accuracy"]).abs(), weights=bins["count"]))
        surer = float(np.average(bins["confidence"] - bins["accuracy"], weights=bins["count"]))
        parts += [
            element("h3", "How sure the model is, and how often it is right"),
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


def _accuracy(findings: Findings) -> Content:
    """Estimated and real accuracy of the annotators with the most labels of known items."""
    annotators = findings.annotators
    if "real_accuracy" not in annotators or not (annotators["n_checked"] > 0).any():
        return []
    known = annotators[annotators["n_checked"] > 0]
    gap = known["accuracy"] - known["real_accuracy"]
    inside = int(known["real_accuracy"].between(known["low"], known["high"]).sum())
    furthest = gap.abs().idxmax()
    most = known.sort_values("n_checked", ascending=False, kind="stable").head(MOST_ANNOTATORS)
    most = by_reliability(most)
    cut = "" if len(most) == len(known) else f" The chart has the {len(most)} with the most known labels."
    rows = [
        [named(name), whole(row.n_checked), f"{row.accuracy:.1%}", between(row.low, row.high),
         f"{row.real_accuracy:.1%}"]
        for name, row in zip(most.index, most.itertuples(), strict=True)
    ]  # fmt: skip
    return [
        element("h3", "Annotators: estimated and real accuracy"),
        element(
            "p",
            "The real accuracy is the share of right labels among those of items with a known label. The "
            f"estimate is {100 * gap.abs().mean():.0f} points away from it on average, and furthest for ",
            named(furthest),
            f", by {100 * gap[furthest]:+.0f} points. The interval holds the real accuracy of {inside} of "
            f"{count(len(known), 'annotator')}.{cut}",
        ),
        figure(
            element(
                "span", key("full"), "estimated, with a 95% interval", key("ring"), "real", class_="keys"
            ),
            svg.dumbbells(
                [shorten(name) for name in most.index],
                list(most["accuracy"]),
                list(most["real_accuracy"]),
                "Dot plot: estimated and real accuracy of annotators, as in the table below",
                chance=findings.chance,
                bars=list(zip(most["low"], most["high"], strict=True)),
            ),
        ),
        element(
            "details",
            element("summary", "The figures as a table"),
            table(
                "Estimated and real accuracy of annotators",
                ["Annotator", "Known labels", "Estimated", "Interval", "Real"],
                rows,
            ),
        ),
    ]


def _shares(table: pd.DataFrame, classes: Any) -> pd.Series:
    weight = pd.Series(label_weights(table), index=table.index)
    counts = weight.groupby(table["label"]).sum().reindex(classes, fill_value=0)
    return counts / max(counts.sum(), 1e-12)
