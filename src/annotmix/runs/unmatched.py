"""Labels whose items were not found, and items that these labels may belong to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from annotmix._common.words import count, some
from annotmix.reading.image_names import plain_name

_WORDS = {"features": "features", "text": "text", "images": "image"}


class Unmatched(NamedTuple):
    """Labels that were left out because their items were not found.

    Attributes
    ----------
    note : str
        What happened, for notes and above the suggestions; empty where all labelled items were found.
    items : list of str
        Items without labels that may have some of the labels that were left out; they are not suggested.
    """

    note: str
    items: list[str]


NOTHING_UNMATCHED = Unmatched("", [])


def find_unmatched(
    lost: Sequence[str], unlabelled: Sequence[str], unclear: Collection[str], kind: str
) -> Unmatched:
    """Items that may be the ones that labels were lost for: they fit several labelled items, or are alike.

    Parameters
    ----------
    lost : sequence of str
        Labelled items that were not found.
    unlabelled : sequence of str
        Items without labels.
    unclear : collection of str
        Items that fit a lost item, but not only it.
    kind : {"features", "text", "images"}
    """
    if not lost:
        return NOTHING_UNMATCHED
    plain = {plain_name(name) for name in lost} - {""}
    items = [name for name in unlabelled if name in unclear or plain_name(name) in plain]
    note = (
        count(len(lost), "labelled item has", "labelled items have")
        + f" no matching {_WORDS[kind]}, and their labels were left out: {some(list(lost))}."
    )
    if items:
        alike = count(
            len(items),
            "item without labels has a similar name and is",
            "items without labels have similar names and are",
        )
        note += f" {alike} not suggested for labelling: {some(items)}."
    if others := len(unlabelled) - len(items):
        rest = "the further item" if others == 1 else f"one of the {others:,} further items"
        note += f" Compare the names before you label {rest} without labels."
    return Unmatched(note, items)
