"""Cells that hold sets of classes, as tuples of text, and answers of several files as `LabelSets`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import some
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.set_texts import find_delimiter, read_set
from annotmix.reading.class_names import offers, with_names
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.values import Texts, as_labels, in_order


def as_sets(cells: Iterable[Any], columns: Columns, split: bool = True) -> tuple[Texts, list[str]]:
    """Cells as tuples of classes, None where there is no answer; and notes.

    Parameters
    ----------
    cells : iterable
        Anything that `annotmix.labels.set_texts.read_set` reads.
    columns : Columns
        Its `no_class` are words for the empty set, `missing` words for no answer.
    split : bool, default=True
        Split texts at `columns.delimiter`, or at the delimiter that they seem to have.
    """
    listed, notes = list(cells), []
    delimiter = columns.delimiter or find_delimiter(listed) if split else None
    if delimiter is not None:
        notes.append(
            f"Classes in a cell are separated by {delimiter!r}; --delimiter names another character."
        )
    words = {word.strip() for word in columns.no_class}
    sets: list[list[Any] | None] = []
    for row, cell in enumerate(listed):
        if ("" if cell is None else cell.strip() if isinstance(cell, str) else None) in words:
            sets.append([])
            continue
        try:
            sets.append(read_set(cell, delimiter))
        except ValueError as error:
            raise ValueError(f"The label in row {row}: {error}") from None
    texts, changed = as_labels([name for own in sets if own for name in own], columns.missing)
    result, at = np.empty(len(sets), dtype=object), 0
    for row, own in enumerate(sets):
        if own is None:
            continue
        known = tuple(dict.fromkeys(text for text in texts[at : at + len(own)] if text is not None))
        at += len(own)
        result[row] = known if known or not own else None
    blank = sum(isinstance(cell, str) and not cell.strip() for cell in listed)
    if split and blank and "" not in words:
        notes.append(
            f'{blank} cells are empty: no answer. With --no-class "" they are answers without a class.'
        )
    return result, [*notes, *changed]


def join_answers(
    parts: Sequence[LabelRows], columns: Columns, row_per_class: Sequence[LabelRows] = ()
) -> tuple[LabelSets, NDArray[np.float64] | None, list[str]]:
    """Answers as `LabelSets`, their times, and notes; incomplete and repeated answers are left out.

    In `row_per_class`, parts that may have one row per class, the rows of an annotator for an item are united
    where annotators occur more than once for an item, always with one class.
    """
    table = pd.DataFrame(
        {
            role: np.concatenate([getattr(part, role) for part in parts])
            for role in ("item", "annotator", "label")
        },
        dtype=object,
    )
    single = [any(part is own for own in row_per_class) for part in parts]
    table["single"] = np.repeat(single, [len(part.item) for part in parts])
    timed = any(part.time is not None for part in parts)
    table["time"] = np.concatenate(
        [np.full(len(part.item), np.nan) if part.time is None else part.time for part in parts]
    )
    table["label"], notes = _renamed(table["label"].tolist(), columns)
    answered = table["label"].notna()
    for role, what in (("item", "id of an item"), ("annotator", "annotator")):
        lost = np.flatnonzero(table[role].isna() & answered)
        if len(lost):
            notes.append(f"{len(lost)} answers without an {what} were left out, the first in row {lost[0]}.")
    table = table[answered & table["item"].notna() & table["annotator"].notna()]
    if table.empty:
        raise ValueError("There are no labels: no row has an item, an annotator and a set of classes.")
    pair = ["item", "annotator"]
    items, annotators = (list(dict.fromkeys(table[role])) for role in pair)
    rows = table[table["single"]]
    if rows.duplicated(pair).any() and rows["label"].map(len).max() <= 1:
        notes.append(
            "The table has one row per chosen class: rows of one annotator for one item are one answer."
        )
        time = rows.groupby(pair, sort=False)["time"].max()
        rows = rows.groupby(pair, sort=False)["label"].agg(lambda own: tuple(n for one in own for n in one))
        rows = rows.reset_index().assign(time=time.to_numpy())
        table = pd.concat([rows, others]) if len(others := table[~table["single"]]) else rows
    if len(repeated := table[table.duplicated(pair)]):
        item, annotator = repeated.iloc[0][pair]
        notes.append(
            f"{len(repeated)} answers repeat another one of the same annotator for the same item; the "
            f"{'newest' if timed else 'last'} counts (the first: {annotator!r:.60} on {item!r:.60})."
        )
        table = table.sort_values("time", kind="stable", na_position="first")
        table = table.drop_duplicates(pair, keep="last")
    names = [name for own in table["label"] for name in own]
    sets = LabelSets.from_sets(
        table["item"].to_numpy(),
        table["annotator"].to_numpy(),
        table["label"].tolist(),
        classes=in_order(names),
        items=items,
        annotators=annotators,
    )
    if sets.n_empty:
        notes.append(f"{sets.n_empty} answers are the empty set: none of the classes.")
    notes += offers(np.array([*names, None], dtype=object)[:-1], columns.fold_case)
    if sets.n_classes > max(50, len(sets) // 2):
        raise ValueError(
            f"There are {sets.n_classes} different classes in {len(sets)} answers: {some(sets.classes)}. Is "
            "this the column of the labels? Name it with --label NAME."
        )
    if not timed:
        return sets, None, notes
    known = sets.to_long()[pair].merge(table[[*pair, "time"]], how="left", on=pair)
    return sets, np.asarray(known["time"], dtype=np.float64), notes


def several_hint(labels: Texts, notes: Sequence[str]) -> list[str]:
    """A note where labels that are read as single classes look like several."""
    if any("--multi-label" in note for note in notes):
        return []
    distinct = {label for label in labels if label is not None}
    delimiter = find_delimiter(distinct)
    if delimiter is None:
        return []
    parts = {part.strip() for label in distinct for part in label.split(delimiter)}
    if len(parts) >= len(distinct):
        return []
    example = next(label for label in sorted(distinct) if delimiter in label)
    return [f"Labels such as {example!r:.60} may be several classes: --multi-label reads them as such."]


def _renamed(sets: list[tuple[str, ...] | None], columns: Columns) -> tuple[Texts, list[str]]:
    """Sets under the names that the user wants, and notes."""
    size = [0 if own is None else len(own) for own in sets]
    flat = np.empty(sum(size), dtype=object)
    flat[:] = [name for own in sets if own is not None for name in own]
    flat, notes = with_names(flat, columns)
    result, at = np.empty(len(sets), dtype=object), 0
    for row, own in enumerate(sets):
        if own is not None:
            known = tuple(dict.fromkeys(name for name in flat[at : at + size[row]] if name is not None))
            result[row] = known if known or not own else None
        at += size[row]
    return result, notes
