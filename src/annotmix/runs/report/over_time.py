"""The section of the report about annotators over time."""

from __future__ import annotations

from annotmix._common.words import count
from annotmix.runs.drift import FEWEST, LEVEL, worse_over_time
from annotmix.runs.findings import Findings
from annotmix.runs.report.charts import Content
from annotmix.runs.report.formatting import between, named, share, whole
from annotmix.runs.report.markup import element
from annotmix.runs.report.page import table

#: Annotators that the table lists.
MOST = 20


def over_time(findings: Findings) -> Content:
    """Sentences and a table about annotators who got worse; empty where labels have no times."""
    if "time" not in findings.labels or not (findings.labels["time"] != "").any():
        return []
    drift = worse_over_time(findings.labels)
    if not len(drift):
        return [f"No annotator has {FEWEST} labels with a time, too few to tell whether anybody changed."]
    worse = drift[drift["worse"].astype(bool)]
    sentences = [
        element(
            "p",
            named(row["annotator"], 40),
            f" was right in {row['first']:.0%} of the first third of the labels, and in {row['last']:.0%} "
            "of the last.",
        )
        for row in worse.head(5).to_dict("records")
    ]
    heading = (
        f"{count(len(worse), 'annotator')} of {whole(len(drift))} got worse over time."
        if len(worse)
        else f"None of {count(len(drift), 'annotator')} got worse over time by more than chance."
    )
    rows = [
        [
            named(row["annotator"]),
            whole(row["n_labels"]),
            f"{share(row['first'])} ({between(row['first_low'], row['first_high'])})",
            f"{share(row['last'])} ({between(row['last_low'], row['last_high'])})",
            "worse" if row["worse"] else "within chance",
        ]
        for row in drift.head(MOST).to_dict("records")
    ]
    return [
        heading,
        *sentences,
        f"The table compares the first and the last third of the labels of every annotator with {FEWEST} "
        "labels or more that have a time, by the chance that they are right. The chance that anybody is "
        f"named by accident is at most {LEVEL:.0%} (Holm's method). Later items that are harder look the "
        "same as an annotator who gets tired.",
        table(
            "Annotators by how much worse they got",
            ["Annotator", "Labels", "First third right", "Last third right", "Change"],
            rows,
        ),
    ]
