"""Classes of new items, by the classifier of a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from annotmix.labels.label_sets import as_tuples
from annotmix.labels.set_posterior import chance_of_set
from annotmix.labels.set_texts import write_set
from annotmix.reading import Items, read_features, read_images, read_texts
from annotmix.reading.items import called_like_a_label
from annotmix.runs.folder import RunFolder
from annotmix.runs.prepare import ItemPreparation


def predict(
    run: Path,
    file: Path,
    ids: Path | None = None,
    item_column: str | None = None,
    text_column: str | None = None,
    progress: bool = True,
    soft: bool = False,
) -> tuple[pd.DataFrame, list[str]]:
    """Classes of new items, read and prepared like the items of the run.

    Parameters
    ----------
    run : Path
    file : Path
        Features, texts or a folder of images, whatever the run was made with.
    ids : Path, optional
        For an array of features, the ids of its rows.
    item_column, text_column : str, optional
    progress : bool
    soft : bool
        The probabilities are those of the labels that the crowd would give, not of the right class.

    Returns
    -------
    DataFrame, one row per item
        `item`, `label`, `probability`, and for every class its probability, "P(class)". Of several classes
        per item `label` is a set such as "live|rock", and `probability` the chance that it is exactly right.
    list of str
        Notes about how the file was read.
    """
    preparation, model = RunFolder(run).read("preparation", "model")
    items = _read(preparation, file, ids, item_column, text_column, progress)
    proba = model.predict_proba(preparation.transform(items, file.name))
    several = model._learnt_sets
    if soft and several:
        raise ValueError("--soft is for one class per item, and this run has several.")
    if soft:
        proba = model.posterior_.soft_labels().of_new_items(proba)
    label, probability = model.classes_[proba.argmax(axis=1)], proba.max(axis=1)
    if several:
        chosen = proba >= 0.5
        label = np.array([write_set(own) for own in as_tuples(chosen, model.classes_)], dtype=object)
        probability = chance_of_set(proba, chosen)
    table = pd.DataFrame(
        {
            "item": items.ids,
            "label": label,
            "probability": probability,
            **{f"P({name})": proba[:, column] for column, name in enumerate(model.classes_)},
        }
    )
    return table, items.notes


def _read(
    preparation: ItemPreparation,
    file: Path,
    ids: Path | None,
    item_column: str | None,
    text_column: str | None,
    progress: bool,
) -> Items:
    if preparation.kind == "images":
        return read_images(file, (), progress)
    item_column = item_column or preparation.id_column
    if preparation.kind == "text":
        return read_texts(file, text_column, item_column)
    # a column that was a feature in spite of its name is one here too
    table = preparation.table
    include = [column for column in (*table.numeric, *table.levels) if called_like_a_label(column)]
    return read_features(file, ids, item_column, include)
