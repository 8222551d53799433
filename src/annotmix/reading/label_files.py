"""Labels from files of any format as `Annotations`, with notes about how they were read."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import count, did_you_mean, shorten, some
from annotmix.labels.annotations import Annotations
from annotmix.labels.columns import find_column, guess_column
from annotmix.labels.label_sets import LabelSets
from annotmix.reading.annotator_table import UNPARSED, AnnotatorTable, annotators_file, read_annotators
from annotmix.reading.class_names import offers, with_names, with_spelling
from annotmix.reading.containers import is_table_name
from annotmix.reading.decisions import Decisions, is_decisions, true_labels
from annotmix.reading.formats import FORMATS, Columns, Format, LabelRows
from annotmix.reading.formats.long import one_per_annotator
from annotmix.reading.hugging_face import DatasetFiles, is_dataset
from annotmix.reading.input_files import InputFile, Source
from annotmix.reading.label_cells import as_sets, join_answers, several_hint
from annotmix.reading.values import as_ids, as_texts, in_order

_JSON = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, eq=False)
class LabelData:
    """The labels in files, and notes about them.

    Parameters
    ----------
    annotations : Annotations
        Items, annotators and classes are text; items and annotators in the order of the file. Of sets of
        classes their `answers`.
    format : str
        The name of the files' format; several names are joined by " and ".
    notes : list of str
        Notes about what was read, changed and left out.
    texts : mapping of item to text
        Where the files carry them.
    sources : list of Source
    time : array of float, shape (n_labels,), optional
        When each label was given, in seconds since 1970 (UTC), nan where it is unknown.
    used : tuple of str
        Columns of tables that hold annotators, labels, weights and times.
    sets : LabelSets, optional
        Answers that may name several classes, where `columns.several` is true.
    unparsed : mapping of annotator to int
        Answers that could not be read as a label, of annotators that have such.
    annotators : AnnotatorTable, optional
        What the file of `--annotators` says about them.
    """

    annotations: Annotations
    format: str
    notes: list[str]
    texts: Mapping[str, str]
    sources: list[Source]
    time: NDArray[np.float64] | None = None
    used: tuple[str, ...] = ()
    sets: LabelSets | None = None
    annotators: AnnotatorTable | None = None
    unparsed: Mapping[str, int] = field(default_factory=dict)


def read_labels(
    paths: Sequence[str | Path], format: str | None = None, columns: Columns | None = None
) -> LabelData:
    """Read labels from one file, several files, a folder or a ZIP file with several.

    Parameters
    ----------
    paths : sequence of path
    format : str, optional
        A name in `annotmix.reading.formats.FORMATS`, for all files; by default the content of each file
        decides.
    columns : Columns, optional
        Names of columns that cannot be guessed, labels that are missing ones, and other names for labels.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(
            f"Unknown format {format!r}.{did_you_mean(format, FORMATS)} Known: {', '.join(FORMATS)}."
        )
    columns, who = _with_annotators(columns or Columns())
    listed, said = _files(paths)
    files = [
        file
        for path in listed
        for file in ([DatasetFiles(path)] if is_dataset(path) else InputFile.each(path))
    ]
    chosen = _recognised(files, columns) if format is None else {FORMATS[format]: files}
    by_format = _read_each(chosen, columns)
    parts = [part for own in by_format.values() for part in own]
    sets = None
    if columns.several:
        if any(part.weight is not None for part in parts):
            raise ValueError(
                "--multi-label: answers with several classes have no weights, but there is a column of "
                "weights; leave it out."
            )
        sets, time, changed = join_answers(parts, columns, by_format.get(FORMATS["long"], []))
        annotations = sets.answers
    else:
        annotations, time, changed = _annotations(parts, columns)
    notes = (
        said
        + [note for file in files for note in file.notes]
        + [note for part in parts for note in part.notes]
    )
    unparsed, said_of_them = _unparsed(parts, annotations)
    changed += said_of_them
    if who is not None:
        changed += [*who.notes, *who.compared_with(list(annotations.annotators))]
    known = set(annotations.items)
    return LabelData(
        annotations=annotations,
        format=" and ".join(form.name for form in chosen),
        notes=notes + changed,
        texts={item: text for part in reversed(parts) for item, text in part.texts.items() if item in known},
        sources=[*(file.source("labels") for file in files), *([] if who is None else [who.source])],
        time=time,
        used=tuple(dict.fromkeys(column for part in parts for column in part.used)),
        sets=sets,
        annotators=who,
        unparsed=unparsed,
    )


def _unparsed(parts: Sequence[LabelRows], annotations: Annotations) -> tuple[dict[str, int], list[str]]:
    """The number of answers without a label by annotator, and a note about the share of each."""
    counts: Counter[str] = Counter()
    for part in parts:
        rows = pd.isna(part.label) if part.unparsed is None else part.unparsed
        there = rows & ~pd.isna(part.item) & ~pd.isna(part.annotator)
        counts.update(part.annotator[there].tolist())
    if not counts:
        return {}, []
    given = dict(zip(annotations.annotators.tolist(), annotations.labels_per_annotator.tolist(), strict=True))
    listed = [
        f"{shorten(name, 60)!r} {n} ({n / (n + given.get(name, 0)):.1%} of its answers)"
        for name, n in counts.most_common(5)
    ]
    more = f", and {len(counts) - 5} other annotators" if len(counts) > 5 else ""
    return dict(counts), [
        f"Answers that could not be read as a label are missing: {', '.join(listed)}{more}."
    ]


def _with_annotators(columns: Columns) -> tuple[Columns, AnnotatorTable | None]:
    """The columns with the annotators of a file that `--annotators` names, and what the file says."""
    path = annotators_file(columns.annotators)
    if path is None:
        return columns, None
    who = read_annotators(path)
    words = UNPARSED if (who.table["kind"] == "models").any() else ()
    missing = (*columns.missing, *words)
    return replace(columns, annotators=(), known=tuple(who.names), missing=missing), who


def read_truth(
    path: Path, columns: Columns, role: str = "truth", classes: Sequence[str] = ()
) -> tuple[dict[str, str], list[str], Source]:
    """True labels by item: a table with one row per item, or the decisions of a review.

    Parameters
    ----------
    path : Path
    columns : Columns
    role : {"truth", "valid", "gold"}
        The last two for these options of `annotmix fit`.
    classes : sequence of str
        Names of the classes, whose spelling `columns.fold_case` follows.
    """
    if is_decisions(path):
        return _decided(path, role)
    file = InputFile(path)
    item = find_column(file.table.columns, "item" if role == "truth" else "id", columns.item, path.name)
    label = find_column(file.table.columns, role, columns.label, path.name)
    if item == label:
        raise ValueError(f"{path.name!r}: item and true label must be two columns, found only {item!r}.")
    items, changed = as_ids(file.table[item])
    labels, more = as_texts(file.table[label], "true label")
    truth: dict[str, str] = {}
    spelt = {text: with_spelling(text, classes, columns) for text in set(labels) - {None}}
    for n, (name, text) in enumerate(zip(items, labels, strict=True)):
        known = spelt.get(text)
        if name is not None and known and truth.setdefault(name, known) != known:
            raise ValueError(
                f"{path.name!r}, row {n}: item {name!r} has two true labels, {truth[name]!r} and {known!r}."
            )
    if not truth:
        raise ValueError(f"{path.name!r} holds no true labels in the columns {item!r} and {label!r}.")
    note = f"{path.name}: true labels in the column {label!r}, items in {item!r}."
    return truth, [*file.notes, note, *changed, *more], file.source(role)


def _decided(path: Path, role: str) -> tuple[dict[str, str], list[str], Source]:
    """The true labels of a review, as `read_truth` returns them."""
    with Decisions(path) as decisions:
        current = decisions.current()
    truth = true_labels(current)
    if not truth:
        raise ValueError(f"{path.name!r} holds no item that reviewers have given a class.")
    note = f"{path.name}: {len(truth)} true labels from {len(current)} decisions of reviewers."
    content = "\n".join(sorted(map(repr, current)))
    source = Source(role, path.name, hashlib.sha256(content.encode()).hexdigest(), len(current))
    return truth, [note], source


def read_true_sets(
    path: Path, columns: Columns, role: str = "truth"
) -> tuple[dict[str, tuple[str, ...]], list[str], Source]:
    """True sets of classes by item: a table with one row per item, or one row per true class.

    An empty list and "(none)" stand for no class. Parameters as in `read_truth`.
    """
    file = InputFile(path)
    item = find_column(file.table.columns, "item" if role == "truth" else "id", columns.item, path.name)
    label = find_column(file.table.columns, role, columns.label, path.name)
    if item == label:
        raise ValueError(f"{path.name!r}: item and true classes must be two columns, found only {item!r}.")
    items, changed = as_ids(file.table[item])
    sets, more = as_sets(file.table[label], columns)
    truth: dict[str, tuple[str, ...]] = {}
    for name, own in zip(items, sets, strict=True):
        if name is not None and own is not None:
            truth[name] = tuple(dict.fromkeys([*truth.get(name, ()), *own]))
    if not truth:
        raise ValueError(f"{path.name!r} holds no true classes in the columns {item!r} and {label!r}.")
    note = f"{path.name}: true classes in the column {label!r}, items in {item!r}."
    return truth, [*file.notes, note, *changed, *more], file.source(role)


def _files(paths: Sequence[str | Path]) -> tuple[list[Path], list[str]]:
    """The files themselves, and notes; a folder stands for its JSON files, or else for its tables."""
    listed, notes = list[Path](), list[str]()
    for path in map(Path, paths):
        if not path.is_dir() or is_dataset(path):
            listed.append(path)
            continue
        visible = (file for file in path.iterdir() if not file.name.startswith((".", "~")))
        tables = sorted(file for file in visible if is_table_name(file.name) and file.is_file())
        if not tables:
            raise ValueError(
                f"The folder {str(path)!r} holds no file with labels: CSV, TSV, Excel, Parquet, JSON or "
                "JSON Lines."
            )
        records = [file for file in tables if file.suffix.lower() in _JSON]
        if records and len(records) < len(tables):
            others = [file.name for file in tables if file not in records]
            notes.append(f"Of the folder {path.name!r}, only JSON files are read, not {some(others)}.")
        listed += records or tables
    if not listed:
        raise ValueError("There is no file with labels.")
    return listed, notes


def _recognised(files: Sequence[InputFile], columns: Columns) -> dict[Format, list[InputFile]]:
    """The files by their formats; a file that none recognises is read like the first one."""
    exports = [form for form in FORMATS.values() if form.name not in ("long", "wide")]
    found = [
        next((own for own in reversed(exports) if own.recognises(file, columns)), None) for file in files
    ]
    tables = [file for file, form in zip(files, found, strict=True) if form is None]
    together = one_per_annotator(tables, columns)
    chosen: dict[Format, list[InputFile]] = {}
    for file, form in zip(files, found, strict=True):
        if form is None and together:
            form = FORMATS["long"]
        elif form is None:
            form = _table_form(file, columns, next(iter(chosen), None))
        chosen.setdefault(form, []).append(file)
    return chosen


def _table_form(file: InputFile, columns: Columns, first: Format | None) -> Format:
    """The format of a table, or that of the first file for one that is no table of labels by itself."""
    try:
        if FORMATS["wide"].recognises(file, columns):
            return FORMATS["wide"]
    except ValueError:
        if first is None:
            raise
        return first
    names = list(file.table.columns)
    named = {"item": columns.item, "annotator": columns.annotator, "label": columns.label}
    complete = all(own in names or guess_column(names, role) is not None for role, own in named.items())
    return FORMATS["long"] if complete or first is None else first


def _present(columns: Columns, files: Sequence[InputFile]) -> Columns:
    """The columns without names that are about files of other formats, which these tables lack."""
    names = {name for file in files for name in file.table.columns}

    def present(name: str | None) -> str | None:
        return name if name in names else None

    return replace(
        columns,
        item=present(columns.item),
        annotator=present(columns.annotator),
        label=present(columns.label),
    )


def _read_each(
    chosen: Mapping[Format, Sequence[InputFile]], columns: Columns
) -> dict[Format, list[LabelRows]]:
    """The labels in files, by format; refuses options that are about other formats."""
    if columns.annotators and FORMATS["wide"] not in chosen:
        (form, files), *_ = chosen.items()
        raise ValueError(
            f"--annotators names columns of {FORMATS['wide'].title}; {files[0].name!r} is {form.title}."
        )
    parts: dict[Format, list[LabelRows]] = {}
    for form, files in chosen.items():
        tables = len(chosen) > 1 and form.name in ("long", "wide")
        parts[form] = form.read(files, _present(columns, files) if tables else columns)
        if columns.weight is not None and any(part.weight is None for part in parts[form]):
            raise ValueError(
                f"--weight {columns.weight}: {files[0].name!r} is {form.title}; weights are read from "
                f"{FORMATS['long'].title}."
            )
    return parts


def _annotations(
    parts: Sequence[LabelRows], columns: Columns
) -> tuple[Annotations, NDArray[np.float64] | None, list[str]]:
    """Labels as `Annotations`, their times, and notes; incomplete and repeated labels are left out.

    With weights, labels of different classes by one annotator for one item are no repeats but a distribution.
    """
    weighted = [part.weight is not None for part in parts]
    if any(weighted) and not all(weighted):
        raise ValueError(
            "Some of the files have a column of weights and some have none; expected all or none."
        )
    roles = ["item", "annotator", "label", *(["weight"] if all(weighted) else [])]
    values = {role: np.concatenate([getattr(part, role) for part in parts]) for role in roles}
    values["label"], notes = with_names(values["label"], columns)
    table = pd.DataFrame(values, dtype=object)
    timed = any(part.time is not None for part in parts)
    table["time"] = np.concatenate(
        [np.full(len(part.item), np.nan) if part.time is None else part.time for part in parts]
    )
    missing = table[roles[:3]].isna()
    for role, what in (("item", "id of an item"), ("annotator", "annotator")):
        lost = np.flatnonzero(missing[role] & ~missing["label"])
        if len(lost):
            notes.append(
                count(len(lost), f"label without an {what} was", f"labels without an {what} were")
                + f" left out, the first in row {lost[0]}."
            )
    table = table[~missing.any(axis=1)]
    if table.empty:
        hint = " Answers name several classes: --multi-label." if _left_out_several(parts) else ""
        if columns.missing:
            hint += f" --missing leaves out {some(columns.missing)}."
        raise ValueError(f"There are no labels: no row has an item, an annotator and a label.{hint}")
    if all(weighted) and (empty := table["weight"].isna()).any():
        raise ValueError(
            count(int(empty.sum()), "label has", "labels have")
            + f" no weight, the first in row {empty.idxmax()}. Give 1 to labels that count in full."
        )
    one = roles[:3] if all(weighted) else roles[:2]
    repeated = table[table.duplicated(one)]
    if len(repeated):
        item, annotator = repeated.iloc[0][["item", "annotator"]]
        which = "newest" if timed else "last"
        notes.append(
            count(len(repeated), "label repeats", "labels repeat")
            + f" another one of the same annotator for the same item; the {which} counts (the first: "
            f"{annotator!r:.60} on {item!r:.60})."
        )
    items, annotators = (list(dict.fromkeys(table[role])) for role in roles[:2])
    # the newest is the last one; a label without a time comes before all others
    table = table.sort_values("time", kind="stable", na_position="first").drop_duplicates(one, keep="last")
    annotations = Annotations.from_long(
        table, classes=in_order(table["label"]), items=items, annotators=annotators
    )
    notes += offers(table["label"].to_numpy(), columns.fold_case)
    notes += several_hint(table["label"].to_numpy(), [note for part in parts for note in part.notes])
    if annotations.n_classes > max(50, len(annotations) // 2):
        raise ValueError(
            f"There are {annotations.n_classes} different labels among {len(annotations)}: "
            f"{some(annotations.classes)}. Is this the column of the labels? Name it with --label NAME."
        )
    return annotations, _times(table, annotations) if timed else None, notes


def _left_out_several(parts: Sequence[LabelRows]) -> bool:
    return any("--multi-label" in note for part in parts for note in part.notes)


def _times(table: pd.DataFrame, annotations: Annotations) -> NDArray[np.float64]:
    """The times of labels in the order of `annotations`, shape (n_labels,); `table` has the same labels."""
    keys = ["item", "annotator", "label"]
    known = annotations.to_long()[keys].merge(table[[*keys, "time"]], how="left", on=keys)
    return np.asarray(known["time"], dtype=np.float64)
