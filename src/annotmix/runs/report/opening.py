"""The first screen of the report: the main results in plain sentences with numbers."""

from __future__ import annotations

import numpy as np

from annotmix._common.words import shorten
from annotmix.runs.findings import Findings, doubts, label_weights
from annotmix.runs.report.formatting import count, named, whole
from annotmix.runs.report.markup import Markup, element

#: From here on a label counts as sure; below the second as in doubt.
SURE, DOUBT = 0.95, 0.6


def opening(findings: Findings) -> Markup:
    """Heading, summary, the three main questions with their results, and links to the sections."""
    n_labels, n_items = int(findings.items["n_labels"].sum()), len(findings.items)
    weight = label_weights(findings.labels)
    wrong = n_labels * float((weight * (1 - findings.labels["probability"])).sum()) / max(weight.sum(), 1e-12)
    approach = findings.settings.get("approach")
    per_item = f", {n_labels / n_items:.1f} per item" if n_items else ""
    return element(
        "header",
        element("p", shorten(findings.title), class_="eyebrow"),
        element("h1", _heading(wrong, n_labels)),
        element(
            "p",
            f"{count(len(findings.annotators), 'annotator')} gave {count(n_labels, 'label')} of "
            f"{len(findings.classes)} classes to {count(n_items, 'item')}{per_item}. The model"
            f"{f' ({shorten(approach)})' if approach else ''} weighed every label by who gave it and by what "
            "the item looks like.",
            class_="lead",
        ),
        *(element("p", doubt, class_="lead") for doubt in doubts(findings.items)),
        element(
            "dl",
            *(
                element("div", element("dt", question), element("dd", *answer))
                for question, answer in _questions(findings)
            ),
            class_="answers",
        ),
    )


def _heading(wrong: float, n_labels: int) -> str:
    if not n_labels:
        return "There are no labels"
    if wrong < 0.5:
        return f"All {whole(n_labels)} labels are probably right"
    return f"About {whole(wrong)} of {whole(n_labels)} labels are probably wrong ({wrong / n_labels:.0%})"


def _questions(findings: Findings) -> list[tuple[str, list[object]]]:
    questions = [
        ("Which labels are right?", _right_labels(findings)),
        ("Whom can I trust?", _trust(findings)),
        ("What should I ask next?", _next(findings)),
    ]
    scores = findings.scores
    if np.isfinite(scores.get("consensus-acc", np.nan)):
        n = f"On {whole(scores['n'])} items with known labels" if "n" in scores else "Where labels are known"
        majority = scores.get("majority-acc", np.nan)
        vote = f", the majority’s for {majority:.1%}" if np.isfinite(majority) else ""
        text = f"{n}, the labels found are right for {scores['consensus-acc']:.1%}{vote}."
        questions.append(("How good is that?", [text, _more("checked", "Scores")]))
    return questions


def _right_labels(findings: Findings) -> list[object]:
    sure = int((findings.items["probability"] >= SURE).sum())
    doubt = int((findings.items["probability"] < DOUBT).sum())
    differs = int(findings.items["differs"].sum())
    return [
        f"For {whole(sure)} of {whole(len(findings.items))} items the label is {SURE:.0%} sure or more; for "
        f"{whole(doubt)} it is in doubt (below {DOUBT:.0%}). {whole(differs) if differs else 'None'} got "
        "another label than the one with the most votes.",
        _more("labels", "Labels most likely wrong"),
    ]


def _trust(findings: Findings) -> list[object]:
    accuracy = findings.annotators["accuracy"].dropna()
    if not len(accuracy):
        return ["This approach has no opinion about annotators."]
    low, high = accuracy.quantile([0.25, 0.75])
    chance = 1 / max(len(findings.classes), 1)
    guessing = int((findings.annotators["low"] <= chance).sum())
    told = (
        f" {count(guessing, 'annotator')} cannot be told from guessing (1 in {len(findings.classes)})."
        if guessing
        else " All are better than guessing."
    )
    return [
        f"Half of the annotators are right in {low:.0%} to {high:.0%} of their labels, by estimate.{told} ",
        *_confusion(findings),
        _more("annotators", "Annotators"),
    ]


def _confusion(findings: Findings) -> list[object]:
    """The most frequent confusion of all annotators together."""
    weights = findings.annotators["n_labels"].to_numpy(dtype=float)
    known = np.isfinite(findings.confusion).all(axis=(1, 2)) & (weights > 0)
    if not known.any() or len(findings.classes) < 2:
        return []
    mean = np.average(findings.confusion[known], axis=0, weights=weights[known])
    np.fill_diagonal(mean, 0)
    true, label = np.unravel_index(int(mean.argmax()), mean.shape)
    return [
        "Most often ",
        named(findings.classes[true], 40),
        " is called ",
        named(findings.classes[label], 40),
        f" ({mean[true, label]:.0%}).",
    ]


def _next(findings: Findings) -> list[object]:
    suggestions = findings.suggestions
    if not len(suggestions):
        return ["There are no suggestions."]
    first = suggestions.iloc[0]
    return [
        "First ask annotator ",
        named(first["annotator"], 40),
        " about item ",
        named(first["item"], 40),
        f": the label would be right with a chance of {first['performance']:.0%}. "
        f"{count(len(suggestions), 'question')} to {count(suggestions['annotator'].nunique(), 'annotator')} "
        "are ready.",
        _more("suggestions", "Questions to ask"),
    ]


def _more(section: str, text: str) -> Markup:
    return element("a", text, href=f"#{section}-section")
