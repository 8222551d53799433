"""The content of `findings.json`, and how it fits together with `confusion.npy`.

Reading checks types and lengths; `require_consistent` checks what the tables say about each other, so that a
report or a score is never made of findings that contradict themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import pandas as pd

from annotmix._common.schema import (
    Count,
    Scalar,
    Strict,
    Value,
    decode,
    require_equal_lengths,
    require_unique,
)
from annotmix.runs.findings import Findings
from annotmix.runs.result_columns import CLASS_TABLES, KIND_TABLES, TABLES, Column

FORMAT = 3
#: Types of the cells of a column, by the way in which the report shows it.
_CELLS: dict[str, Any] = {
    **dict.fromkeys(("item", "annotator", "class", "text", "rated", "votes"), str),
    **dict.fromkeys(("number", "share", "interval"), float | None),
    "count": Count,
    "flag": bool,
}
#: A share; a mean may lie above 1 by rounding.
Share = Annotated[float, msgspec.Meta(ge=0, le=1 + 1e-6)]
_INDEX = {
    "items": "item",
    "annotators": "annotator",
    "history": "epoch",
    "classes": "class",
    "agreement": "class",
}


class SavedTable(Strict):
    """A table as lists by column, and the name of the column that is its index."""

    index: str | None
    columns: dict[str, list[Scalar]]

    def __post_init__(self) -> None:
        require_equal_lengths(**self.columns)
        if self.index is not None and self.index not in self.columns:
            raise ValueError(f"there is no column {self.index!r:.60} for the index")


class SavedTables(Strict):
    """The tables of a run."""

    items: SavedTable
    annotators: SavedTable
    labels: SavedTable
    history: SavedTable
    suggestions: SavedTable


class SavedSeveral(Strict):
    """Tables about single classes, where items have several."""

    classes: SavedTable
    annotators: SavedTable


class SavedPreview(Strict):
    """A part of an item; the image is a JPEG file in base64."""

    text: str
    image: str | None


class SavedAgreement(Strict):
    """How far the annotators agree."""

    n_items: Count
    alpha: float | None
    low: float | None
    high: float | None
    fleiss_kappa: float | None
    percent: Share | None
    classes: SavedTable


class SavedInput(Strict):
    """A file that was read."""

    role: str
    name: str
    sha256: str
    rows: Count


class SavedUnmatched(Strict):
    """Labels that were left out because their items were not found."""

    note: str
    items: list[str]


class SavedWeights(Strict, rename=lambda name: name.replace("_", " ")):
    """How much classifier and labels count, among the settings."""

    classifier: float
    correlation: float | None = None
    shares: Any = None
    likelihood_without: float | None = None
    likelihood_with: float | None = None
    helps: bool = False
    out_of_fold: bool = False
    rise_by_votes: float = 0.0
    pairs_judged: Count = 0
    votes: float | None = None

    def __post_init__(self) -> None:
        if self.correlation is not None and not 0 <= self.correlation <= 1:
            raise ValueError("correlation must lie from 0 to 1")


def _implied(score: str) -> set[str]:
    """The scores without which a score cannot be told."""
    if score.endswith("-gap"):
        return {score.replace("-gap", "-acc"), f"{score}-se", "learnt"}
    return {"new"} if score == "clf-acc" else set()


class FindingsFile(Strict):
    """The content of `findings.json`."""

    format: Literal[3]
    title: str
    classes: list[str]
    tables: SavedTables
    calibration: SavedTable | None
    previews: dict[str, SavedPreview]
    scores: dict[str, float | None]
    settings: dict[str, Value]
    inputs: list[SavedInput]
    notes: list[str]
    unmatched: SavedUnmatched
    several: SavedSeveral | None = None
    kinds: dict[str, SavedTable] = msgspec.field(default_factory=dict)
    agreement: SavedAgreement | None = None
    groups: SavedTable | None = None

    def __post_init__(self) -> None:
        require_unique("classes", self.classes)
        if unknown := self.kinds.keys() - KIND_TABLES.keys():
            raise ValueError(f"there is no table {min(unknown)!r:.60} about kinds of annotators")
        for name in self.scores:
            if lost := _implied(name) - self.scores.keys():
                raise ValueError(f"scores have {name!r:.60}, but not {min(lost)!r:.60}")
        if "posterior" in self.settings:
            decode(self.settings["posterior"], SavedWeights)


def to_frame(name: str, saved: SavedTable) -> pd.DataFrame:
    """A saved table as a DataFrame whose columns are the declared ones."""
    if saved.index != _INDEX.get(name):
        raise ValueError(f"the table {name} has the index {saved.index!r:.60}, expected {_INDEX.get(name)!r}")
    declared = TABLES | KIND_TABLES | CLASS_TABLES
    if name in declared:
        kinds = {column.name: _CELLS[column.kind] for column in declared[name] if column.kind != "matrix"}
        needed = {column.name for column in declared[name] if column.needed}
    elif name == "history":
        kinds = dict.fromkeys(saved.columns, float | None) | {"epoch": Count}
        needed = {"epoch", "loss"}
    elif name == "agreement":
        shares = dict.fromkeys(("share", "agreement"), Share | None)
        kinds = {"class": str, **shares, **dict.fromkeys(("alpha", "low", "high"), float | None)}
        needed = set(kinds)
    else:
        kinds = {"confidence": Share, "accuracy": Share, "count": Count}
        needed = set(kinds)
    if wrong := (needed - saved.columns.keys()) | (saved.columns.keys() - kinds.keys()):
        raise ValueError(f"the table {name} lacks the column, or has an unknown one: {min(wrong)!r:.60}")
    columns = {
        column: _cells(name, column, values, kinds[column]) for column, values in saved.columns.items()
    }
    table = pd.DataFrame(columns)
    if saved.index is not None:
        require_unique(f"{saved.index} in the table {name}", saved.columns[saved.index])
        table = table.set_index(saved.index)
    return table


def _cells(table: str, column: str, values: list[Scalar], kind: Any) -> Any:
    """A column whose cells all have the declared type; a missing number is nan."""
    try:
        checked = decode(values, list[kind])
    except ValueError as error:
        raise ValueError(f"the column {column!r:.60} of {table}: {error}") from None
    if kind is str:
        cells = np.empty(len(checked), dtype=object)
        cells[:] = checked
        return cells
    return np.array(checked, dtype={bool: bool, Count: np.int64}.get(kind, np.float64))


def require_consistent(findings: Findings) -> None:
    """Refuse tables that name unknown items, annotators or classes, and shares that are none."""
    if len(findings.confusion.diagonal) != len(findings.annotators):
        raise ValueError(
            f"confusion.npy is about {len(findings.confusion.diagonal)} annotators, expected "
            f"{len(findings.annotators)}"
        )
    if findings.agreement is not None and set(findings.agreement.classes.index) != set(findings.classes):
        raise ValueError("the agreement is about other classes than the run")
    known = {"item": set(findings.items.index), "annotator": set(findings.annotators.index)}
    if "crowd" in findings.kinds:  # annotators without labels may be suggested
        known["annotator"] |= set(findings.kinds["crowd"]["annotator"])
    known["class"] = {*findings.classes, ""}  # "" where there is no label or no true class
    if findings.several is not None:
        _require_sets(findings)
    for name, columns in (TABLES | KIND_TABLES).items():
        table = getattr(findings, name) if name in TABLES else findings.kinds.get(name, pd.DataFrame())
        for column in columns:
            if table is not None and column.name in table:
                _require_cells(name, column, table[column.name], known.get(column.kind))


def _require_sets(findings: Findings) -> None:
    """Refuse sets of unknown classes, and tables of classes that are about others."""
    several = findings.several
    assert several is not None
    try:
        several.members(findings.classes)
    except KeyError as error:
        raise ValueError(f"a set names the unknown class {error!s:.60}") from None
    known = {"class": set(several.names), "annotator": set(findings.annotators.index)}
    for column, names in known.items():
        if wrong := set(several.annotators[column]) - names:
            raise ValueError(f"the table annotator_classes names the unknown {column} {min(wrong)!r:.60}")
    for name, table in (("classes", several.classes), ("annotator_classes", several.annotators)):
        for own in CLASS_TABLES[name]:
            if own.name in table:
                _require_cells(name, own, table[own.name], None)


def _require_cells(table: str, column: Column, cells: pd.Series, known: Iterable[str] | None) -> None:
    if known is not None and not cells.isin(known).all():
        wrong = cells[~cells.isin(known)].iloc[0]
        raise ValueError(
            f"the column {column.name!r} of {table} names {wrong!r:.60}, an unknown {column.kind}"
        )
    # probabilities may lie above 1 by rounding
    if column.kind in ("share", "interval") and ((cells < -1e-6) | (cells > 1 + 1e-6)).any():
        raise ValueError(f"the column {column.name!r} of {table} has values outside 0 to 1")
