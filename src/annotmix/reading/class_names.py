"""Names of classes: other names and spellings that the user wants, and offers where labels look alike.

No label is changed unless the user says so.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from annotmix._common.words import count, did_you_mean, some
from annotmix.reading.formats import Columns
from annotmix.reading.input_files import InputFile
from annotmix.reading.values import Texts, as_texts

#: Labels that often stand for no label, without case; the user decides.
_NO_LABELS = {
    "?", "??", "-", "--", ".", "unsure", "unknown", "unclear", "undecided", "uncertain", "skip", "skipped",
    "pass", "idk", "none", "missing", "empty", "unlabeled", "unlabelled", "n.a.", "dontknow", "invalid",
    "not sure", "dont know", "don't know", "don’t know", "do not know", "no answer", "no label",
    "cannot tell", "can't tell", "cant tell", "can’t tell", "not applicable", "not available", "no idea",
}  # fmt: skip


def fold(label: str) -> str:
    """A label without case and repeated spaces."""
    return " ".join(label.casefold().split())


def read_rename(path: Path) -> dict[str, str]:
    """New names of labels from a table with the columns `old` and `new`; an empty `new` is no label."""
    file = InputFile(path)
    names = list(file.table.columns)
    lower = {str(name).strip().lower(): name for name in names}
    pair = [lower["old"], lower["new"]] if {"old", "new"} <= set(lower) else names
    if len(pair) != 2:
        raise ValueError(f"{path.name!r} has the columns {some(names, 12)}; expected 'old' and 'new'.")
    old, _ = as_texts(file.table[pair[0]], "old label", ())
    new, _ = as_texts(file.table[pair[1]], "new label", ())
    rename: dict[str, str] = {}
    for row, (before, after) in enumerate(zip(old, new, strict=True)):
        if before is None:
            raise ValueError(f"{path.name!r}, row {row}: the column {pair[0]!r} is empty; expected a label.")
        if rename.setdefault(before, after or "") != (after or ""):
            raise ValueError(f"{path.name!r}, row {row}: {before!r} has two new names; keep one.")
    return rename


def with_names(labels: Texts, columns: Columns) -> tuple[Texts, list[str]]:
    """Labels under the names that the user wants, and notes.

    Parameters
    ----------
    labels : array of str or None, shape (n,)
    columns : Columns
        Its `rename` and `fold_case`.
    """
    notes = []
    counts = Counter(label for label in labels if label is not None)
    if columns.rename:
        if unknown := [old for old in columns.rename if old not in counts]:
            near = did_you_mean(unknown[0], counts)
            notes.append(f"No label is called {some(unknown)}, which --rename-classes renames.{near}")
        changed = sum(counts[old] for old, new in columns.rename.items() if new != old)
        labels = _mapped(labels, columns.rename)
        notes.append(f"{count(changed, 'label')} got another name by --rename-classes.")
        counts = Counter(label for label in labels if label is not None)
    if columns.fold_case:
        spelling = {old: names[0] for names in _alike(counts) for old in names}
        changed = sum(counts[old] for old, new in spelling.items() if new != old)
        labels = _mapped(labels, spelling)
        notes.append(
            count(changed, "label was given", "labels were given")
            + " the spelling of a class that differs only in case or spaces (--fold-case)."
        )
    return labels, notes


def with_spelling(label: str, classes: Iterable[str], columns: Columns) -> str:
    """A true label under the name that the class has among the labels; "" where it is renamed to nothing."""
    label = columns.rename.get(label, label)
    if not columns.fold_case:
        return label
    return next((name for name in classes if fold(name) == fold(label)), label)


def offers(labels: Texts, fold_case: bool) -> list[str]:
    """Notes with the options that make one class of spellings, or missing labels of words for them."""
    counts = Counter(label for label in labels if label is not None)
    notes = []
    if not fold_case and (alike := _alike(counts)):
        listed = "; ".join(some(names) for names in alike[:3]) + ("; …" if len(alike) > 3 else "")
        notes.append(f"Classes differ only in case or spaces: {listed}. --fold-case makes one of them.")
    words = [label for label in counts if fold(label) in _NO_LABELS]
    if words and len(counts) - len(words) >= 2:
        options = " ".join(f"--missing {shlex.quote(word)}" for word in words[:5])
        listed = ", ".join(f"{word!r} ({count(counts[word], 'label')})" for word in words[:5])
        counted, leaves = (
            ("counts as a class", "leaves it") if len(words) == 1 else ("count as classes", "leaves them")
        )
        notes.append(f"{listed} may stand for no label and {counted}: {options} {leaves} out.")
    return notes


def _alike(counts: Mapping[str, int]) -> list[list[str]]:
    """Labels that differ only in case or spaces, the most frequent spelling of each first."""
    groups: dict[str, list[str]] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        groups.setdefault(fold(label), []).append(label)
    return [names for names in groups.values() if len(names) > 1]


def _mapped(labels: Texts, names: Mapping[str, str]) -> Texts:
    listed = [None if label is None else names.get(label, label) or None for label in labels]
    changed = np.empty(len(listed), dtype=object)
    changed[:] = listed
    return changed
