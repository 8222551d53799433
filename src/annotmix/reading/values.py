"""Ids and labels as text, so that 1, 1.0 and "1" are one id and "007" stays what it is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import some
from annotmix.labels.annotations import Annotations
from annotmix.labels.names import MISSING

#: Longest id, name of an annotator, or label; a longer one is a text in the wrong column.
LONGEST = 1000
_INTEGER = re.compile(r"-?\d{1,18}")
_AS_FLOAT = re.compile(r"-?\d{1,18}(\.0*)?")

Texts = NDArray[Any]


def as_texts(values: Iterable[Any], what: str, missing: Iterable[str] = MISSING) -> tuple[Texts, list[str]]:
    """Values as text, None where one is missing, and what was changed.

    Parameters
    ----------
    values : iterable
        Text, numbers, booleans, missing values.
    what : str
        What they are, for messages: "label".
    missing : iterable of str
        Texts that stand for a missing value, besides the empty one.
    """
    absent = {word.casefold() for word in missing} | {""}
    listed = list(values)
    texts = np.empty(len(listed), dtype=object)
    known: dict[str, str] = {}
    words: dict[str, int] = {}
    spaces = 0
    for n, value in enumerate(listed):
        if isinstance(value, str):
            text = known.get(value)
            if text is None:
                text = known[value] = _clean(value, what, n)
            spaces += len(text) != len(value)
        else:
            text = _number(value, what, n)
        if text.casefold() in absent:
            words[text] = words.get(text, 0) + bool(text)
            continue
        texts[n] = text
    notes = []
    if spaces:
        notes.append(f"Spaces around the {what} were removed in {spaces} rows.")
    if given := {word: count for word, count in words.items() if count}:
        listed_words = ", ".join(f"{word!r} {count} times" for word, count in given.items())
        notes.append(f"Read as no {what}: {listed_words}.")
    present = [text for text in texts if text is not None]
    distinct = set(present)
    if any("." in text for text in distinct) and all(_AS_FLOAT.fullmatch(text) for text in distinct):
        texts = np.array([None if text is None else text.split(".")[0] for text in texts], dtype=object)
        notes.append(f"Every {what} is a whole number; 1.0 was read as 1.")
    return texts, notes


def in_order(names: Iterable[str]) -> list[str]:
    """Distinct names in their natural order: as numbers where all are, else as text."""
    distinct = set(names)
    if all(_INTEGER.fullmatch(name) for name in distinct):
        return sorted(distinct, key=lambda name: (int(name), name))
    return sorted(distinct)


def make_annotations(
    task: Texts, worker: Texts, label: Texts, weight: NDArray[np.float64] | None = None
) -> tuple[Annotations, list[str]]:
    """Labels as `Annotations`; incomplete and repeated ones are left out, and counted.

    With weights, labels of different classes by one annotator for one item are no repeats but a distribution.
    """
    notes = []
    for values, what in ((task, "id of an item"), (worker, "annotator")):
        lost = np.flatnonzero((values == None) & (label != None))  # noqa: E711
        if len(lost):
            notes.append(f"{len(lost)} labels without an {what} were left out, the first in row {lost[0]}.")
    whole = (task != None) & (worker != None) & (label != None)  # noqa: E711
    if not whole.any():
        raise ValueError("There are no labels: no row has an item, an annotator and a label.")
    table = pd.DataFrame({"task": task[whole], "worker": worker[whole], "label": label[whole]}, dtype=object)
    one = ["task", "worker"]
    if weight is not None:
        one, table["weight"] = ["task", "worker", "label"], weight[whole]
        if (empty := np.flatnonzero(np.isnan(weight) & whole)).size:
            raise ValueError(
                f"{len(empty)} labels have no weight, the first in row {empty[0]}. Give 1 to labels that "
                "count in full."
            )
    repeated = int(table.duplicated(one).sum())
    if repeated:
        first = table[table.duplicated(one)].iloc[0]
        notes.append(
            f"{repeated} labels repeat an earlier one of the same annotator for the same item; the "
            "last counts "
            f"(the first: {first['worker']!r:.60} on {first['task']!r:.60})."
        )
    annotations = Annotations.from_long(
        table,
        duplicates="last",
        classes=in_order(table["label"]),
        items=list(dict.fromkeys(table["task"])),
        annotators=list(dict.fromkeys(table["worker"])),
    )
    if annotations.n_classes > max(50, len(annotations) // 2):
        raise ValueError(
            f"There are {annotations.n_classes} different labels among {len(annotations)}: "
            f"{some(annotations.classes)}. Is this the column of the labels? Name it with --label NAME."
        )
    return annotations, notes


def _clean(value: str, what: str, row: int) -> str:
    text = value.strip()
    if len(text) > LONGEST:
        raise ValueError(
            f"The {what} in row {row} has {len(text)} characters ({text[:30]!r}…), at most "
            f"{LONGEST} are read. "
            "Is it a text in the wrong column?"
        )
    # half of a surrogate pair, from JSON, could not be written to any file
    return text.encode("utf-8", "replace").decode("utf-8")


def _number(value: Any, what: str, row: int) -> str:
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int) and abs(value) < 10**18:
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    raise ValueError(f"The {what} in row {row} is {value!r:.60}, expected a text or a number.")
