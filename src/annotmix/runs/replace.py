"""`annotmix replace`: the alternative annotator test for every model, from files of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from annotmix._common.words import some
from annotmix.labels.annotations import Annotations
from annotmix.labels.replacement import ENOUGH_PEOPLE, MANY_ITEMS, AlternativeTest, alternative_test
from annotmix.reading import Columns, read_labels


class Replacement(NamedTuple):
    """The result of `replace_file`.

    Attributes
    ----------
    models : DataFrame, one row per model, the greatest advantage first
        `model`, `people`, `winning_rate`, `advantage`, `passes`.
    people : DataFrame, one row per model and person
        `model`, `annotator` and the columns of `AlternativeTest.people`.
    notes : list of str
    """

    models: pd.DataFrame
    people: pd.DataFrame
    notes: list[str]


def replace_file(
    paths: Sequence[Path], form: str | None, columns: Columns, models: Sequence[str], epsilon: float
) -> Replacement:
    """Test every model against the people.

    Parameters
    ----------
    paths : sequence of Path
        Files of labels.
    form : str or None
        Their format.
    columns : Columns
        Its `annotators` may name the table that says who is a person and who is a model.
    models : sequence of str
        Names of the models; by default those of the table. Without a table all others are people.
    epsilon : float
        See `annotmix.alternative_test`.
    """
    labelled = read_labels(paths, form, columns)
    kinds = {} if labelled.annotators is None else labelled.annotators.table["kind"].to_dict()
    wanted, people = who_is_who(labelled.annotations, kinds, models)
    if not wanted:
        raise ValueError(
            "Nothing says which annotators are models: name them with --model NAME, or in a table with the "
            "columns annotator and kind (people, models), --annotators FILE. The annotators are "
            f"{some(labelled.annotations.annotators)}."
        )
    tests = [alternative_test(labelled.annotations, name, people, epsilon) for name in wanted]
    notes = [*labelled.notes, *cautions(tests)]
    return Replacement(models_table(tests), people_table(tests), notes)


def who_is_who(
    annotations: Annotations, kinds: Mapping[str, str], models: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """The models and the people among annotators with labels; with no kinds all but the models are people."""
    there = [str(name) for name in annotations.annotators[annotations.labels_per_annotator > 0]]
    wanted = list(models) or [name for name in there if kinds.get(name) == "models"]
    if not kinds:
        return wanted, [name for name in there if name not in wanted]
    return wanted, [name for name in there if kinds.get(name) == "people" and name not in wanted]


def models_table(tests: Sequence[AlternativeTest]) -> pd.DataFrame:
    """One row per model, the greatest advantage first."""
    rows = [
        (str(test.model), test.n_people, test.winning_rate, test.advantage, test.passes) for test in tests
    ]
    table = pd.DataFrame(rows, columns=["model", "people", "winning_rate", "advantage", "passes"])
    return table.sort_values("advantage", ascending=False, kind="stable", ignore_index=True)


def people_table(tests: Sequence[AlternativeTest]) -> pd.DataFrame:
    """One row per model and person."""
    parts = [test.people.reset_index().assign(model=str(test.model)) for test in tests]
    table = pd.concat(parts, ignore_index=True)
    return table[["model", *(name for name in table.columns if name != "model")]]


def cautions(tests: Sequence[AlternativeTest]) -> list[str]:
    """Notes where there are fewer people or items than the authors of the test advise."""
    notes: list[str] = []
    people = min(test.n_people for test in tests)
    if people < ENOUGH_PEOPLE:
        notes.append(f"The test compares {people} people; {ENOUGH_PEOPLE} or more are advised.")
    counts: Any = pd.concat([test.people["n_items"] for test in tests])
    few = sorted(set(counts.index[(counts > 0) & (counts < MANY_ITEMS)]))
    if few:
        notes.append(
            f"With fewer than {MANY_ITEMS} items per person a difference is rarely proven: {some(few)}."
        )
    return notes
