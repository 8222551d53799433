"""Labels in any form that people have; the form is found from the content, or given."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from annotmix._common.words import some
from annotmix.labels.columns import find_column
from annotmix.reading import files
from annotmix.reading.doccano import is_doccano, read_doccano
from annotmix.reading.files import Source
from annotmix.reading.forms import Columns, Labelled, Rows
from annotmix.reading.label_studio import is_label_studio, read_label_studio
from annotmix.reading.prodigy import is_prodigy, read_prodigy
from annotmix.reading.tables import looks_wide, read_long, read_wide, refuse_weights
from annotmix.reading.values import as_texts, make_annotations

#: The forms by the name that --format takes.
FORMS = ("long", "wide", "label-studio", "doccano", "prodigy")
_ENDINGS = (".jsonl", ".ndjson", ".json")


def read_labels(
    paths: Sequence[str | Path], form: str | None = None, columns: Columns | None = None
) -> Labelled:
    """Read labels from one file, several files of one form, or a folder with a file an annotator.

    Parameters
    ----------
    paths : sequence of path
    form : {"long", "wide", "label-studio", "doccano", "prodigy"}, optional
        Found from the content where it is not given.
    columns : Columns, optional
        What the user said about columns.
    """
    if form is not None and form not in FORMS:
        near = difflib.get_close_matches(form, FORMS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"Unknown format {form!r}.{hint} Known: {', '.join(FORMS)}.")
    listed = _files([Path(path) for path in paths])
    opened = [_Opened(path) for path in listed]
    rows = _read(opened, form or _detect(opened[0], columns or Columns()), columns or Columns())
    notes = [note for file in opened for note in file.notes] + rows.notes
    annotations, changed = make_annotations(rows.task, rows.worker, rows.label, rows.weight)
    known = set(annotations.items)
    return Labelled(
        annotations=annotations,
        form=rows.form,
        notes=notes + changed,
        texts={item: text for item, text in rows.texts.items() if item in known},
        sources=[
            Source("labels", file.path.name, files.fingerprint(file.path), file.rows) for file in opened
        ],
    )


def read_truth(path: Path, columns: Columns, role: str = "truth") -> tuple[dict[str, str], list[str], Source]:
    """True labels by item: a table with the columns of the item and of its label.

    `role` is "truth", or "valid" where they are given to `annotmix fit`.
    """
    table, notes = files.read_table(path)
    key = "item" if role == "valid" else "task"
    task = find_column(table.columns, key, columns.task, path.name)
    label = find_column(table.columns, role, columns.label, path.name)
    if task == label:
        raise ValueError(f"{path.name!r}: item and true label must be two columns, found only {task!r}.")
    tasks, changed = as_texts(table[task], "item's id", ("nan",))
    labels, more = as_texts(table[label], "true label")
    whole = [n for n in range(len(table)) if tasks[n] is not None and labels[n] is not None]
    if not whole:
        raise ValueError(f"{path.name!r} holds no true labels in the columns {task!r} and {label!r}.")
    truth: dict[str, str] = {}
    for n in whole:
        if truth.setdefault(tasks[n], labels[n]) != labels[n]:
            raise ValueError(
                f"{path.name!r}, row {n}: item {tasks[n]!r} has two true labels, "
                f"{truth[tasks[n]]!r} and {labels[n]!r}."
            )
    notes = [*notes, f"{path.name}: true labels in the column {label!r}, items in {task!r}.", *changed, *more]
    return truth, notes, Source(role, path.name, files.fingerprint(path), len(table))


class _Opened:
    """A file, parsed as far as it can be without knowing its form."""

    def __init__(self, path: Path):
        self.path, self.notes = path, list[str]()
        self.table: Any = None
        self.records: list[dict[str, Any]] | None = None
        data = files.read_bytes(path)
        if files.is_parquet(data):
            self.table = files.read_parquet(data, path.name)
            return
        text, self.notes = files.decode(data, path.name)
        if files.is_json(text):
            self.records = files.parse_records(text, path.name)
        else:
            self.table = files.parse_delimited(text, path.name)

    @property
    def rows(self) -> int:
        return len(self.table) if self.records is None else len(self.records)

    def as_table(self) -> Any:
        return self.table if self.records is None else files.records_table(self.records, self.path.name)

    def as_records(self, form: str) -> list[dict[str, Any]]:
        if self.records is None:
            raise ValueError(f"{self.path.name!r} is a table, but {form} exports JSON.")
        return self.records


def _files(paths: list[Path]) -> list[Path]:
    """The files themselves; a folder stands for its JSON files."""
    listed: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(
                file for file in path.iterdir() if file.suffix.lower() in _ENDINGS and file.is_file()
            )
            if not inside:
                raise ValueError(f"The folder {str(path)!r} holds no {' or '.join(_ENDINGS)} file.")
            listed += inside
        else:
            listed.append(path)
    if not listed:
        raise ValueError("No file with labels was given.")
    return listed


def _detect(file: _Opened, columns: Columns) -> str:
    if file.records is not None:
        # the first few, as a single odd record should not decide
        head = file.records[:20]
        for form, looks in (
            ("prodigy", is_prodigy),
            ("label-studio", is_label_studio),
            ("doccano", is_doccano),
        ):
            if sum(map(looks, head)) * 2 > len(head) and not (
                form == "doccano" and columns.worker is not None
            ):
                return form
        return "long"
    return "wide" if looks_wide(file.table, columns, file.path.name) else "long"


def _read(opened: list[_Opened], form: str, columns: Columns) -> Rows:
    if form not in ("long", "wide"):
        refuse_weights(columns, opened[0].path.name, f"an export of {form}")
    if form == "doccano":
        names = [file.path.stem for file in opened]
        if len(set(names)) < len(names):
            raise ValueError(
                f"Two files are called alike, {some(names)}; the annotator is named after the file."
            )
        return read_doccano({file.path.stem: file.as_records(form) for file in opened}, columns)
    parts = []
    for file in opened:
        name = file.path.name
        if form == "label-studio":
            parts.append(read_label_studio(file.as_records(form), columns, name))
        elif form == "prodigy":
            parts.append(read_prodigy(file.as_records(form), columns, name))
        else:
            parts.append((read_long if form == "long" else read_wide)(file.as_table(), columns, name))
    task, worker, label = (
        np.concatenate([getattr(part, role) for part in parts]) for role in ("task", "worker", "label")
    )
    texts = {item: text for part in reversed(parts) for item, text in part.texts.items()}
    notes = [note for part in parts for note in part.notes]
    weights = [part.weight for part in parts if part.weight is not None]
    if len(weights) not in (0, len(parts)):
        raise ValueError(
            "Some of the files have a column of weights and some have none; expected all or none."
        )
    return Rows(task, worker, label, form, notes, texts, np.concatenate(weights) if weights else None)
