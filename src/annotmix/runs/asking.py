"""What can be asked of a finished run, without the files it was made from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from annotmix._common.words import some
from annotmix.estimators.beliefs import Beliefs, beliefs
from annotmix.estimators.preparation import Preparation
from annotmix.estimators.suggestion import suggest_from
from annotmix.labels.annotations import Annotations
from annotmix.reading import (
    Columns,
    Instances,
    read_availability,
    read_features,
    read_images,
    read_texts,
    read_truth,
)
from annotmix.reading.instances import called_like_a_label
from annotmix.runs import storage
from annotmix.runs.findings import Findings
from annotmix.runs.fitting import encode, with_scores
from annotmix.runs.folder import RunFolder


def predict(
    run: Path,
    file: Path,
    ids: Path | None = None,
    item_column: str | None = None,
    text_column: str | None = None,
    progress: bool = True,
) -> tuple[pd.DataFrame, list[str]]:
    """Classes of new instances, read and prepared as those of the run were.

    Parameters
    ----------
    run : Path
    file : Path
        Features, texts or a folder of images, whatever the run was made with.
    ids : Path, optional
        For an array of features, the ids of its rows.
    item_column, text_column : str, optional
    progress : bool

    Returns
    -------
    DataFrame, a row an instance
        `task`, `label`, `probability`, and for every class its probability, "P(class)".
    list of str
        What was understood.
    """
    folder = RunFolder(run)
    about, preparation = folder.preparation()
    instances = _read(about, preparation, file, ids, item_column, text_column, progress)
    X = preparation.transform(encode(instances, about["encoder"]), file.name)
    model = folder.model()
    proba = model.predict_proba(X)
    table = pd.DataFrame(
        {
            "task": instances.ids,
            "label": model.classes_[proba.argmax(axis=1)],
            "probability": proba.max(axis=1),
            **{f"P({name})": proba[:, column] for column, name in enumerate(model.classes_)},
        }
    )
    return table, instances.notes


def _read(
    about: dict[str, Any],
    preparation: Preparation,
    file: Path,
    ids: Path | None,
    item_column: str | None,
    text_column: str | None,
    progress: bool,
) -> Instances:
    if about["kind"] == "images":
        return read_images(file, (), progress)
    item_column = item_column or about["id_column"]
    if about["kind"] == "text":
        return read_texts(file, text_column, item_column)
    # what was a feature in spite of its name is one here too
    include = [
        column for column in (*preparation.numeric, *preparation.levels) if called_like_a_label(column)
    ]
    return read_features(file, ids, item_column, include)


def evaluate(run: Path, truth: Path, columns: Columns) -> Findings:
    """Scores of a run on true labels; they are kept with its findings and shown in its report."""
    known, notes, source = read_truth(truth, columns)
    found = findings(run)
    scored = with_scores(found, believed(run, found), known)
    inputs = [own for own in found.inputs if own["role"] != "truth"]
    scored = replace(
        scored,
        inputs=[*inputs, vars(source)],
        notes=list(dict.fromkeys([*scored.notes, *notes])),
    )
    storage.save_findings(run / "findings", scored)
    write_run_report(scored, run / "report.html")
    return scored


def suggest(
    run: Path,
    budget: float,
    *,
    available: Path | None = None,
    annotators: list[str] | None = None,
    per_item: int = 1,
    per_annotator: int | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Pairs (item, annotator) from whose labels most is expected, as `annotmix.suggest` has them.

    Parameters
    ----------
    run : Path
    budget : float
        Labels; money where `available` has costs.
    available : Path, optional
        Table of those who can be asked: worker and, where wanted, cost and load. Those that the run does not
        know are newcomers.
    annotators : list of str, optional
        Those who can be asked, without a table.
    per_item, per_annotator : int, optional
        Limits; a load in the table goes before.

    Returns
    -------
    DataFrame
    list of str
        What was understood, and what was spent.
    """
    if available is not None and annotators is not None:
        raise ValueError("Name those who can be asked one by one or in a table, not both.")
    know = believed(run, findings(run))
    limits: dict[str, Any] = {"annotators": annotators, "per_item": per_item, "per_annotator": per_annotator}
    notes: list[str] = []
    if available is not None:
        asked = read_availability(available)
        known = set(know.annotations.annotators)
        new = [name for name in asked.names if name not in known]
        load = asked.load if per_annotator is None else dict.fromkeys(asked.names, per_annotator) | asked.load
        limits |= {"per_annotator": load, "cost": asked.cost, "newcomers": new}
        limits["annotators"] = [name for name in asked.names if name in known]
        notes += asked.notes
        if new:
            notes.append(f"{len(new)} of {len(asked.names)} annotators are new to the run: {some(new)}.")
    table = suggest_from(know, budget, **limits)
    if "cost" in table:
        notes.append(f"{len(table)} labels for {table['cost'].sum():g} of {budget:g}.")
    elif len(table) < int(budget):
        notes.append(f"Only {len(table)} pairs of item and annotator are left within the limits.")
    return table, notes


def report(run: Path, out: Path | None = None) -> Path:
    """Write the report of a run again."""
    path = run / "report.html" if out is None else out
    write_run_report(findings(run), path)
    return path


def findings(run: Path) -> Findings:
    """What a run found out."""
    return storage.load_findings(RunFolder(run).require().path / "findings")


def believed(run: Path, found: Findings) -> Beliefs:
    """What the run's model believes about its items."""
    annotations = Annotations.from_long(
        found.labels,
        items=list(found.items.index),
        annotators=list(found.annotators.index),
        classes=list(found.classes),
    )
    X = storage.load_array(run / "findings" / "features.npy")
    return beliefs(RunFolder(run).model(), X, annotations, list(found.items.index))


def write_run_report(found: Findings, path: Path) -> None:
    """Write a report; the folder is made."""
    from annotmix.runs.report.run import write_report

    path.parent.mkdir(parents=True, exist_ok=True)
    write_report(found, path)
