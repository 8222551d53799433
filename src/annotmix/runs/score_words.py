"""Scores of a run on true labels, in words: their names, and which labels are best beyond the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping

#: Description of each score, and the format of its value.
SCORES = {
    "n": ("Items with known labels", ",.0f"),
    "learnt": ("Learnt items among them, with labels in the run", ",.0f"),
    "consensus-acc": ("Learnt items labelled right by this run (consensus-acc)", ".1%"),
    "majority-acc": ("Learnt items labelled right by the majority vote (majority-acc)", ".1%"),
    "dawid-skene-acc": ("Learnt items labelled right by Dawid–Skene (dawid-skene-acc)", ".1%"),
    "out-of-fold-acc": (
        "Learnt items classified right by classifiers that have not seen them (out-of-fold-acc)",
        ".1%",
    ),
    "new": ("New items among them, without labels in the run", ",.0f"),
    "clf-acc": ("New items classified right by the classifier (clf-acc)", ".1%"),
    "label-auroc": ("How well wrong labels are told from right ones (label-auroc, 0.5 is guessing)", ".3f"),
    "annotator-rank": ("Rank correlation of annotators’ estimated and real accuracy (annotator-rank)", ".2f"),
    "annotators": ("Annotators in this ranking", ",.0f"),
    "subset-acc": ("Learnt items whose set of classes is exactly right (subset-acc)", ".1%"),
    "macro-f1": ("F1 of this run, mean over classes (macro-f1)", ".3f"),
    "micro-f1": ("F1 of this run over all decisions (micro-f1)", ".3f"),
    "hamming": ("Decisions about a class that are wrong in this run (hamming)", ".1%"),
    **{
        f"{prefix}{name}": (f"{words}: {what}", form)
        for prefix, words in (
            ("vote-", "Vote about each class"),
            ("out-of-fold-", "Classifiers that have not seen the learnt items"),
            ("clf-", "Classifier on new items"),
        )
        for name, what, form in (
            ("subset-acc", "sets that are exactly right", ".1%"),
            ("macro-f1", "F1, mean over classes", ".3f"),
            ("micro-f1", "F1 over all decisions", ".3f"),
            ("hamming", "decisions that are wrong", ".1%"),
        )
    },
    "ece": ("Mean distance of confidence and share of right labels (ece)", ".1%"),
}
#: Other ways to find labels, which the run is compared with.
RIVALS = {"majority": "the majority vote", "dawid-skene": "Dawid–Skene"}
#: Ends of the names of scores that `verdict` tells in a sentence.
_GAPS = ("-gap", "-gap-se")
#: A difference of more standard errors than this is beyond the noise.
BEYOND = 2.0


def is_known(scores: Mapping[str, float], name: str) -> bool:
    """Whether there is a score of this name, and it is a number."""
    return math.isfinite(scores.get(name, math.nan))


def score_rows(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """Description and value of every score, for a table."""
    rows = []
    for name, value in scores.items():
        if not name.endswith(_GAPS):
            words, form = SCORES.get(name, (name, ".3g"))
            rows.append((words, f"{value:{form}}" if math.isfinite(value) else "–"))
    return rows


def verdict(scores: Mapping[str, float]) -> list[str]:
    """Sentences: which labels are right most often, and whether the run's differ beyond the noise."""
    if is_known(scores, "subset-acc") and is_known(scores, "vote-subset-acc"):
        return [
            f"On {scores['learnt']:,.0f} learnt items with known classes, this run finds exactly the right "
            f"set for {scores['subset-acc']:.1%}, a vote about each class for "
            f"{scores['vote-subset-acc']:.1%}."
        ]
    rivals = [name for name in RIVALS if is_known(scores, f"{name}-gap")]
    if not rivals or not is_known(scores, "consensus-acc"):
        return []
    right = {"this run": scores["consensus-acc"]}
    right |= {RIVALS[name]: scores[f"{name}-acc"] for name in rivals}
    most = max(right.values())
    best = [name for name, value in right.items() if value == most]
    rest = [f"{name} for {value:.1%}" for name, value in right.items() if value < most]
    first = (
        f"On {scores['learnt']:,.0f} learnt items with known labels, {' and '.join(best)} "
        f"{'is' if len(best) == 1 else 'are'} right most often, for {most:.1%}"
    )
    others = f"; {' and '.join(rest)}" if rest else ""
    return [f"{first}{others}.", *(_difference(scores, name) for name in rivals)]


def _difference(scores: Mapping[str, float], rival: str) -> str:
    gap, noise = scores[f"{rival}-gap"], BEYOND * scores[f"{rival}-gap-se"]
    if not noise:
        return f"On every item this run is right exactly where {RIVALS[rival]} is."
    size = f"{100 * abs(gap):.1f} ± {100 * noise:.1f} points"
    if gap == 0:
        return f"This run and {RIVALS[rival]} are right equally often (0.0 ± {100 * noise:.1f} points)."
    side = "better" if gap > 0 else "worse"
    told = "beyond" if abs(gap) > noise else "within"
    return f"This run is {side} than {RIVALS[rival]} by {size}, {told} the noise (two standard errors)."


def classifier_words(scores: Mapping[str, float]) -> list[str]:
    """Sentences: how often the classifier, which sees the item alone, is right about learnt and new items."""
    sentences = []
    if is_known(scores, "out-of-fold-acc"):
        sentences.append(
            f"Classifiers that have not seen a learnt item classify {scores['out-of-fold-acc']:.1%} of them "
            "right; expect about as much for new items of the same kind."
        )
    elif scores.get("learnt") and "subset-acc" not in scores:
        sentences.append(
            "For learnt items no accuracy of the classifier is given: it has learnt their labels, and this "
            "run has no predictions by networks that have not seen them."
        )
    if is_known(scores, "clf-acc"):
        sentences.append(
            f"Of {scores['new']:,.0f} new items, which have no labels in the run, the classifier is right "
            f"for {scores['clf-acc']:.1%}."
        )
    elif "new" in scores and "subset-acc" not in scores:
        sentences.append("No item with a known label is new, so none shows how the classifier does on them.")
    return sentences
