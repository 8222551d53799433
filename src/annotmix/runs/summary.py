"""The main results of a run, in a few lines and as one JSON document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotmix._common.words import count, shorten
from annotmix.runs.conclusions import counts_of, extremes, rests_on, warnings_of
from annotmix.runs.findings import Findings
from annotmix.runs.score_words import classifier_words, score_rows, verdict
from annotmix.runs.storage import files_of

#: What is said of answers with several classes that are not the set found.
WRONG_SETS = "name a class that is probably wrong, or overlook one"


def summary(findings: Findings, out: Path) -> dict[str, Any]:
    """The figures of a run."""
    counts = counts_of(findings)
    return {
        "run": str(out),
        "items": counts.items,
        "labelled items": counts.labelled,
        "annotators": counts.annotators,
        "classes": findings.class_names,
        "labels": counts.labels,
        "labels more likely wrong than right": counts.wrong,
        "items whose label differs from the majority": int(findings.items["differs"].sum()),
        "scores": dict(findings.scores),
        "files": {name: str(out / name) for name in (*files_of(findings), "report.html", "run.json")},
        "notes": findings.notes,
    }


def summary_lines(findings: Findings, out: Path) -> list[str]:
    """The main results as lines of text."""
    figures = summary(findings, out)
    labels, wrong = figures["labels"], figures["labels more likely wrong than right"]
    differ = figures["items whose label differs from the majority"]
    are_wrong = f"{'is' if wrong == 1 else 'are'} more likely wrong than right"
    return [
        "What was found",
        f"  {wrong:,} of {count(labels, 'label')} ({wrong / max(labels, 1):.0%}) "
        f"{are_wrong if findings.several is None else WRONG_SETS}.",
        f"  {differ:,} of {count(figures['labelled items'], 'item')} {'gets' if differ == 1 else 'get'} "
        "another label than most annotators gave.",
        f"  {_whom_to_trust(findings)}",
        *(f"  {sentence}" for sentence in [rests_on(findings), *warnings_of(findings)] if sentence),
        *score_lines(findings),
        *(f"  {out / name}: {what}" for name, what in files_of(findings).items()),
        f"  {out / 'report.html'}: all of it to look at",
        f"Next: annotmix suggest {out} --budget 200   annotmix predict {out} FILE"
        if findings.several is None
        else f"Next: annotmix predict {out} FILE",
    ]


def score_lines(findings: Findings) -> list[str]:
    """Scores on true labels, one line each, and the main ones in sentences."""
    scores = findings.scores
    if not scores:
        return []
    shown = [f"  {words:<83} {value}" for words, value in score_rows(scores) if value != "–"]
    sentences = [f"  {sentence}" for sentence in [*verdict(scores), *classifier_words(scores)]]
    return ["Checked against true labels", *shown, *sentences]


def _whom_to_trust(findings: Findings) -> str:
    """The best and the worst annotator, where labels suffice to tell them apart."""
    pair = extremes(findings.annotators)
    if pair is None:
        return "The labels do not suffice to tell the most reliable annotator from the least reliable one."
    best, worst = (
        f"{shorten(one.name, 40)!r} ({one['low']:.0%} to {one['high']:.0%} of labels right)" for one in pair
    )
    return f"The most reliable annotator is {best}, the least reliable {worst}, by estimate."
