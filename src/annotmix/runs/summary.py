"""What a run found, in a few lines and as one JSON document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from annotmix.runs.findings import SCORES, Findings, doubts


def summary(found: Findings, out: Path) -> dict[str, Any]:
    """The figures of a run."""
    wrong = found.labels["probability"] < 0.5
    return {
        "run": str(out),
        "items": len(found.items),
        "labelled items": int((found.items["n_labels"] > 0).sum()),
        "annotators": len(found.annotators),
        "classes": list(found.classes),
        "labels": len(found.labels),
        "labels more likely wrong than right": int(wrong.sum()),
        "items whose label differs from the majority": int(found.items["differs"].sum()),
        "scores": dict(found.scores),
        "files": {
            name: str(out / name)
            for name in ("labels.csv", "annotators.csv", "suspicious_labels.csv", "report.html", "run.json")
        },
        "notes": found.notes,
    }


def lines(found: Findings, out: Path) -> list[str]:
    """What a person wants to know first."""
    figures = summary(found, out)
    labels, wrong = figures["labels"], figures["labels more likely wrong than right"]
    rated = found.annotators.sort_values("accuracy", ascending=False)
    best, worst = rated.iloc[0], rated.iloc[-1]
    result = [
        "What was found",
        f"  {wrong} of {labels} labels ({wrong / labels:.0%}) are more likely wrong than right.",
        f"  {figures['items whose label differs from the majority']} of {figures['labelled items']} "
        "items get another "
        "label than most annotators gave.",
        f"  Annotators are right in {worst['accuracy']:.0%} ({_short(worst.name)}) to {best['accuracy']:.0%} "
        f"({_short(best.name)}) of their labels, by estimate.",
        *(f"  {doubt}" for doubt in doubts(found.items)),
        *score_lines(found),
    ]
    where = {
        "labels.csv": "the most probable label of every item",
        "annotators.csv": "whom to trust",
        "suspicious_labels.csv": "every label, least likely right first",
        "report.html": "all of it to look at",
    }
    result += [f"  {out / name}: {what}" for name, what in where.items()]
    result.append(f"Next: annotmix suggest {out} --budget 200   annotmix predict {out} FILE")
    return result


def score_lines(found: Findings) -> list[str]:
    """Scores on true labels, a line each."""
    if not found.scores:
        return []
    shown = [
        f"  {SCORES[name][0]:<78} {value:{SCORES[name][1]}}"
        for name, value in found.scores.items()
        if name != "n" and name in SCORES and value == value
    ]
    return [f"On {found.scores['n']:.0f} items with a true label", *shown]


def _short(name: object) -> str:
    return repr(str(name)[:40])
