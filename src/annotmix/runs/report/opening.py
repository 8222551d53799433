"""The first screen of the report: the main results in plain sentences with numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from annotmix._common.words import count, shorten
from annotmix.runs.conclusions import Counts, counts_of, extremes, rests_on, warnings_of
from annotmix.runs.findings import Findings, label_weights
from annotmix.runs.report.formatting import between, named, whole
from annotmix.runs.report.markup import Markup, element
from annotmix.runs.score_words import RIVALS, is_known, verdict

#: From here on a label counts as sure; below the second as in doubt.
SURE, DOUBT = 0.95, 0.6


def opening(findings: Findings) -> Markup:
    """Heading, summary, the three main questions with their results, and links to the sections."""
    return element(
        "header",
        element("p", shorten(findings.title), class_="eyebrow"),
        element("h1", _heading(counts_of(findings))),
        element("p", _lead(findings, counts_of(findings)), class_="lead"),
        *(element("p", warning, class_="lead warning") for warning in warnings_of(findings)),
        element(
            "dl",
            *(
                element("div", element("dt", question), element("dd", *answer))
                for question, answer in _questions(findings)
            ),
            class_="answers",
        ),
    )


def _lead(findings: Findings, counts: Counts) -> str:
    """Who labelled what, and what the labels found rest on."""
    approach = findings.settings.get("approach")
    per_item = f", {counts.per_item:.1f} per item" if counts.labelled else ""
    more = count(counts.unlabelled, "more item has", "more items have")
    rest = f" {more} no labels." if counts.unlabelled else ""
    weighed = rests_on(findings) or "Every label was weighed by who gave it and by what the item looks like."
    return (
        f"{count(counts.annotators, 'annotator')} gave {count(counts.labels, 'label')} of "
        f"{count(len(findings.class_names), 'class', 'classes')} to {count(counts.labelled, 'item')}"
        f"{per_item}.{rest}"
        f"{f' The classifier is {shorten(approach)}.' if approach else ''} {weighed}"
    )


def _heading(counts: Counts) -> str:
    wrong, n_labels = counts.wrong, counts.labels
    if not n_labels:
        return "There are no labels"
    if not wrong:
        return f"All {whole(n_labels)} labels are probably right"
    verb = "is" if wrong == 1 else "are"
    return f"{whole(wrong)} of {whole(n_labels)} labels {verb} probably wrong ({wrong / n_labels:.0%})"


def _questions(findings: Findings) -> list[tuple[str, list[object]]]:
    questions = [
        ("Which labels are right?", _right_labels(findings)),
        ("Whom can I trust?", _trust(findings)),
        ("What should I ask next?", _next(findings)),
    ]
    if sentences := _checked(findings):
        questions.append(("How good is that?", [" ".join(sentences), _more("checked", "Scores")]))
    return questions


def _checked(findings: Findings) -> list[str]:
    """How often labels and classifier are right, where true labels are known."""
    scores, sentences = findings.scores, []
    if is_known(scores, "consensus-acc"):
        n = scores.get("learnt", scores.get("n"))
        where = "Where labels are known" if n is None else f"On {whole(n)} items with known labels"
        rivals = [f", {name} for {scores[key]:.1%}" for name, key in _rival_scores(findings)]
        sentences.append(f"{where}, this run is right for {scores['consensus-acc']:.1%}{''.join(rivals)}.")
    if is_known(scores, "subset-acc"):
        sentences += verdict(scores)
    if is_known(scores, "clf-acc"):
        sentences.append(
            f"Of {whole(scores.get('new'))} new items it classifies {scores['clf-acc']:.1%} right."
        )
    return sentences


def _rival_scores(findings: Findings) -> list[tuple[str, str]]:
    return [
        (words, f"{name}-acc") for name, words in RIVALS.items() if is_known(findings.scores, f"{name}-acc")
    ]


def _right_labels(findings: Findings) -> list[object]:
    labelled = findings.items[findings.items["n_labels"] > 0]
    rest = findings.items[findings.items["n_labels"] == 0]
    sure, doubt = _sure_and_doubtful(labelled)
    differs, sure_too = int(findings.items["differs"].sum()), _sure_and_doubtful(rest)[0]
    others = (
        f" Of {count(len(rest), 'item')} without labels, {whole(sure_too) if sure_too else 'none'} "
        f"{'is' if sure_too < 2 else 'are'} as sure."
        if len(rest)
        else ""
    )
    return [
        f"For {whole(sure)} of {whole(len(labelled))} labelled items the label is {SURE:.0%} sure or more; "
        f"for {whole(doubt)} it is in doubt (below {DOUBT:.0%}). {whole(differs) if differs else 'None'} got "
        f"another label than the one with the most votes.{others}",
        _more("labels", "Labels most likely wrong"),
    ]


def _sure_and_doubtful(items: pd.DataFrame) -> tuple[int, int]:
    """The numbers of items whose label is sure, and in doubt."""
    return int((items["probability"] >= SURE).sum()), int((items["probability"] < DOUBT).sum())


def _trust(findings: Findings) -> list[object]:
    accuracy = findings.annotators["accuracy"].dropna()
    if not len(accuracy):
        return ["This approach has no opinion about annotators."]
    low, high = accuracy.quantile([0.25, 0.75])
    chance = findings.chance
    guessing = int((findings.annotators["low"] <= chance).sum())
    told = (
        f" {count(guessing, 'annotator')} cannot be told from guessing (1 in {round(1 / chance)})."
        if guessing
        else " All are better than guessing."
    )
    return [
        f"Half of the annotators are right in {low:.0%} to {high:.0%} of their labels, by estimate.{told} ",
        *_best_and_worst(findings),
        *_confusion(findings),
        _more("annotators", "Annotators"),
    ]


def _best_and_worst(findings: Findings) -> list[object]:
    """The best and the worst annotator, where labels suffice to tell them apart."""
    pair = extremes(findings.annotators)
    if pair is None:
        return []
    best, worst = pair
    return [
        "Most reliable is ",
        named(best.name, 40),
        f" ({between(best['low'], best['high'])}), least ",
        named(worst.name, 40),
        f" ({between(worst['low'], worst['high'])}). ",
    ]


def _confusion(findings: Findings) -> list[object]:
    """The most frequent confusion of all annotators together."""
    top = _whole_top(findings) if findings.confusion.whole is not None else _counted_top(findings)
    if top is None or len(findings.classes) < 2:
        return []
    true, label, share = top
    return [
        "Most often ",
        named(true, 40),
        " is called ",
        named(label, 40),
        f" ({share:.0%}).",
    ]


def _whole_top(findings: Findings) -> tuple[str, str, float] | None:
    """A class, its most frequent wrong label, and its share, by the mean of the confusion matrices."""
    whole, weights = findings.confusion.whole, findings.annotators["n_labels"].to_numpy(dtype=float)
    assert whole is not None
    known = np.isfinite(whole).all(axis=(1, 2)) & (weights > 0)
    if not known.any():
        return None
    mean = np.average(whole[known], axis=0, weights=weights[known])
    np.fill_diagonal(mean, 0)
    true, label = np.unravel_index(int(mean.argmax()), mean.shape)
    return findings.classes[true], findings.classes[label], mean[true, label]


def _counted_top(findings: Findings) -> tuple[str, str, float] | None:
    """The same of very many classes: the wrong label that occurs most often, by the labels found."""
    labels = findings.labels.assign(weight=label_weights(findings.labels))
    count = labels.groupby(["consensus", "label"], sort=False)["weight"].sum()
    true, label = (count.index.get_level_values(level) for level in (0, 1))
    wrong = count[true != label]
    if not len(wrong):
        return None
    true, label = wrong.idxmax()
    return true, label, wrong.max() / count[true].sum()


def _next(findings: Findings) -> list[object]:
    suggestions = findings.suggestions
    if not len(suggestions):
        return [_no_suggestions(findings)]
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


def _no_suggestions(findings: Findings) -> str:
    if findings.several is None:
        return "There are no suggestions."
    return "Suggestions are made for one class per item; here, begin with the items that are least sure."


def _more(section: str, text: str) -> Markup:
    return element("a", text, href=f"#{section}-section")
