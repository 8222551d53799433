"""The items to label next, and the annotators to label them, by the model of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from annotmix._common.words import some
from annotmix.estimators.suggestion import suggest_from
from annotmix.labels.posterior import Posterior
from annotmix.reading import read_availability
from annotmix.runs.folder import RunFolder


def suggest(
    run: Path,
    budget: float,
    *,
    available: Path | None = None,
    annotators: list[str] | None = None,
    per_item: int = 1,
    per_annotator: int | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Pairs (item, annotator) whose labels have the most expected information; see `annotmix.suggest`.

    Parameters
    ----------
    run : Path
    budget : float
        Number of labels, or an amount of money where `available` has costs.
    available : Path, optional
        Table of available annotators: annotator and, where wanted, cost and load. Annotators that the run
        does not know are newcomers.
    annotators : list of str, optional
        Available annotators, without a table.
    per_item, per_annotator : int, optional
        Limits; a load in the table takes precedence.

    Returns
    -------
    DataFrame
    list of str
        Notes about labels that were left out, the table and the cost.
    """
    if available is not None and annotators is not None:
        raise ValueError("Name the available annotators one by one or in a table, not both.")
    posterior = run_posterior(run)
    if not isinstance(posterior, Posterior):
        raise ValueError(
            "annotmix suggest is for one class per item, and this run has several. The items that are least "
            "sure have the smallest probability in items.csv."
        )
    unmatched = RunFolder(run).findings().unmatched
    limits: dict[str, Any] = {
        "annotators": annotators,
        "per_item": per_item,
        "per_annotator": per_annotator,
        "exclude": unmatched.items,
    }
    notes = [unmatched.note] if unmatched.note else []
    if available is not None:
        availability = read_availability(available)
        known = set(posterior.annotations.annotators)
        new = [name for name in availability.names if name not in known]
        load = (
            availability.load
            if per_annotator is None
            else dict.fromkeys(availability.names, per_annotator) | availability.load
        )
        limits |= {"per_annotator": load, "cost": availability.cost, "newcomers": new}
        limits["annotators"] = [name for name in availability.names if name in known]
        notes += availability.notes
        if new:
            notes.append(
                f"{len(new)} of {len(availability.names)} annotators are new to the run: {some(new)}."
            )
    table = suggest_from(posterior, budget, **limits)
    if "cost" in table:
        notes.append(f"{len(table)} labels for {table['cost'].sum():g} of {budget:g}.")
    elif len(table) < int(budget):
        notes.append(f"Only {len(table)} pairs of item and annotator are left within the limits.")
    return table, notes


def run_posterior(run: Path) -> Posterior:
    """The posterior of a run's items, given their labels."""
    posterior: Posterior = RunFolder(run).model().posterior_
    return posterior
