"""`annotmix agreement`: how far annotators agree, from files of labels, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.words import count, shorten, some
from annotmix.labels.agreement import RELIABLE, Agreement, agreement
from annotmix.reading import Columns
from annotmix.runs.aggregate import read_said
from annotmix.runs.inputs import Say

#: Classes and annotators that the text lists.
LISTED = 5
#: With two labels for fewer of the items than this, agreement rests on few of them.
FEW = 0.2


def agreement_file(
    paths: Sequence[Path],
    level: str,
    order: Sequence[str] | None,
    seed: int,
    form: str | None,
    columns: Columns,
    rename: Path | None,
    say: Say,
) -> Agreement:
    """The agreement of the annotators in files.

    Parameters
    ----------
    paths : sequence of Path
    level : str
        "nominal", "ordinal" or "interval".
    order : sequence of str or None
        Classes from the least to the greatest.
    seed : int
        Draws the samples of the intervals.
    form, columns, rename, say
        As of `aggregate_file`.
    """
    labelled = read_said(paths, form, columns, rename, say)
    found: Any = level  # any other text is refused with a message
    return agreement(labelled.annotations, level=found, order=order, random_state=seed)


def agreement_lines(result: Agreement) -> list[str]:
    """The main results as lines of text."""
    a, table = result.annotations, result.coefficients
    single = int((a.labels_per_item == 1).sum())
    says = count(single, "item with one label says", "items with one label say")
    rest = f"; {says} nothing about it" if single else ""
    lines = [f"Agreement on {count(result.n_items, 'item')} with two labels or more{rest}"]
    if not result.n_items:
        return [*lines, f"  {result.verdict}"]
    names = {
        "alpha": f"Krippendorff's α, {result.level}",
        "fleiss_kappa": "Fleiss' κ",
        "percent": "two labels agree",
    }
    for name, words in names.items():
        form = ".1%" if name == "percent" else ".3f"
        lines.append(f"  {words:<28} {_with_interval(table.loc[name], 'value', form)}")
    lines += [f"  {result.verdict}", "Classes, the least reliable first"]
    lines += [
        f"  {shorten(name, 28):<28} α {_with_interval(row, 'alpha', '.3f')}, {row['agreement']:.0%} of the "
        f"other labels are the same, {row['share']:.1%} of all labels"
        for name, row in result.classes.head(LISTED).iterrows()
    ]
    lines += _more(len(result.classes), "classes", "--out-classes")
    lines.append("Annotators, those who agree least with the rest first")
    lines += [
        f"  {shorten(name, 28):<28} {_with_interval(row, 'agreement', '.0%')} of the other labels are "
        f"the same, κ {row['kappa']:.3f}, {row['n_items']:.0f} items"
        for name, row in result.annotators.head(LISTED).iterrows()
    ]
    lines += _more(len(result.annotators), "annotators", "--out-annotators")
    return [*lines, "What to do", *(f"  - {advice}" for advice in advices(result))]


def advices(result: Agreement) -> list[str]:
    """What to do about such an agreement, in sentences."""
    a, classes = result.annotations, result.classes
    found = []
    doubtful = classes[classes["high"] < result.alpha].index
    if len(doubtful):
        found.append(
            f"Make the instruction clearer about {_named(doubtful)}: on these classes annotators agree less "
            "than on the whole."
        )
    guessing = by_chance(result).index
    if len(guessing):
        found.append(
            f"Look at labels of {_named(guessing)}: they agree with the rest less than others do, and no "
            "more than chance allows."
        )
    if result.alpha < RELIABLE and (labelled := (a.labels_per_item > 0).sum()):
        found.append(
            f"Do not use single labels as they are. Items have {len(a) / labelled:.1f} labels on average: "
            "annotmix aggregate and annotmix fit weigh them by annotator and say how sure each item is."
        )
    if result.n_items < FEW * (a.labels_per_item > 0).sum():
        found.append(
            "Let a random part of the items be labelled twice or more: few have two labels, and those may "
            "have been chosen because they are hard."
        )
    return found or ["Nothing: the labels are reliable as they are."]


def by_chance(result: Agreement) -> pd.DataFrame:
    """The annotators whose agreement may be by chance, and is less than that of all by more than chance."""
    table = result.annotators
    chance = (table["agreement"] - table["kappa"]) / (1 - table["kappa"])
    return table[(table["low"] <= chance) & (table["high"] < result.percent)]


def agreement_document(result: Agreement) -> dict[str, Any]:
    """All results for one JSON document."""
    return {
        "level": result.level,
        "n_items": result.n_items,
        "coefficients": result.coefficients.to_dict("index"),
        "verdict": result.verdict,
        "classes": _records(result.classes),
        "annotators": _records(result.annotators),
        "pairs": result.pairs().to_dict("records"),
        "advice": advices(result) if result.n_items else [],
    }


def _records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return list(table.reset_index().to_dict("records"))


def _with_interval(row: pd.Series, name: str, form: str) -> str:
    if np.isnan(row["low"]):
        return f"{row[name]:{form}}"
    return f"{row[name]:{form}} ({row['low']:{form}} to {row['high']:{form}})"


def _more(n: int, what: str, option: str) -> list[str]:
    return [f"  … {n - LISTED} more {what}: {option} FILE"] if n > LISTED else []


def _named(names: pd.Index) -> str:
    return some([shorten(name, 40) for name in names])
