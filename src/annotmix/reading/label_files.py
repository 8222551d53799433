"""Labels from files of any format as `Annotations`, with notes about how they were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from annotmix._common.words import did_you_mean, some
from annotmix.labels.annotations import Annotations
from annotmix.labels.columns import find_column
from annotmix.reading.formats import FORMATS, Columns, Format, LabelRows
from annotmix.reading.input_files import InputFile, Source
from annotmix.reading.values import as_ids, as_texts, in_order

_ENDINGS = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, eq=False)
class LabelData:
    """The labels in files, and notes about them.

    Parameters
    ----------
    annotations : Annotations
        Items, annotators and classes are text; items and annotators in the order of the file.
    format : str
        The name of the files' format.
    notes : list of str
        Notes about what was read, changed and left out.
    texts : mapping of item to text
        Where the files carry them.
    sources : list of Source
    """

    annotations: Annotations
    format: str
    notes: list[str]
    texts: Mapping[str, str]
    sources: list[Source]


def read_labels(
    paths: Sequence[str | Path], format: str | None = None, columns: Columns | None = None
) -> LabelData:
    """Read labels from one file, several files of one format, or a folder with one file per annotator.

    Parameters
    ----------
    paths : sequence of path
    format : str, optional
        A name in `annotmix.reading.formats.FORMATS`; by default the content decides.
    columns : Columns, optional
        Names of columns that cannot be guessed.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(
            f"Unknown format {format!r}.{did_you_mean(format, FORMATS)} Known: {', '.join(FORMATS)}."
        )
    columns = columns or Columns()
    files = [InputFile(path) for path in _files(paths)]
    chosen = _recognised(files[0], columns) if format is None else FORMATS[format]
    parts = chosen.read(files, columns)
    if columns.weight is not None and any(part.weight is None for part in parts):
        raise ValueError(
            f"--weight {columns.weight}: {files[0].name!r} is {chosen.title}; weights are read from "
            f"{FORMATS['long'].title}."
        )
    annotations, changed = _annotations(parts)
    notes = [note for file in files for note in file.notes] + [note for part in parts for note in part.notes]
    known = set(annotations.items)
    return LabelData(
        annotations=annotations,
        format=chosen.name,
        notes=notes + changed,
        texts={item: text for part in reversed(parts) for item, text in part.texts.items() if item in known},
        sources=[file.source("labels") for file in files],
    )


def read_truth(path: Path, columns: Columns, role: str = "truth") -> tuple[dict[str, str], list[str], Source]:
    """True labels by item: a table with one row per item.

    `role` is "truth", or "valid" and "gold" for these options of `annotmix fit`.
    """
    file = InputFile(path)
    item = find_column(file.table.columns, "item" if role == "truth" else "id", columns.item, path.name)
    label = find_column(file.table.columns, role, columns.label, path.name)
    if item == label:
        raise ValueError(f"{path.name!r}: item and true label must be two columns, found only {item!r}.")
    items, changed = as_ids(file.table[item])
    labels, more = as_texts(file.table[label], "true label")
    truth: dict[str, str] = {}
    for n, (name, known) in enumerate(zip(items, labels, strict=True)):
        if name is not None and known is not None and truth.setdefault(name, known) != known:
            raise ValueError(
                f"{path.name!r}, row {n}: item {name!r} has two true labels, {truth[name]!r} and {known!r}."
            )
    if not truth:
        raise ValueError(f"{path.name!r} holds no true labels in the columns {item!r} and {label!r}.")
    note = f"{path.name}: true labels in the column {label!r}, items in {item!r}."
    return truth, [*file.notes, note, *changed, *more], file.source(role)


def _files(paths: Sequence[str | Path]) -> list[Path]:
    """The files themselves; a folder stands for its JSON files."""
    listed: list[Path] = []
    for path in map(Path, paths):
        if not path.is_dir():
            listed.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if file.suffix.lower() in _ENDINGS and file.is_file())
        if not inside:
            raise ValueError(f"The folder {str(path)!r} holds no {' or '.join(_ENDINGS)} file.")
        listed += inside
    if not listed:
        raise ValueError("There is no file with labels.")
    return listed


def _recognised(file: InputFile, columns: Columns) -> Format:
    return next(entry for entry in reversed(FORMATS.values()) if entry.recognises(file, columns))


def _annotations(parts: Sequence[LabelRows]) -> tuple[Annotations, list[str]]:
    """Labels as `Annotations`; incomplete and repeated ones are left out, and counted.

    With weights, labels of different classes by one annotator for one item are no repeats but a distribution.
    """
    weighted = [part.weight is not None for part in parts]
    if any(weighted) and not all(weighted):
        raise ValueError(
            "Some of the files have a column of weights and some have none; expected all or none."
        )
    roles = ["item", "annotator", "label", *(["weight"] if all(weighted) else [])]
    values = {role: np.concatenate([getattr(part, role) for part in parts]) for role in roles}
    table = pd.DataFrame(values, dtype=object)
    missing = table[roles[:3]].isna()
    notes = []
    for role, what in (("item", "id of an item"), ("annotator", "annotator")):
        lost = np.flatnonzero(missing[role] & ~missing["label"])
        if len(lost):
            notes.append(f"{len(lost)} labels without an {what} were left out, the first in row {lost[0]}.")
    table = table[~missing.any(axis=1)]
    if table.empty:
        raise ValueError("There are no labels: no row has an item, an annotator and a label.")
    if all(weighted) and (empty := table["weight"].isna()).any():
        raise ValueError(
            f"{empty.sum()} labels have no weight, the first in row {empty.idxmax()}. Give 1 to labels that "
            "count in full."
        )
    repeated = table[table.duplicated(roles[:3] if all(weighted) else roles[:2])]
    if len(repeated):
        item, annotator = repeated.iloc[0][["item", "annotator"]]
        notes.append(
            f"{len(repeated)} labels repeat an earlier one of the same annotator for the same item; the last "
            f"counts (the first: {annotator!r:.60} on {item!r:.60})."
        )
    annotations = Annotations.from_long(
        table,
        duplicates="last",
        classes=in_order(table["label"]),
        items=list(dict.fromkeys(table["item"])),
        annotators=list(dict.fromkeys(table["annotator"])),
    )
    if annotations.n_classes > max(50, len(annotations) // 2):
        raise ValueError(
            f"There are {annotations.n_classes} different labels among {len(annotations)}: "
            f"{some(annotations.classes)}. Is this the column of the labels? Name it with --label NAME."
        )
    return annotations, notes
