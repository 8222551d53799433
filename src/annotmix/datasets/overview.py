"""Table 1 of the paper beside the figures of the files that are here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from annotmix._common.progress import Progress
from annotmix.datasets.crowds import Crowd
from annotmix.datasets.fetch import data_folders, find, matches
from annotmix.datasets.loading import build, get_spec, list_datasets, read_parts
from annotmix.datasets.rows import Codes, DatasetFileError, Raw
from annotmix.datasets.spec import Figures, File, Spec
from annotmix.labels.annotations import Annotations

#: Figure → its title and how it is written.
COLUMNS = {
    "train": ("train", ",d"),
    "valid": ("valid", ",d"),
    "test": ("test", ",d"),
    "classes": ("classes", ",d"),
    "annotators": ("annotators", ",d"),
    "labels_per_item": ("labels/item", ".1f"),
    "labels_per_annotator": ("labels/annotator", ",.0f"),
    "percent_false": ("% false", ".1f"),
}
Folder = str | os.PathLike[str] | None


def count(name: str, data_dir: Folder = None, published: bool = False) -> tuple[Figures, str]:
    """The figures of the available files, and a note about missing ones.

    Labels of human annotators are counted from the files with the labels alone. Annotators of tables are
    simulated, which takes a while the first time; annotators of texts and photos are not.
    """
    spec, folders = get_spec(name), data_folders(data_dir)
    if absent := _absent(spec.files.values(), folders):
        return Figures(), f"missing: {', '.join(absent)}"
    paths, note = _found(spec.files, folders), ""
    if absent := _absent(spec.item_files.values(), folders):
        note = f"missing: {', '.join(absent)}"
    else:
        paths |= _found(spec.item_files, folders)
    raw = read_parts(spec, paths)
    labels, y = raw.labels, raw.parts["train"].y
    if spec.simulation is not None and not spec.needs_encoder:
        labels = build(spec, raw, Crowd(published=published)).labels
        if spec.simulation.max_epochs and not published:
            note = "simulated as designed; --published: as in the published experiments"
    elif spec.simulation is not None:
        note = "annotators are simulated from features: load_dataset(…, encoder=…)"
    return _figures(raw, labels, y), note


def table(names: Iterable[str] | None = None, data_dir: Folder = None, published: bool = False) -> str:
    """The figures of the files and of the paper, two rows per dataset, as a Markdown table.

    Without `names`: all datasets; one with a damaged file gets a note in place of figures.
    """
    lines = [["dataset", "", *(title for title, _ in COLUMNS.values())]]
    notes, wanted = [], list_datasets() if names is None else list(names)
    with Progress("counting labels", len(wanted), show=len(wanted) > 1) as progress:
        for name in wanted:
            try:
                figures, note = count(name, data_dir, published)
            except DatasetFileError as error:
                if names is not None:
                    raise
                figures, note = Figures(), str(error)
            lines.append([name, "files", *_cells(figures)])
            if (paper := get_spec(name).paper) is not None:
                lines.append(["", "paper", *_cells(paper)])
            if note:
                notes.append(f"{name}: {note}")
            progress.advance(name)
    return "\n".join([_markdown(lines), "", *notes]).rstrip()


def listing(data_dir: Folder = None) -> str:
    """All datasets, and which of their files are here, and where."""
    folders = data_folders(data_dir)
    lines = [["dataset", "kind", "at hand", "where", "about"]]
    for name in list_datasets():
        spec = get_spec(name)
        lines.append([name, spec.kind, *presence(spec, folders), spec.description])
    looked = "Looked for in " + ", ".join(str(folder) for folder in folders)
    return f"{_markdown(lines)}\n\n{looked}"


def presence(spec: Spec, folders: list[Path]) -> tuple[str, str]:
    """How much of a dataset is available, in a word or two, and in which folders."""
    if not spec.files:
        return "built in", "–"
    files = [*spec.files.values(), *spec.item_files.values()]
    where = [folder for folder in folders if len(_absent(files, [folder])) < len(files)]
    absent = _absent(files, folders)
    share = "no" if not where else "in part" if absent else "yes"
    if absent and not _absent(spec.files.values(), folders):
        share = "labels only"
    return share, ", ".join(str(folder) for folder in where) or "–"


def describe(name: str, data_dir: Folder = None, published: bool = False) -> str:
    """One dataset: its description, its files, and its figures beside the paper's."""
    spec, folders = get_spec(name), data_folders(data_dir)
    lines = [f"{name}: {spec.description}", f"Citation: {spec.citation}", f"Licence: {spec.licence}"]
    lines += [_about(file, folders) for file in (*spec.files.values(), *spec.item_files.values())]
    return "\n".join([*lines, "", table([name], data_dir, published)])


def _about(file: File, folders: Iterable[Path]) -> str:
    path = find(file, folders)
    if path is None:
        return f"- {file.path}: missing; from {file.url or 'nowhere public'}"
    if file.checksum is None or file.inside is not None:
        return f"- {path}"
    return f"- {path}, {'as published' if matches(path, file.checksum) else 'NOT as published (checksum)'}"


def _figures(raw: Raw, labels: Annotations | None, y: Codes) -> Figures:
    sizes = {part: len(raw.parts[part]) if part in raw.parts else None for part in ("train", "valid", "test")}
    if labels is None:
        return Figures(**sizes, classes=len(raw.classes))
    return Figures(
        **sizes,
        classes=len(raw.classes),
        annotators=labels.n_annotators,
        labels_per_item=len(labels) / labels.n_items,
        labels_per_annotator=len(labels) / labels.n_annotators,
        percent_false=100 * float(np.mean(labels.label != y[labels.item])),
    )


def _absent(files: Iterable[File], folders: list[Path]) -> list[str]:
    return [file.path for file in files if find(file, folders) is None]


def _found(files: Mapping[str, File], folders: list[Path]) -> dict[str, Path]:
    return {key: path for key, file in files.items() if (path := find(file, folders)) is not None}


def _cells(figures: Figures) -> list[str]:
    values = asdict(figures)
    return ["–" if values[key] is None else format(values[key], form) for key, (_, form) in COLUMNS.items()]


def _markdown(lines: list[list[str]]) -> str:
    """Rows of cells as a table that reads well as text and as Markdown; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)) + " |" for cells in lines
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([rows[0], rule, *rows[1:]])
