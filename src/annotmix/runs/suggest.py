"""The items to label next, and the annotators to label them, by the model of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from annotmix._common.words import count, some
from annotmix.estimators.suggestion import suggest_from
from annotmix.labels.kinds import UNKNOWN
from annotmix.labels.posterior import Posterior
from annotmix.reading import read_annotators
from annotmix.runs.findings import Findings
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
        Number of labels, or an amount of money where the costs of labels are known.
    available : Path, optional
        Table of available annotators: annotator and, where wanted, cost and load. Annotators that the run
        does not know are newcomers. By default the table that the run was made with, if any.
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
    findings = RunFolder(run).findings()
    if findings.several is not None:
        raise ValueError(
            "annotmix suggest is for one class per item, and this run has several. The items that are least "
            "sure have the smallest probability in items.csv."
        )
    posterior, findings = RunFolder(run).read("posterior", "findings")
    unmatched = findings.unmatched
    kinds = _kinds(findings.kinds.get("crowd"))
    limits: dict[str, Any] = {"per_item": per_item, "exclude": unmatched.items, "kinds": kinds}
    notes = [unmatched.note] if unmatched.note else []
    if available is not None:
        who = read_annotators(available)
        table, said = who.table, who.notes
        kinds.update(_kinds(table.reset_index()))
    else:
        table, said = _kept(findings, annotators)
    notes += said
    if table is None:
        limits |= {"annotators": annotators, "per_annotator": per_annotator}
    else:
        chosen, more = _limits(posterior, table, per_annotator)
        limits |= chosen
        notes += more
    suggested = suggest_from(posterior, budget, **limits)
    if "cost" in suggested:
        notes.append(f"{count(len(suggested), 'label')} for {suggested['cost'].sum():g} of {budget:g}.")
    elif len(suggested) < int(budget):
        notes.append(f"Only {count(len(suggested), 'pair')} of item and annotator fit within the limits.")
    return suggested, notes


def suggest_for(posterior: Posterior, crowd: pd.DataFrame | None, n: int, exclude: list[str]) -> pd.DataFrame:
    """The best n suggestions of a run; `crowd` as in `Findings.kinds`, None without a table of annotators."""
    if crowd is None:
        return suggest_from(posterior, n, exclude=exclude)
    table, _ = _priced(_askable(crowd))
    if table.empty:
        return suggest_from(posterior, n, exclude=exclude)
    limits, _ = _limits(posterior, table, None)
    dearest = max(limits["cost"].values()) if limits["cost"] else 1.0
    return suggest_from(posterior, n * dearest, exclude=exclude, kinds=_kinds(crowd), **limits).head(n)


def _kinds(crowd: pd.DataFrame | None) -> dict[Any, str]:
    """Annotator → kind, where it is known."""
    if crowd is None:
        return {}
    known = crowd[crowd["kind"] != UNKNOWN]
    return dict(zip(known["annotator"], known["kind"], strict=True))


def _kept(findings: Findings, annotators: Sequence[str] | None) -> tuple[pd.DataFrame | None, list[str]]:
    """The rows of the table that the run was made with, of the annotators named or of all, and notes."""
    if "crowd" not in findings.kinds:
        return None, []
    crowd = findings.kinds["crowd"]
    table = _askable(crowd) if annotators is None else crowd.set_index("annotator")
    if annotators is not None:
        if not set(annotators) <= set(table.index):
            return None, []  # the error about unknown annotators comes later
        table = table.loc[list(dict.fromkeys(annotators))]
    return _priced(table) if len(table) else (None, [])


def _askable(crowd: pd.DataFrame) -> pd.DataFrame:
    """The annotators who can be asked: a rule has said all that it can."""
    return crowd[crowd["kind"] != "rules"].set_index("annotator")


def _priced(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The table, without costs where some are unknown or nothing, and a note."""
    known = table["cost"] > 0
    if known.all():
        return table, ["Costs come from the run's table of annotators; the budget is an amount of money."]
    if not known.any():
        return table.assign(cost=float("nan")), []
    free = list(table.index[~known])
    note = (
        f"The budget is a number of labels, as labels of {len(free)} annotators have no cost in the run's "
        f"table of annotators: {some(free)}. --annotators FILE gives others."
    )
    return table.assign(cost=float("nan")), [note]


def _limits(
    posterior: Posterior, table: pd.DataFrame, per_annotator: int | None
) -> tuple[dict[str, Any], list[str]]:
    """Parameters of `annotmix.suggest` for the annotators of a table with `cost` and `load`, and a note."""
    known, names = set(posterior.annotations.annotators), list(table.index)
    new = [name for name in names if name not in known]
    load = table["load"].dropna().astype(int).to_dict()
    limits = {
        "annotators": [name for name in names if name in known],
        "newcomers": new,
        "per_annotator": load if per_annotator is None else dict.fromkeys(names, per_annotator) | load,
        "cost": table["cost"].dropna().to_dict() or None,
    }
    if not new:
        return limits, []
    return limits, [f"The run does not know {len(new)} of {count(len(names), 'annotator')}: {some(new)}."]
