"""The page of evidence.py: one overview, one table, and the comparisons in words, all from its results."""

from __future__ import annotations

import base64
import zlib
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np


class SetFacts(NamedTuple):
    """A set: what it is, how many seeds it gets, whether it is run first."""

    text: str
    seeds: int = 3
    quick: bool = False


class MethodFacts(NamedTuple):
    """A method: its row, whether seeds matter, whether it is given the classes of some items."""

    title: str
    text: str
    random: bool = False
    gold: bool = False

    def suits(self, name: str) -> bool:
        """Gold items are drawn for the sets without a test set."""
        return not self.gold or name.startswith("babe")


SETS = {
    "mgc": SetFacts("songs of ten genres, 44 crowdworkers", 5, True),
    "labelme": SetFacts("photos of eight scenes as VGG-16 features, 59 crowdworkers", 5, True),
    "digits": SetFacts("handwritten digits, 20 simulated annotators", 5, True),
    "babe zero-shot": SetFacts("news sentences, biased or neutral, 13 language models; MiniLM", 5, True),
    "babe 2-shot": SetFacts("the same sentences, the models saw two examples", 5, True),
    "letter": SetFacts("letters of 26 classes, 20 simulated annotators"),
    "trec6": SetFacts("questions of six kinds, 20 simulated annotators; MiniLM"),
    "flowers102": SetFacts("photos of 102 flowers as EfficientNet features, 20 simulated annotators"),
}
METHODS = {
    "vote": MethodFacts("majority vote", "the most frequent label; ties count by their share"),
    "ds": MethodFacts("Dawid–Skene", "`annotmix.dawid_skene`"),
    "one-coin": MethodFacts("one-coin Dawid–Skene", "crowd-kit's"),
    "glad": MethodFacts("GLAD", "crowd-kit's"),
    "crowdlab": MethodFacts(
        "CROWDLAB", "cleanlab's, with the out-of-fold probabilities of `CrowdClassifier`", True
    ),
    "labels": MethodFacts("**posterior**", "`annotmix.posterior` of the labels alone"),
    "logistic": MethodFacts("**CrowdClassifier**", "`annotmix.CrowdClassifier`, logistic regression", True),
    "annot-mix": MethodFacts("annot-mix", "its consensus is that of the labels alone", True),
    "plus": MethodFacts("**annot-mix-plus**", "its networks judge items that they have not seen", True),
    "before": MethodFacts("annot-mix-plus, before", "at commit 2413157: labels weighed by constants", True),
    "ds-gold": MethodFacts("Dawid–Skene, 200 gold", "200 items have a known class", True, True),
    "labels-gold": MethodFacts("**posterior**, 200 gold", "the same", True, True),
    "logistic-gold": MethodFacts("**CrowdClassifier**, 200 gold", "the same", True, True),
}

OURS = ("labels", "logistic", "plus")
#: Differences beyond this many standard errors are no noise.
NOISE = 2
#: Pairs of methods whose calibration and classifiers are told side by side.
PAIRS = (("labels", "ds"), ("logistic", "crowdlab"), ("plus", "before"), ("plus", "annot-mix"))
HEADER = (
    "set",
    "method",
    "consensus",
    "± of seeds",
    "against the better of vote and Dawid–Skene",
    "label AUROC",
    "ECE",
    "annotators",
    "clf-acc",
    "CPU s",
    "seeds",
)
INTRO = """# Evidence on all sets

```
python benchmarks/evidence.py --data FOLDER    # or: make evidence
```

This page is written by the command, from results that it keeps. *Consensus* is the accuracy of the most
probable labels of all labelled items in percent, and beside it the spread over seeds. The next column is the
difference to the majority vote or to Dawid–Skene, whichever is better on the set, with the standard error of
this difference, paired over items. *Label AUROC* says how well the quality of a label tells right labels from
wrong ones. *ECE* is the expected calibration error of the consensus in ten bins, in percentage points: 0 if
consensus labels of probability 0.8 are right in 80 %, and so on. *Annotators* is Spearman's correlation of
the estimated and the real accuracy of annotators with ten labels or more. *clf-acc* is the accuracy on new
items in percent. CPU seconds are of one busy core; those of CROWDLAB hold the making of its probabilities.
Methods of crowd-kit are stopped after two minutes of CPU time (> 120, no figures). Methods without randomness
have one seed; the last column says how many seeds (0, 1, …) the others have. Rows that are absent have not
been run.
True classes score the results and decide nothing else, except in the rows with gold items.
"""


class Results:
    """All results, by set and method."""

    def __init__(self, lines: Iterable[dict[str, Any]]):
        self.all: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        self.slow: set[tuple[str, str]] = set()
        for line in lines:
            key = line["set"], line["method"]
            self.all[key].append(line) if "right" in line else self.slow.add(key)
        self.sets = [name for name in SETS if {(name, "vote"), (name, "ds")} <= set(self.all)]

    def values(self, name: str, method: str, score: str) -> list[float]:
        found = (line[score] for line in self.all[name, method])
        return [value for value in found if value is not None]

    def right(self, name: str, method: str) -> np.ndarray:
        """P(consensus right) of every item, the mean over seeds; nan for items that do not count."""
        packed = (base64.b64decode(line["right"]) for line in self.all[name, method])
        seeds = np.array([np.frombuffer(zlib.decompress(part), np.float32) for part in packed], float)
        counted = np.isfinite(seeds).sum(axis=0)
        return np.where(counted > 0, np.nansum(seeds, axis=0) / np.maximum(counted, 1), np.nan)

    def best_known(self, name: str) -> str:
        return max("vote", "ds", key=lambda method: self.values(name, method, "accuracy")[0])

    def difference(self, name: str, method: str, other: str) -> tuple[float, float]:
        """Of two accuracies in percent, and its standard error over items."""
        by_item = self.right(name, method) - self.right(name, other)
        by_item = 100 * by_item[np.isfinite(by_item)]
        return float(by_item.mean()), float(by_item.std(ddof=1) / np.sqrt(len(by_item)))


def page(lines: Iterable[dict[str, Any]]) -> str:
    results = Results(lines)
    parts = [INTRO, *findings(results), "## Consensus accuracy\n", overview(results)]
    parts += ["## All figures\n", full_table(results), "## Rows and sets\n", legend(results)]
    return "\n".join(parts)


def overview(results: Results) -> str:
    rows = []
    for method, facts in METHODS.items():
        cells = [mean(results.values(name, method, "accuracy"), 100, 1) for name in results.sets]
        rows.append([facts.title, *cells])
    return table(["", *results.sets], rows)


def full_table(results: Results) -> str:
    rows = []
    for name in results.sets:
        best = results.best_known(name)
        for method, facts in METHODS.items():
            key = name, method
            if key in results.slow:
                rows.append([name, facts.title, *["–"] * 7, "> 120", "1"])
            if not results.all[key]:
                continue
            accuracy = results.values(*key, "accuracy")
            spread = f"{100 * np.std(accuracy):.1f}" if len(accuracy) > 1 else "–"
            versus = "–" if method == best else "{:+.1f} ± {:.1f}".format(*results.difference(*key, best))
            rows.append(
                [
                    name,
                    facts.title,
                    mean(accuracy, 100, 1),
                    spread,
                    versus,
                    mean(results.values(*key, "auroc"), 1, 3),
                    mean(results.values(*key, "ece"), 100, 1),
                    mean(results.values(*key, "annotators"), 1, 2),
                    mean(results.values(*key, "clf-acc"), 100, 1),
                    mean(results.values(*key, "seconds"), 1, 1),
                    str(len(accuracy)),
                ]
            )
    return table(HEADER, rows)


def findings(results: Results) -> list[str]:
    """The comparisons in words, first those that are worse."""
    text, missed, n_compared = [], [], 0
    for method in OURS:
        others: list[tuple[str, str | None]] = [("the better of vote and Dawid–Skene", None)]
        others += [("CROWDLAB with the same probabilities", "crowdlab")] if method == "logistic" else []
        others += [("the same approach before", "before")] if method == "plus" else []
        for title, other in others:
            kinds = _compared(results, method, other)
            told = [f"{kind} on {', '.join(names)}" for kind, names in kinds.items() if names]
            heading = f"{METHODS[method].title} against {title}"
            text.append(f"- {heading}: {'; '.join(told) or 'not compared yet'}.")
            n_compared += sum(map(len, kinds.values()))
            missed += [f"{heading} on {name}" for name in kinds["worse"]]
    for score, title in (("ece", "ECE"), ("clf-acc", "clf-acc")):
        for method, other in PAIRS:
            pairs = [
                f"{name} {mean(one, 100, 1)} ({mean(two, 100, 1)})"
                for name in results.sets
                if (one := results.values(name, method, score))
                and (two := results.values(name, other, score))
            ]
            heading = f"{title} of {METHODS[method].title} (in brackets {METHODS[other].title})"
            text += [f"- {heading}: {', '.join(pairs)}."] if pairs else []
    verdict = "**Worse beyond the noise:**" if missed else "No consensus is worse beyond the noise."
    head = f"""## What the figures say

Noise is a difference of at most {NOISE} standard errors. They are over items and do not hold the spread over
seeds, which is unknown where there is one seed. Without any real difference, one in twenty of the
{n_compared} comparisons would be beyond the noise by chance. {verdict}
"""
    return [head, *(f"- {line}" for line in missed), "\nAll comparisons:\n", *text, ""]


def _compared(results: Results, method: str, other: str | None) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {"better": [], "level": [], "worse": []}
    for name in results.sets:
        reference = other or results.best_known(name)
        if results.all[name, method] and results.all[name, reference]:
            gain, error = results.difference(name, method, reference)
            kind = "level" if abs(gain) <= NOISE * error else "better" if gain > 0 else "worse"
            kinds[kind].append(f"{name} ({gain:+.1f} ± {error:.1f})")
    return kinds


def legend(results: Results) -> str:
    rows = [[facts.title, facts.text] for facts in METHODS.values()]
    sets = [[name, SETS[name].text, seeds_of(results, name)] for name in results.sets]
    header = ["set", "", "seeds of CrowdClassifier, annot-mix-plus"]
    return table(["row", ""], rows) + "\n" + table(header, sets)


def seeds_of(results: Results, name: str) -> str:
    return ", ".join(str(len(results.all[name, method]) or "–") for method in ("logistic", "plus"))


def mean(values: list[float], scale: float, digits: int) -> str:
    return f"{scale * float(np.mean(values)):.{digits}f}" if values else "–"


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
