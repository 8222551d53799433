"""The main results of a run, in a few lines and as one JSON document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotmix._common.words import shorten
from annotmix.runs.findings import SCORES, Findings, doubts
from annotmix.runs.storage import FILES


def summary(findings: Findings, out: Path) -> dict[str, Any]:
    """The figures of a run."""
    wrong = findings.labels["probability"] < 0.5
    return {
        "run": str(out),
        "items": len(findings.items),
        "labelled items": int((findings.items["n_labels"] > 0).sum()),
        "annotators": len(findings.annotators),
        "classes": list(findings.classes),
        "labels": len(findings.labels),
        "labels more likely wrong than right": int(wrong.sum()),
        "items whose label differs from the majority": int(findings.items["differs"].sum()),
        "scores": dict(findings.scores),
        "files": {name: str(out / name) for name in (*FILES, "report.html", "run.json")},
        "notes": findings.notes,
    }


def summary_lines(findings: Findings, out: Path) -> list[str]:
    """The main results as lines of text."""
    figures = summary(findings, out)
    labels, wrong = figures["labels"], figures["labels more likely wrong than right"]
    rated = findings.annotators.sort_values("accuracy", ascending=False)
    best, worst = rated.iloc[0], rated.iloc[-1]
    return [
        "What was found",
        f"  {wrong} of {labels} labels ({wrong / labels:.0%}) are more likely wrong than right.",
        f"  {figures['items whose label differs from the majority']} of {figures['labelled items']} "
        "items get another label than most annotators gave.",
        f"  Annotators are right in {worst['accuracy']:.0%} ({shorten(worst.name, 40)!r}) to "
        f"{best['accuracy']:.0%} ({shorten(best.name, 40)!r}) of their labels, by estimate.",
        *(f"  {doubt}" for doubt in doubts(findings.items)),
        *score_lines(findings),
        *(f"  {out / name}: {what}" for name, what in FILES.items()),
        f"  {out / 'report.html'}: all of it to look at",
        f"Next: annotmix suggest {out} --budget 200   annotmix predict {out} FILE",
    ]


def score_lines(findings: Findings) -> list[str]:
    """Scores on true labels, one line each."""
    if not findings.scores:
        return []
    shown = [
        f"  {SCORES[name][0]:<78} {value:{SCORES[name][1]}}"
        for name, value in findings.scores.items()
        if name != "n" and name in SCORES and value == value
    ]
    return [f"On {findings.scores['n']:.0f} items with a true label", *shown]
