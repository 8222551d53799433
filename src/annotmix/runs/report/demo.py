"""The page that `annotmix demo` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.runs.report import svg
from annotmix.runs.report.markup import Markup, element
from annotmix.runs.report.page import figure, key, page, section, table

#: What the three classifiers learn from.
LEARNS_FROM = {"mv-base": "the majority vote", "annot-mix": "every label", "true-base": "the true classes"}


@dataclass(frozen=True)
class Example:
    """An item whose labels mislead the majority: picture, labels by annotator, and who says what."""

    picture: NDArray[np.float64]
    labels: Mapping[Any, Any]
    majority: Any
    consensus: Any


@dataclass(frozen=True)
class Findings:
    """What the demonstration found.

    Parameters
    ----------
    curves : DataFrame, a row an epoch, a column an approach
        Accuracy on the test items; the last row is the result.
    annotators : DataFrame, a row an annotator
        `labels`, `estimated` and `real`: their number, the model's mean p_perf, the share of right ones.
    consensus : DataFrame, a row a training item
        `truth`, `majority`, `consensus`.
    confusions : mapping of annotator to (sentence, estimated, real)
        What the annotator does, and the confusion matrices.
    examples : sequence of Example
    classes : sequence
    n_test, seed : int
    """

    curves: pd.DataFrame
    annotators: pd.DataFrame
    consensus: pd.DataFrame
    confusions: Mapping[Any, tuple[str, NDArray[np.float64], NDArray[np.float64]]]
    examples: Sequence[Example]
    classes: Sequence[Any]
    n_test: int
    seed: int

    @property
    def accuracy(self) -> pd.Series:
        """Accuracy of each approach on the test items."""
        return self.curves.iloc[-1]

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.annotators["labels"].sum())

    @property
    def label_accuracy(self) -> float:
        """Share of right labels among all labels."""
        return float(np.average(self.annotators["real"], weights=self.annotators["labels"]))

    def share_right(self, column: str) -> float:
        """Share of right training labels in "majority" or "consensus"."""
        return float((self.consensus[column] == self.consensus["truth"]).mean())


def demo_page(found: Findings) -> str:
    """The whole page."""
    return page(
        "annotmix demo",
        _opening(found),
        _learning(found),
        _annotators(found),
        _confusions(found),
        _labels(found),
        _making(found),
    )


def _opening(found: Findings) -> Markup:
    accuracy = found.accuracy
    order = found.annotators["estimated"].corr(found.annotators["real"], "spearman")
    results = (
        element(
            "div",
            element("dt", element("b", name), f"learns from {LEARNS_FROM[name]}"),
            element("dd", f"{share:.1%}"),
            class_=f"colour-{i}",
        )
        for i, (name, share) in enumerate(accuracy.items())
    )
    return element(
        "header",
        element("p", "annotmix demo: handwritten digits, simulated annotators", class_="eyebrow"),
        element(
            "h1",
            f"From labels that are {found.label_accuracy:.0%} right to a classifier that is "
            f"{accuracy['annot-mix']:.0%} right",
        ),
        element(
            "p",
            f"{len(found.annotators)} annotators of very different skill gave {found.n_labels:,} labels to "
            f"{len(found.consensus):,} images. A network trained on their majority vote classifies "
            f"{accuracy['mv-base']:.1%} of {found.n_test} new images right; annot-mix, with the same network "
            f"and the same labels, {accuracy['annot-mix']:.1%}. It also found out whom to trust, without "
            f"seeing one true class: its ranking of the annotators correlates with the real one at "
            f"{order:.2f}.",
            class_="lead",
        ),
        element("dl", *results, class_="results", aria_label="Test images classified right"),
    )


def _learning(found: Findings) -> Markup:
    vote = found.curves["mv-base"]
    return section(
        "Learning the digits, or the errors",
        "The majority is often wrong, and a network that is trained for long learns its errors by heart: "
        f"mv-base is best after epoch {vote.idxmax()}, with {vote.max():.1%}, and ends with "
        f"{vote.iloc[-1]:.1%}. Without true classes nobody can know when to stop. annot-mix explains an "
        "error by who made it. true-base, trained on the true classes, shows what perfect labels would give.",
        figure(
            "Share of test images classified right after every epoch",
            svg.line_chart(
                {str(name): list(found.curves[name]) for name in found.curves},
                "Line chart: accuracy on test images per epoch. At the end: "
                + ", ".join(f"{name} {share:.1%}" for name, share in found.accuracy.items()),
                "epoch",
            ),
        ),
    )


def _annotators(found: Findings) -> Markup:
    people = found.annotators.sort_values("real", ascending=False)
    gap = people["estimated"] - people["real"]
    widest = gap.abs().idxmax()
    rows = [
        [name, int(row.labels), f"{row.estimated:.1%}", f"{row.real:.1%}"]
        for name, row in zip(people.index, people.itertuples(), strict=True)
    ]
    return section(
        "Whom to trust",
        "For every label the model gives a chance that it is right. Averaged over an annotator’s labels, "
        f"this chance is on average {gap.abs().mean() * 100:.0f} points away from the share that really is "
        f"right. It is furthest off for {widest}, by {gap[widest] * 100:+.0f} points.",
        figure(
            element("span", key("full"), "estimated by annot-mix", key("ring"), "real", class_="keys"),
            svg.dumbbells(
                list(people.index),
                list(people["estimated"]),
                list(people["real"]),
                "Dot plot: estimated and real accuracy of every annotator, as in the table below",
                chance=1 / len(found.classes),
            ),
        ),
        element(
            "details",
            element("summary", "The figures as a table"),
            table("Accuracy of the annotators", ["Annotator", "Labels", "Estimated", "Real"], rows),
        ),
    )


def _confusions(found: Findings) -> Markup:
    pairs = []
    for name, (sentence, estimated, real) in found.confusions.items():
        maps = (
            figure(kind, svg.heat_map(matrix, found.classes, f"Confusion matrix of {name}, {kind}"))
            for kind, matrix in (("Estimated", estimated), ("Real", real))
        )
        pairs.append(element("div", element("h3", name), element("p", sentence), *maps, class_="pair"))
    return section(
        "What they mistake for what",
        "Each row is a true digit, each column a label; the stronger the colour, the more often the one is "
        "given to the other. A perfect annotator is a diagonal. The model had only the labels to learn from.",
        element("div", *pairs, class_="pairs"),
    )


def _labels(found: Findings) -> Markup:
    right = found.consensus[["majority", "consensus"]].eq(found.consensus["truth"], axis=0)
    repaired = int((right["consensus"] & ~right["majority"]).sum())
    spoilt = int((right["majority"] & ~right["consensus"]).sum())
    items = (
        element(
            "li",
            svg.picture(item.picture, f"Image of a handwritten {item.consensus}"),
            element("div", f"Labels {', '.join(map(str, item.labels.values()))}", title=_who(item)),
            element("div", f"Majority {item.majority}", class_="colour-0"),
            element("div", element("strong", f"annot-mix {item.consensus}"), class_="colour-1"),
        )
        for item in found.examples
    )
    return section(
        "Better labels for the images at hand",
        f"The majority’s label is right for {found.share_right('majority'):.1%} of the training images, the "
        f"model’s consensus for {found.share_right('consensus'):.1%}. It repaired {repaired} labels of the "
        f"majority and spoilt {spoilt}. Some of the repaired:",
        element("ul", *items, class_="items"),
    )


def _who(item: Example) -> str:
    return ", ".join(f"{name}: {label}" for name, label in item.labels.items())


def _making(found: Findings) -> Markup:
    return section(
        "How this was made",
        "The images are scikit-learn’s digits. The annotators are simulated by confusion matrices, so that "
        "their real accuracy is known. All three networks have the same layers, the same dropout and the "
        f"same number of epochs ({len(found.curves)}).",
        "One small data set and one seed show how it works; they are no benchmark. The settings were picked "
        "by hand with an eye on the test images, and the lead of annot-mix hangs on them: with less dropout "
        "mv-base falls further behind, with more, or with a lower learning rate, it comes close.",
        element("p", "The same page again: ", element("code", f"annotmix demo --seed {found.seed}")),
    )
