"""`annotmix aggregate`: one label per item, its probability, and whom to trust, from labels alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from annotmix._common.words import count
from annotmix.labels import crowdkit
from annotmix.labels.aggregation import majority_vote
from annotmix.labels.annotations import Annotations
from annotmix.labels.confusion import Floats
from annotmix.labels.dawid_skene import dawid_skene
from annotmix.labels.kinds import UNKNOWN
from annotmix.labels.label_sets import LabelSets, as_tuples
from annotmix.labels.names import locate
from annotmix.labels.posterior import annotator_table, posterior
from annotmix.labels.set_posterior import chance_of_set, set_annotators, vote_by_class
from annotmix.labels.set_texts import write_set
from annotmix.reading import Columns, LabelData, read_labels
from annotmix.reading.class_names import read_rename
from annotmix.runs.conclusions import disagreement
from annotmix.runs.inputs import Say


class Aggregated(NamedTuple):
    """The result of `aggregate_file`.

    Attributes
    ----------
    items : DataFrame, one row per labelled item
        `item`, `label`, `probability`, `n_labels`, and "P(class)" for every class; without probabilities
        where the method has none. With `soft`, the labels that the crowd would give. Of sets of classes,
        `label` is a text such as "live|rock", "(none)" for no class, and `probability` the chance that the
        whole set is right.
    annotators : DataFrame, one row per annotator, best first
        `annotator`, `accuracy`, its interval `low` and `high`, `n_labels`; of sets also `sensitivity` and
        `specificity`; `kind` where a table of annotators says it.
    """

    items: pd.DataFrame
    annotators: pd.DataFrame


def aggregate_file(
    paths: Sequence[Path],
    method: str,
    seed: int,
    form: str | None,
    columns: Columns,
    rename: Path | None,
    soft: bool,
    say: Say,
) -> Aggregated:
    """Labels of every item and accuracies of every annotator, by `method`.

    Parameters
    ----------
    paths : sequence of Path
    method : str
        "posterior", "ds", "mv" or "crowd-kit:NAME".
    seed : int
        Breaks ties.
    form : str or None
        Format of the files.
    columns : Columns
    rename : Path or None
        Table of new names of classes.
    soft : bool
        Probabilities are those of a further annotator's label, not of the right class.
    say : callable
        Called with every line of output.
    """
    if soft and method != "posterior":
        raise ValueError(f"--soft needs --method posterior, found {method!r}.")
    labelled = read_said(paths, form, columns, rename, say)
    a = labelled.annotations
    if labelled.sets is not None:
        if soft:
            raise ValueError("--soft is for one class per item; leave out --multi-label or --soft.")
        return _with_kinds(_aggregate_sets(labelled.sets, method, seed), labelled)
    if soft:
        found = posterior(a)
        crowd = found.soft_labels()
        say(disagreement(crowd.rise))
        label, q, has_probability = crowd.values.argmax(axis=1), crowd.values, True
        annotators = found.annotators
    else:
        label, q, has_probability = _classes(a, method, seed)
        annotators = annotator_table(a, q)
    rows = np.flatnonzero(label >= 0)
    table: dict[str, object] = {"item": a.items[rows], "label": a.classes[label[rows]]}
    if has_probability:
        table["probability"] = q[rows, label[rows]]
    table["n_labels"] = a.labels_per_item[rows]
    if has_probability:
        table |= {f"P({name})": q[rows, c] for c, name in enumerate(a.classes)}
    return _with_kinds(Aggregated(pd.DataFrame(table), annotators.reset_index()), labelled)


def _with_kinds(result: Aggregated, labelled: LabelData) -> Aggregated:
    """The kind of every annotator, where the labels came with a table of annotators."""
    if labelled.annotators is None:
        return result
    kinds = labelled.annotators.table["kind"].reindex(result.annotators["annotator"]).fillna(UNKNOWN)
    return result._replace(annotators=result.annotators.assign(kind=kinds.to_numpy()))


def read_said(
    paths: Sequence[Path], form: str | None, columns: Columns, rename: Path | None, say: Say
) -> LabelData:
    """Labels from files, and lines about how they were read; parameters as of `aggregate_file`."""
    if rename is not None:
        columns = replace(columns, rename=read_rename(rename))
    labelled = read_labels(paths, form, columns)
    if unknown := [name for name in columns.exclude if name not in labelled.used]:
        raise ValueError(f"--exclude {unknown[0]}: the labels have no such column to leave out.")
    a = labelled.annotations
    n_classes = a.n_classes if labelled.sets is None else labelled.sets.n_classes
    say(
        f"{count(len(a), 'label')} by {count(a.n_annotators, 'annotator')} on {count(a.n_items, 'item')}, "
        f"{count(n_classes, 'class', 'classes')} ({labelled.format})."
    )
    for note in labelled.notes:
        say(f"  - {note}")
    return labelled


def _aggregate_sets(sets: LabelSets, method: str, seed: int) -> Aggregated:
    """Sets of classes, one method for every class: those that belong to an item with a chance of one half."""
    if method == "posterior":
        q = posterior(sets).q
    else:
        q = np.stack([_classes(sets.binary(c), method, seed)[1][:, 1] for c in sets.classes], axis=1)
    chosen, rows = q >= 0.5, np.flatnonzero(sets.labels_per_item > 0)
    if method == "mv":
        chosen = vote_by_class(sets)
    table: dict[str, object] = {
        "item": sets.items[rows],
        "label": [write_set(own) for own in as_tuples(chosen[rows], sets.classes)],
        "probability": chance_of_set(q, chosen)[rows],
        "n_labels": sets.labels_per_item[rows],
    }
    table |= {f"P({name})": q[rows, c] for c, name in enumerate(sets.classes)}
    return Aggregated(pd.DataFrame(table), set_annotators(sets, q).reset_index())


def _classes(a: Annotations, method: str, seed: int) -> tuple[np.ndarray, Floats, bool]:
    """Class of every item, shape (N,), -1 for none; class probabilities, shape (N, C); whether they are any.

    A method without probabilities gets those of the class it chose: 1.
    """
    if method == "posterior":
        q = posterior(a).answer.q
        return q.argmax(axis=1), q, True
    if method == "ds":
        result = dawid_skene(a)
        return _located(result.labels, a), result.probabilities.to_numpy(), True
    if method == "mv":
        item, label, votes = a.votes()
        q = np.zeros((a.n_items, a.n_classes))
        q[item, label] = votes
        q /= q.sum(axis=1, keepdims=True)
        return _located(majority_vote(a, random_state=seed), a), q, True
    if not method.startswith("crowd-kit:"):
        raise ValueError(f"--method must be posterior, ds, mv or crowd-kit:NAME, found {method!r}.")
    labels, probabilities = crowdkit.fit_predict_proba(a, method.removeprefix("crowd-kit:"), seed)
    chosen = _located(labels, a)
    if probabilities is not None:
        known = probabilities.reindex(index=a.items, columns=a.classes).fillna(0.0).to_numpy()
        return chosen, known, True
    q = np.zeros((a.n_items, a.n_classes))
    q[chosen >= 0, chosen[chosen >= 0]] = 1.0
    return chosen, q, False


def _located(labels: pd.Series, a: Annotations) -> np.ndarray:
    """The class of every item, shape (N,), -1 where `labels` has none."""
    label = np.full(a.n_items, -1, dtype=np.int64)
    label[locate(labels.index.to_numpy(), a.items)] = locate(labels.to_numpy(), a.classes)
    return label
