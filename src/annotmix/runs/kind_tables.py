"""The tables of a run about people, models and rules; `result_columns.py` explains them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from annotmix.labels.kind_comparison import compare_kinds
from annotmix.labels.kinds import UNKNOWN
from annotmix.labels.posterior import Posterior
from annotmix.labels.replacement import ENOUGH_PEOPLE, alternative_test
from annotmix.reading import AnnotatorTable
from annotmix.runs.replace import who_is_who
from annotmix.runs.result_columns import make_table

#: ε that the authors of the alternative annotator test advise for kinds of people.
EPSILONS = {"experts": 0.2, "skilled": 0.15, "crowd_workers": 0.1}
#: Models that a report tests.
MOST_MODELS = 50


def kind_tables(
    posterior: Posterior, who: AnnotatorTable | None, unparsed: Mapping[str, int]
) -> dict[str, pd.DataFrame]:
    """The tables of `Findings.kinds`; none without a table of annotators.

    `unparsed` counts the answers of annotators that could not be read as a label.
    """
    if who is None:
        return {}
    kinds = who.table["kind"].to_dict()
    found = compare_kinds(posterior, kinds, who.cost)
    tables = {
        "crowd": _crowd(posterior, who),
        "kinds": _with_unparsed(found.kinds, kinds, unparsed).reset_index(),
        "kind_agreement": found.agreement,
        "kind_classes": found.classes.reset_index(),
        "kind_confusions": found.confusions,
        "kind_items": found.items,
    }
    if (tests := _replacements(posterior, kinds)) is not None:
        tables["replacements"] = tests
    return {name: make_table(name, table) for name, table in tables.items()}


def _with_unparsed(
    table: pd.DataFrame, kinds: Mapping[str, str], unparsed: Mapping[str, int]
) -> pd.DataFrame:
    count = dict.fromkeys(table.index, 0)
    for name, n in unparsed.items():
        if (kind := kinds.get(name, UNKNOWN)) in count:
            count[kind] += n
    return table.assign(unparsed=pd.Series(count)) if unparsed else table


def with_unparsed(annotators: pd.DataFrame, unparsed: Mapping[str, int]) -> pd.DataFrame:
    """`Findings.annotators` with the number of answers of each that could not be read as a label."""
    counts = [unparsed.get(str(name), 0) for name in annotators.index]
    return make_table("annotators", annotators.assign(unparsed=counts).reset_index())


def with_kinds(annotators: pd.DataFrame, crowd: pd.DataFrame) -> pd.DataFrame:
    """`Findings.annotators` with the kind of every annotator; `crowd` as in `Findings.kinds`."""
    kind = crowd.set_index("annotator")["kind"].reindex(annotators.index)
    return make_table("annotators", annotators.assign(kind=kind).reset_index())


def with_real_accuracy(
    kinds: Mapping[str, pd.DataFrame], annotators: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """`Findings.kinds` with the share of right labels of every kind; `annotators` have `real_accuracy`."""
    if not kinds:
        return {}
    sums = pd.DataFrame(
        {"right": annotators["real_accuracy"] * annotators["n_checked"], "all": annotators["n_checked"]}
    )
    sums = sums.groupby(annotators["kind"]).sum()
    real = (sums["right"] / sums["all"]).reindex(kinds["kinds"]["kind"]).to_numpy(dtype=np.float64)
    return {**kinds, "kinds": make_table("kinds", kinds["kinds"].assign(real_accuracy=real))}


def _crowd(posterior: Posterior, who: AnnotatorTable) -> pd.DataFrame:
    """Everything that is known of annotators: those with labels first, then those who gave none."""
    labelled = [str(name) for name in posterior.annotations.annotators]
    names = list(dict.fromkeys([*labelled, *who.names]))
    table = who.table.reindex(pd.Index(names, name="annotator", tupleize_cols=False))
    table = table.fillna({"kind": UNKNOWN, "group": "", "model": "", "prompt": ""})
    table[["cost", "load"]] = table[["cost", "load"]].astype(np.float64)
    return table.reset_index()


def _replacements(posterior: Posterior, kinds: Mapping[str, str]) -> pd.DataFrame | None:
    """The alternative annotator test of every model; None where there are too few people, or no model."""
    models, people = who_is_who(posterior.annotations, kinds)
    if len(people) < ENOUGH_PEOPLE:
        return None
    rows = []
    for model in models[:MOST_MODELS]:
        try:
            tests = {
                name: alternative_test(posterior.annotations, model, people, epsilon)
                for name, epsilon in EPSILONS.items()
            }
        except ValueError:  # the model and the people have no items in common
            continue
        first = tests["experts"]
        rates = {name: test.winning_rate for name, test in tests.items()}
        rows.append({"model": str(model), "people": first.n_people, "advantage": first.advantage, **rates})
    if not rows:
        return None
    return pd.DataFrame(rows).sort_values("advantage", ascending=False, kind="stable", ignore_index=True)
