"""Labels and instances brought together by the ids of the items, and what was understood of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from annotmix._common.words import some
from annotmix.labels.annotations import Annotations
from annotmix.labels.names import locate
from annotmix.reading import Instances, LabelData

Say = Callable[[str], None]

_COLUMNS = (
    "Name the columns that hold the same ids: --task NAME for the labels, --item-column NAME for the other "
    "file."
)
#: What to do where no ids fit.
_HINTS = {
    "features": _COLUMNS,
    "text": _COLUMNS,
    "images": "Name the column or field of the labels that holds the names of the files: --task NAME "
    "(in an export of Label Studio mostly --task image).",
}


@dataclass(frozen=True, eq=False)
class Matched:
    """Labels of items that have an instance.

    Parameters
    ----------
    annotations : Annotations
        Item n is instance n; items without labels are there too.
    n_labelled : int
        Items that the labels are about.
    lost : list of str
        Those of them that have no instance.
    """

    annotations: Annotations
    n_labelled: int
    lost: list[str]


def match(labelled: LabelData, instances: Instances) -> Matched:
    """Keep the labels of items that have an instance; refuse where there are none, or nothing to learn."""
    found = labelled.annotations
    row = locate(found.items, np.array(instances.ids, dtype=object))
    lost = [str(name) for name in found.items[row < 0]]
    if len(lost) == found.n_items:
        raise ValueError(
            f"None of the {found.n_items} labelled items is among the {len(instances.ids)} "
            f"{_what(instances)}. The labels are "
            f"about {some(list(found.items))}; the {_what(instances)} are of {some(instances.ids)}. "
            f"{_HINTS[instances.kind]}"
        )
    kept = row[found.item] >= 0
    present, annotator = np.unique(found.annotator[kept], return_inverse=True)
    names = np.empty(len(instances.ids), dtype=object)
    names[:] = instances.ids
    annotations = Annotations(
        row[found.item[kept]],
        annotator,
        found.label[kept],
        names,
        found.annotators[present],
        found.classes,
        None if found.weight is None else found.weight[kept],
    )
    if annotations.n_classes < 2:
        raise ValueError(
            f"All labels are {some(annotations.classes)}; a classifier needs at least two classes."
        )
    return Matched(annotations, found.n_items, lost)


def understood(labelled: LabelData, matched: Matched, instances: Instances) -> dict[str, Any]:
    """The figures that a person should see before anything is trained."""
    a = matched.annotations
    per_item = a.labels_per_item[a.labels_per_item > 0]
    return {
        "format": labelled.format,
        "labels": len(a),
        "items": len(per_item),
        "annotators": a.n_annotators,
        "classes": [str(name) for name in a.classes],
        "labels per item": [float(per_item.mean()), int(per_item.min()), int(per_item.max())],
        "agreement": a.agreement(),
        "matched": matched.n_labelled - len(matched.lost),
        "not matched": matched.lost[:5],
        "n not matched": len(matched.lost),
        "without labels": a.n_items - len(per_item),
        "instances": instances.kind,
    }


def show(figures: dict[str, Any], notes: list[str], say: Say) -> None:
    """Say what was understood."""
    mean, least, most = figures["labels per item"]
    what = {"features": "features", "text": "a text", "images": "an image"}[figures["instances"]]
    names = figures["classes"]
    say("What was understood")
    say(f"  labels      {figures['labels']} by {figures['annotators']} annotators ({figures['format']})")
    say(f"  items       {figures['items']}, with {mean:.1f} labels on average ({least} to {most})")
    say(
        f"  classes     {len(names)}: {', '.join(name[:40] for name in names[:10])}"
        f"{', …' if len(names) > 10 else ''}"
    )
    if figures["agreement"] == figures["agreement"]:
        say(f"  agreement   {figures['agreement']:.0%}: the chance that two labels of one item are the same")
    total = figures["matched"] + figures["n not matched"]
    say(f"  matched     {figures['matched']} of {total} labelled items have {what}")
    if figures["n not matched"]:
        more = ", …" if figures["n not matched"] > 5 else ""
        say(
            f"              without: {', '.join(repr(name[:60]) for name in figures['not matched'])}{more}; "
            "their labels are left out"
        )
    if figures["without labels"]:
        say(
            f"  unlabelled  {figures['without labels']} further items have {what} and no labels; "
            "they are predicted too"
        )
    for note in notes:
        say(f"  - {note}")


def _what(instances: Instances) -> str:
    return {"features": "rows of features", "text": "texts", "images": "images"}[instances.kind]
