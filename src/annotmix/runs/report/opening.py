"""The first screen of the report: what was found, in plain sentences with numbers."""

from __future__ import annotations

import numpy as np

from annotmix.runs.findings import Findings, doubts, label_weights
from annotmix.runs.report.markup import Markup, element
from annotmix.runs.report.payload import short
from annotmix.runs.report.words import count, named, whole

#: From here on a label counts as sure; below the second as in doubt.
SURE, DOUBT = 0.95, 0.6


def opening(found: Findings) -> Markup:
    """Heading, summary, answers to the three questions people come with, and where to find what."""
    n_labels, n_items = int(found.items["n_labels"].sum()), len(found.items)
    weight = label_weights(found.labels)
    wrong = n_labels * float((weight * (1 - found.labels["probability"])).sum()) / max(weight.sum(), 1e-12)
    approach = found.settings.get("approach")
    per_item = f", {n_labels / n_items:.1f} an item" if n_items else ""
    return element(
        "header",
        element("p", short(found.title), class_="eyebrow"),
        element("h1", _heading(wrong, n_labels)),
        element(
            "p",
            f"{count(len(found.annotators), 'annotator')} gave {count(n_labels, 'label')} of "
            f"{len(found.classes)} classes to {count(n_items, 'item')}{per_item}. The model"
            f"{f' ({short(approach)})' if approach else ''} weighed every label by who gave it and by what "
            "the item looks like.",
            class_="lead",
        ),
        *(element("p", doubt, class_="lead") for doubt in doubts(found.items)),
        element(
            "dl",
            *(
                element("div", element("dt", question), element("dd", *answer))
                for question, answer in _answers(found)
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


def _answers(found: Findings) -> list[tuple[str, list[object]]]:
    answers = [
        ("Which labels are right?", _right_labels(found)),
        ("Whom can I trust?", _trust(found)),
        ("What should I ask next?", _next(found)),
    ]
    scores = found.scores
    if np.isfinite(scores.get("consensus-acc", np.nan)):
        n = f"On {whole(scores['n'])} items with known labels" if "n" in scores else "Where labels are known"
        majority = scores.get("majority-acc", np.nan)
        vote = f", the majority’s for {majority:.1%}" if np.isfinite(majority) else ""
        text = f"{n}, the labels found are right for {scores['consensus-acc']:.1%}{vote}."
        answers.append(("How good is that?", [text, _more("checked", "Scores")]))
    return answers


def _right_labels(found: Findings) -> list[object]:
    sure = int((found.items["probability"] >= SURE).sum())
    doubt = int((found.items["probability"] < DOUBT).sum())
    differs = int(found.items["differs"].sum())
    return [
        f"For {whole(sure)} of {whole(len(found.items))} items the label is {SURE:.0%} sure or more; for "
        f"{whole(doubt)} it is in doubt (below {DOUBT:.0%}). {whole(differs) if differs else 'None'} got "
        "another label than the one with the most votes.",
        _more("labels", "Labels most likely wrong"),
    ]


def _trust(found: Findings) -> list[object]:
    accuracy = found.annotators["accuracy"].dropna()
    if not len(accuracy):
        return ["This approach has no opinion about annotators."]
    low, high = accuracy.quantile([0.25, 0.75])
    chance = 1 / max(len(found.classes), 1)
    guessing = int((found.annotators["low"] <= chance).sum())
    told = (
        f" {count(guessing, 'annotator')} cannot be told from guessing (1 in {len(found.classes)})."
        if guessing
        else " All are better than guessing."
    )
    return [
        f"Half of the annotators are right in {low:.0%} to {high:.0%} of their labels, by estimate.{told} ",
        *_confusion(found),
        _more("annotators", "Annotators"),
    ]


def _confusion(found: Findings) -> list[object]:
    """The most frequent confusion of all annotators together."""
    weights = found.annotators["n_labels"].to_numpy(dtype=float)
    known = np.isfinite(found.confusion).all(axis=(1, 2)) & (weights > 0)
    if not known.any() or len(found.classes) < 2:
        return []
    mean = np.average(found.confusion[known], axis=0, weights=weights[known])
    np.fill_diagonal(mean, 0)
    true, given = np.unravel_index(int(mean.argmax()), mean.shape)
    return [
        "Most often ",
        named(found.classes[true], 40),
        " is called ",
        named(found.classes[given], 40),
        f" ({mean[true, given]:.0%}).",
    ]


def _next(found: Findings) -> list[object]:
    asked = found.suggestions
    if not len(asked):
        return ["There are no suggestions."]
    first = asked.iloc[0]
    return [
        "First ask annotator ",
        named(first["worker"], 40),
        " about item ",
        named(first["task"], 40),
        f": the answer would be right with a chance of {first['performance']:.0%}. "
        f"{count(len(asked), 'question')} to {count(asked['worker'].nunique(), 'annotator')} are ready.",
        _more("suggestions", "Questions to ask"),
    ]


def _more(section: str, text: str) -> Markup:
    return element("a", text, href=f"#{section}-section")
