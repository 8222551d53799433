"""Tables with one row per item and one column per annotator: CSV, TSV, Excel, Parquet, JSON or JSON Lines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from annotmix._common.words import count, show, some
from annotmix.labels.columns import find_column, guess_column, near_column
from annotmix.reading.formats import Columns, LabelRows
from annotmix.reading.formats.annotator_columns import Choice, choose_annotators
from annotmix.reading.input_files import InputFile
from annotmix.reading.label_cells import as_sets
from annotmix.reading.texts import item_texts
from annotmix.reading.values import as_ids, as_labels, unparsed_answers


def recognises(file: InputFile, columns: Columns) -> bool:
    """Whether a table is wide; a table that is neither long nor wide is an error that says why.

    A table is long where a column is called like an annotator, or the user names the column of the annotator
    or the label. It is wide where the user names the columns of the annotators, also in a file, or where it
    is not long, items do not repeat, and two columns or more can be annotators and share few values.
    """
    if columns.annotators:
        return True
    if file.records is not None or columns.annotator is not None or columns.label is not None:
        return False
    table, names = file.table, list(file.table.columns)
    if guess_column(names, "annotator") is not None:
        return False
    if set(names) & set(columns.known):
        return True
    key = columns.item or guess_column(names, "item") or names[0]
    near = near_column(names, "annotator")
    if key in names and len(names) > 2 and near is None and not table[key].duplicated().any():
        annotators = choose_annotators(table, key, columns).annotators
        head = table[annotators].head(1000).to_numpy(dtype=object).reshape(-1)
        if columns.several:
            head = np.array([name for own in as_sets(head, columns)[0] if own for name in own], dtype=object)
        distinct = {str(cell).strip() for cell in head if cell is not None} - {"", "nan"}
        if len(annotators) > 1 and len(distinct) <= max(30, len(head) // 20):
            return True
    hint = f" Did you mean {near!r} for the annotator?" if near is not None else ""
    raise ValueError(
        f"{file.name!r} has the columns {some(names, 12)}: no column for the annotator, such as 'annotator', "
        f"and the others do not look like one column per annotator either.{hint} Name the columns with "
        "--item, --annotator and --label, or those of the annotators with --annotators NAMES."
    )


def read(files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
    """The labels; -1 is no label where all others are numbers from 0."""
    return [_read(file.name, file.table, columns) for file in files]


def _read(name: str, table: pd.DataFrame, columns: Columns) -> LabelRows:
    by_name = columns.item or guess_column(table.columns, "item") or str(table.columns[0])
    key = find_column(table.columns, "item", by_name, name)
    if len(set(table.columns)) < len(table.columns):
        raise ValueError(
            f"{name!r} has several columns of one name; every annotator needs a name of its own."
        )
    choice = choose_annotators(table, key, columns)
    annotators = choice.annotators
    if not annotators:
        why = f" ({_reasons(choice)}; --annotators NAMES decides)" if choice.left_out else ""
        raise ValueError(
            f"{name!r} has no column of an annotator beside {key!r}{why}; expected one column per annotator."
        )
    items, changed = as_ids(table[key])
    cells = table[annotators].to_numpy(dtype=object).reshape(-1)
    label, more = as_sets(cells, columns) if columns.several else as_labels(cells, columns.missing)
    unparsed = unparsed_answers(cells, columns.missing)  # an empty cell is no answer
    notes = [
        f"{name}: one row per item and one column per annotator ({some(annotators)}); items are named by the "
        f"column {key!r}.",
        *_notes(name, key, table, choice),
        *changed,
        *more,
    ]
    present = {text for text in label if isinstance(text, str)}
    if "-1" in present and all(text.isdecimal() for text in present - {"-1"}):
        notes.append(f"-1 was read as no label ({count(int((label == '-1').sum()), 'cell')}).")
        label[label == "-1"] = None
    annotator = np.tile(np.array(annotators, dtype=object), len(table))
    texts = item_texts(table.drop(columns=annotators), key, items, columns.text, name, notes)
    excluded = [column for column in columns.exclude if column in choice.left_out]
    used = (*annotators, *choice.gold, *excluded)
    return LabelRows(
        np.repeat(items, len(annotators)), annotator, label, notes, texts, used=used, unparsed=unparsed
    )


def _notes(name: str, key: str, table: pd.DataFrame, choice: Choice) -> list[str]:
    """What is said about columns that are left out or in doubt."""
    notes = []
    if choice.left_out:
        notes.append(
            f"{name}: no annotators, and left out: {_reasons(choice)}. --annotators NAMES or --exclude NAMES "
            "decides otherwise."
        )
    if choice.gold:
        own = "" if guess_column(table.columns, "item") == key else f" --item-column {key}"
        notes.append(
            f"The column {guess_column(choice.gold, 'gold')!r} may hold true labels: annotmix fit learns "
            f"from them with --gold {name}{own}, and is only checked against them with --valid {name}{own}."
        )
    for column, values in list(choice.doubtful.items())[:5]:
        notes.append(
            f"The column {column!r} counts as an annotator, but no other column has its values "
            f"{some(values)}. If it holds no labels: --exclude {column}."
        )
    return notes


def _reasons(choice: Choice) -> str:
    listed = [f"{show(column)} ({reason})" for column, reason in choice.left_out.items()]
    return ", ".join(listed[:12]) + (f", … ({len(listed)} in all)" if len(listed) > 12 else "")
