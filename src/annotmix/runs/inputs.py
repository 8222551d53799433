"""The files of a run, read and matched by the ids of the items, and a summary of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from annotmix._common.words import count, shorten, some
from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import percent_agreement
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.names import locate
from annotmix.labels.set_texts import write_set
from annotmix.reading import (
    AnnotatorTable,
    Columns,
    Items,
    LabelData,
    read_features,
    read_images,
    read_labels,
    read_texts,
    read_truth,
)
from annotmix.reading.class_names import read_rename
from annotmix.reading.decisions import Decisions, is_decisions
from annotmix.reading.input_files import Source
from annotmix.reading.label_files import read_true_sets
from annotmix.runs.request import Request
from annotmix.runs.unmatched import Unmatched, find_unmatched

Say = Callable[[str], None]

#: An annotator with this many labels, all the same, gets a note.
MANY_ALIKE = 10
_COLUMNS = (
    "Name the columns that hold the same ids: --item NAME for the labels, --item-column NAME for the other "
    "file."
)
#: Advice where no ids match.
_HINTS = {
    "features": _COLUMNS,
    "text": _COLUMNS,
    "images": "Name the column or field of the labels that holds the names of the files: --item NAME "
    "(in an export of Label Studio mostly --item image).",
}


@dataclass(frozen=True, eq=False)
class Inputs:
    """The data that a run learns from.

    Parameters
    ----------
    annotations : Annotations
        Item n is row n of `items`; items without labels are there too.
    items : Items
    truth : dict of item to true label, or to its true classes
        Of --valid, without the items of --gold; empty without it.
    gold : dict of item to true label
        Of --gold, of items that exist; empty without it.
    understood : dict
        Figures to show before training.
    notes : list of str
        Notes about what was read, changed and left out.
    sources : list of Source
    unmatched : Unmatched
        Labels that were left out because their items were not found.
    sets : LabelSets, optional
        With --multi-label: the labels; `annotations` are then their answers, and true labels are tuples.
    times : DataFrame, optional
        `item`, `annotator`, `label` and `time`, in seconds since 1970, where the files have times.
    annotators : AnnotatorTable, optional
        What the file of --annotators says about them.
    unparsed : mapping of annotator to int
        Answers that could not be read as a label.
    """

    annotations: Annotations
    items: Items
    truth: dict[str, Any]
    gold: dict[str, Any]
    understood: dict[str, Any]
    notes: list[str]
    sources: list[Source]
    unmatched: Unmatched
    times: pd.DataFrame | None = None
    sets: LabelSets | None = None
    annotators: AnnotatorTable | None = None
    unparsed: Mapping[str, int] = field(default_factory=dict)


def read_inputs(request: Request, progress: bool) -> Inputs:
    """Read the files that a request names, and keep the labels of items that have features, text or image."""
    columns = _columns(request)
    labelled = read_labels(request.labels, request.format, columns)
    items = _read_items(request, labelled, progress)
    annotations, lost = match(labelled.annotations, items)
    annotations, dropped = _without_invalid(annotations, request.gold)
    sets = None if labelled.sets is None else labelled.sets._with(annotations)
    known = _read_known(request, annotations if sets is None else sets, columns)
    understood = _understood(labelled, annotations, items, lost)
    if sets is not None:
        understood["classes"] = [str(name) for name in sets.classes]
    return Inputs(
        annotations,
        items,
        known.truth,
        known.gold,
        understood,
        [*labelled.notes, *items.notes, *known.notes, *dropped, *_remarks(annotations)],
        [*labelled.sources, *items.sources, *known.sources],
        find_unmatched(
            lost, annotations.items[annotations.labels_per_item == 0].tolist(), items.unclear, items.kind
        ),
        _times(labelled),
        sets,
        labelled.annotators,
        labelled.unparsed,
    )


def _columns(request: Request) -> Columns:
    return Columns(
        request.item,
        request.annotator,
        request.label,
        request.missing,
        request.weight,
        request.annotators,
        request.exclude,
        request.text_column,
        request.fold_case,
        {} if request.rename_classes is None else read_rename(request.rename_classes),
        several=request.multi_label,
        delimiter=request.delimiter,
        no_class=request.no_class,
    )


def _times(labelled: LabelData) -> pd.DataFrame | None:
    if labelled.time is None:
        return None
    if labelled.sets is not None:
        table = labelled.sets.to_long()
        return table[["item", "annotator"]].assign(label=table["labels"].map(write_set), time=labelled.time)
    return labelled.annotations.to_long()[["item", "annotator", "label"]].assign(time=labelled.time)


class _Known(NamedTuple):
    """True labels of --valid and --gold."""

    truth: dict[str, Any]
    gold: dict[str, Any]
    notes: list[str]
    sources: list[Source]


def _read_known(request: Request, annotations: Annotations | LabelSets, columns: Columns) -> _Known:
    known = _Known({}, {}, [], [])
    for role, path, labels in (("valid", request.valid, known.truth), ("gold", request.gold, known.gold)):
        if path is not None:
            own = replace(columns, item=request.item_column, label=None)
            found, notes, source = (
                read_true_sets(path, own, role)
                if request.multi_label
                else read_truth(path, own, role, list(annotations.classes))
            )
            labels.update(found)
            known.notes.extend(notes)
            known.sources.append(source)
    gold, notes = match_gold(known.gold, annotations)
    both = [item for item in known.truth if item in gold]
    if both and len(both) == len(known.truth):
        raise ValueError(
            f"All {len(both)} items in --valid are in --gold too. Items of --gold are learnt, so they cannot "
            "choose the epoch: give --valid other items, or leave it out."
        )
    if both:
        notes.append(
            f"{len(both)} of {len(known.truth)} items in --valid are in --gold too; they are learnt, so they "
            "neither choose the epoch nor count in the scores."
        )
    truth = {item: label for item, label in known.truth.items() if item not in gold}
    return _Known(truth, gold, [*known.notes, *notes], known.sources)


def _without_invalid(annotations: Annotations, gold: Path | None) -> tuple[Annotations, list[str]]:
    """The labels without those of items that reviewers found to be no valid items, and a note about them."""
    if gold is None or not is_decisions(gold):
        return annotations, []
    with Decisions(gold) as decisions:
        invalid = [item for item in decisions.invalid() if item in set(annotations.items)]
    if not invalid:
        return annotations, []
    note = f"{gold.name}: reviewers found {len(invalid)} items not valid, their labels are left out: "
    place = locate(np.array(invalid, dtype=object), annotations.items)
    return annotations.keep(~np.isin(annotations.item, place)), [f"{note}{some(invalid)}."]


def match_gold(
    gold: dict[str, Any], annotations: Annotations | LabelSets
) -> tuple[dict[str, Any], list[str]]:
    """True labels of the items that exist, and a note about others.

    Refuses labels without any existing item, and labels that are no class.
    """
    there = set(annotations.items)
    lost = [item for item in gold if item not in there]
    if gold and len(lost) == len(gold):
        raise ValueError(
            f"None of the {len(gold)} items in --gold is among the {len(there)} items: --gold is about "
            f"{some(list(gold))}, the items are {some(list(annotations.items))}."
        )
    kept = {item: label for item, label in gold.items() if item in there}
    named = {name for label in kept.values() for name in ([label] if isinstance(label, str) else label)}
    if unknown := sorted(named - set(annotations.classes)):
        raise ValueError(
            f"--gold has labels that no annotator gave: {some(unknown)}. Known classes are "
            f"{some(annotations.classes)}; correct these labels or leave them out."
        )
    if not lost:
        return kept, []
    return kept, [f"{len(lost)} of {count(len(gold), 'item')} in --gold not among the items: {some(lost)}."]


def _read_items(request: Request, labelled: LabelData, progress: bool) -> Items:
    options = [name for name in ("features", "text", "images") if getattr(request, name) is not None]
    if len(options) > 1:
        raise ValueError(
            "Give one of --features, --text and --images, found "
            f"{' and '.join('--' + name for name in options)}."
        )
    if request.features is not None:
        # --exclude is about both files, so that a column of the labels need not be one of the features
        exclude = [name for name in request.exclude if name not in labelled.used]
        same = any(_same_file(request.features, path) for path in request.labels)
        item = request.item_column or (request.item if same else None)
        used = labelled.used if same else None
        return read_features(request.features, request.ids, item, request.include, exclude, used)
    if request.text is not None:
        return read_texts(request.text, request.text_column, request.item_column)
    if request.images is not None:
        return read_images(request.images, list(labelled.annotations.items), progress)
    if not labelled.texts:
        raise ValueError(
            "Give the items that the labels are about: --features FILE, --text FILE or --images FOLDER."
            f"{_offer(request, labelled)} (For labels alone there is annotmix aggregate.)"
        )
    ids, notes = list(labelled.texts), ["The texts of the items come from the file of the labels itself."]
    return Items("text", ids, [labelled.texts[item] for item in ids], notes, [])


def _offer(request: Request, labelled: LabelData) -> str:
    """The end of a message that offers further columns in the file of the labels as features."""
    if labelled.format not in ("long", "wide") or len(request.labels) > 1 or request.labels[0].is_dir():
        return ""
    path = request.labels[0]
    try:
        items = read_features(path, None, request.item, labels=labelled.used)
    except ValueError:
        return ""
    return f" {path.name!r} has further columns, {some(list(items.X.columns))}: --features {path} uses them."


def _same_file(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def match(annotations: Annotations, items: Items) -> tuple[Annotations, list[str]]:
    """The labels of the items that exist, item n being row n, and the names of labelled items that do not.

    Refuses labels without any existing item, or with a single class.
    """
    there = locate(annotations.items, np.array(items.ids, dtype=object)) >= 0
    lost = [str(name) for name in annotations.items[~there]]
    if len(lost) == annotations.n_items:
        what = {"features": "rows of features", "text": "texts", "images": "images"}[items.kind]
        raise ValueError(
            f"None of the {annotations.n_items} labelled items is among the {len(items.ids)} {what}. The "
            f"labels are about {some(list(annotations.items))}; the {what} are of {some(items.ids)}. "
            f"{_HINTS[items.kind]}"
        )
    if annotations.n_classes < 2:
        raise ValueError(
            f"All labels are {some(annotations.classes)}; a classifier needs at least two classes."
            if annotations.classes.dtype == object
            else "All answers are the same set of classes; there is nothing to learn."
        )
    if not lost:
        return annotations.align(items=items.ids), lost
    kept = annotations.keep(there[annotations.item])
    active = kept.annotators[kept.labels_per_annotator > 0]
    return kept.align(items=items.ids, annotators=active), lost


def _understood(labelled: LabelData, a: Annotations, items: Items, lost: list[str]) -> dict[str, Any]:
    per_item = a.labels_per_item[a.labels_per_item > 0]
    return {
        "format": labelled.format,
        "labels": int(per_item.sum()),
        "items": len(per_item),
        "annotators": a.n_annotators,
        "classes": [str(name) for name in a.classes],
        "labels per item": [float(per_item.mean()), int(per_item.min()), int(per_item.max())],
        "agreement": percent_agreement(a),
        "matched": labelled.annotations.n_items - len(lost),
        "not matched": lost[:5],
        "n not matched": len(lost),
        "without labels": a.n_items - len(per_item),
        "kind": items.kind,
    }


def understood_lines(understood: dict[str, Any], notes: list[str]) -> list[str]:
    """The summary as lines of text."""
    mean, least, most = understood["labels per item"]
    what = {"features": "features", "text": "a text", "images": "an image"}[understood["kind"]]
    names, n_lost = understood["classes"], understood["n not matched"]
    lines = [
        "What was understood",
        f"  labels      {understood['labels']:,} by {count(understood['annotators'], 'annotator')} "
        f"({understood['format']})",
        f"  items       {understood['items']}, with {mean:.1f} labels on average ({least} to {most})",
        f"  classes     {len(names)}: {', '.join(shorten(name, 40) for name in names[:10])}"
        f"{', …' if len(names) > 10 else ''}",
    ]
    if understood["agreement"] == understood["agreement"]:
        lines.append(
            f"  agreement   {understood['agreement']:.0%}: the chance that two labels of one item "
            "are the same"
        )
    matched = understood["matched"]
    lines.append(f"  matched     {matched} of {matched + n_lost} labelled items have {what}")
    if n_lost:
        without = ", ".join(repr(shorten(name, 60)) for name in understood["not matched"])
        lines.append(
            f"              without: {without}{', …' if n_lost > 5 else ''}; their labels are left out"
        )
    if understood["without labels"]:
        lines.append(
            "  unlabelled  "
            + count(understood["without labels"], "further item has", "further items have")
            + f" {what} and no labels; predicted, too"
        )
    return [*lines, *(f"  - {note}" for note in notes)]


def _remarks(a: Annotations) -> list[str]:
    """Notes about annotators whose scores need care."""
    notes = []
    single = int((a.labels_per_annotator == 1).sum())
    if single:
        notes.append(
            f"{single} of {a.n_annotators} annotators gave a single label; next to nothing can be "
            "known about them."
        )
    pairs = np.unique(a.annotator * a.n_classes + a.label)
    kinds = np.bincount(pairs // a.n_classes, minlength=a.n_annotators)
    alike = np.flatnonzero((kinds == 1) & (a.labels_per_annotator >= MANY_ALIKE))
    if len(alike):
        notes.append(
            f"{count(len(alike), 'annotator')} gave the same label to everything, {MANY_ALIKE} items or "
            f"more: {some(a.annotators[alike])}."
        )
    return notes
