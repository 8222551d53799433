"""The items that a classifier has learnt from: their labels, and how they are recognised later.

An item that was learnt is judged by a classifier that has not seen it, a new one by the final classifier.
Rows of X are recognised by their content, as arrays have no names.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from annotmix._common.progress import Progress
from annotmix.labels.annotations import Annotations
from annotmix.labels.evidence import Evidence
from annotmix.labels.label_sets import LabelSets
from annotmix.labels.names import Index, as_names
from annotmix.labels.posterior import Posterior
from annotmix.labels.shrunken import Gold, Shrunken
from annotmix.training.tensor_layout import Layout

Floats = NDArray[np.floating]

#: Name of the tensor of class probabilities of training items by classifiers that have not seen them.
UNSEEN_NAME = "unseen"
#: Names of the tensors that hold the labels, in a saved model.
_NAMES = ("item", "annotator", "label", "weight")
#: Name of the tensor with the sets that labels and true classes stand for, where items have several classes.
MEMBERS = "members"
#: How the names of these tensors begin.
LEARNT = "learnt."


@dataclass(frozen=True, eq=False)
class LearntItems:
    """Labels of the training items, true classes of some, and marks to recognise rows of X by."""

    annotations: Annotations
    gold: Gold
    marks: NDArray[np.int64]

    @property
    def learnt(self) -> NDArray[np.bool_]:
        """Whether an item had a label or a true class to learn from, shape (N,)."""
        learnt = self.annotations.labels_per_item > 0
        learnt[self.gold[0]] = True
        return learnt

    def find(self, rows: NDArray[Any]) -> Index:
        """The training item that each row of X is, -1 for new ones; shape (n,)."""
        known, first = np.unique(self.marks, return_index=True)
        mark = row_marks(rows)
        at = np.minimum(np.searchsorted(known, mark), max(len(known) - 1, 0))
        return np.where(known[at] == mark, first[at], -1) if len(known) else np.full(len(mark), -1)

    def posterior(self, unseen: Floats, alone: Shrunken | None = None, progress: bool = False) -> Posterior:
        """What labels and classifiers say together about the items.

        Parameters
        ----------
        unseen : array, shape (N, C)
            Class probabilities by classifiers that have not learnt the item; nan where there are none.
        alone : Shrunken, optional
            The answer of the labels alone, where it is known already.
        progress : bool, default=False
        """
        p = unseen.astype(np.float64)
        learnt = np.isnan(p[:, 0])
        with Progress("posterior", 2, show=progress) as bar:
            evidence = Evidence(self.annotations, self.gold, alone)
            bar.advance()
            answer = evidence.combine(None if learnt.any() else p)
            bar.advance()
        if learnt.any():  # items without labels have a prediction nevertheless
            answer = replace(answer, q=np.where(learnt[:, None], answer.q, p))
        return Posterior(self.annotations, answer)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything but the names of items, annotators and classes."""
        arrays = {name: getattr(self.annotations, name) for name in _NAMES}
        arrays |= {"gold": np.array(self.gold), "marks": self.marks}
        return {LEARNT + name: np.asarray(array) for name, array in arrays.items() if array is not None}

    @staticmethod
    def require_layout(layout: Layout, n_items: int | None) -> int:
        """Take the tensors of `to_arrays` out of a layout, which must fit; the number of items.

        `n_items` is the number of names of items, None where they are not known.
        """
        own = {name: layout.pop(name) for name in list(layout) if name.startswith(LEARNT)}
        if not own:
            return n_items or 0
        n_labels = own[LEARNT + "item"].shape
        shapes = {LEARNT + name: n_labels for name in _NAMES if name != "weight" or LEARNT + name in own}
        shapes |= {LEARNT + "gold": [2, *own[LEARNT + "gold"].shape[1:]]}
        shapes |= {LEARNT + "marks": own[LEARNT + "marks"].shape[:1] if n_items is None else [n_items]}
        if {name: entry.shape for name, entry in own.items()} != shapes or len(n_labels) != 1:
            raise ValueError("the tensors of the learnt labels do not fit together.")
        for name, entry in own.items():
            if entry.dtype != ("F64" if name == LEARNT + "weight" else "I64"):
                raise ValueError(f"the tensor {name!r} has the type {entry.dtype}.")
        return shapes[LEARNT + "marks"][0]

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, NDArray[Any]], items: Any, annotators: NDArray[Any], classes: NDArray[Any]
    ) -> LearntItems | None:
        """The inverse of `to_arrays`, which takes its arrays out of `arrays`; None without them."""
        if LEARNT + "item" not in arrays:
            return None
        parts = {
            name.removeprefix(LEARNT): arrays.pop(name) for name in list(arrays) if name.startswith(LEARNT)
        }
        gold, marks = parts.pop("gold"), parts.pop("marks")
        names = np.arange(len(marks)) if items is None else items
        annotations = Annotations(**parts, items=names, annotators=annotators, classes=classes)
        for index, size in zip(gold, (annotations.n_items, annotations.n_classes), strict=True):
            if len(index) and not 0 <= index.min() <= index.max() < size:
                raise ValueError("a true class is about an unknown item, or is an unknown class.")
        return cls(annotations, (gold[0], gold[1]), marks)


def row_marks(rows: NDArray[Any]) -> NDArray[np.int64]:
    """A number for each row that tells its content from others', shape (n,)."""
    digests = b"".join(
        hashlib.blake2b(np.ascontiguousarray(row, dtype=np.float32).tobytes(), digest_size=8).digest()
        for row in rows
    )
    return np.frombuffer(digests, dtype=np.int64)


def with_gold(annotations: Annotations, gold: Gold, *, replaces: bool) -> Annotations:
    """The labels and the true classes of some items, to learn from both.

    True classes replace the labels of their items, or are the labels of one more annotator.
    """
    item, label = gold
    if not len(item):
        return annotations
    names = list(annotations.annotators)
    if replaces:
        kept = annotations.keep(~np.isin(annotations.item, item))
        who = np.zeros(len(item), np.int64)
    else:
        kept, who = annotations, np.full(len(item), len(names))
        names.append(next(name for name in chain(("gold", "true class"), count()) if name not in names))
    weight = None if kept.weight is None else np.concatenate([kept.weight, np.ones(len(item))])
    return replace(
        annotations,
        item=np.concatenate([kept.item, item]),
        annotator=np.concatenate([kept.annotator, who]),
        label=np.concatenate([kept.label, label]),
        annotators=as_names(names, None, "annotators"),
        weight=weight,
    )


def require_members(layout: Layout, n_classes: int) -> int:
    """The number of sets in the tensor `MEMBERS`, which must fit the classes."""
    entry = layout.get(MEMBERS)
    if entry is None or entry.dtype != "BOOL" or entry.shape[1:] != [n_classes] or len(entry.shape) != 2:
        raise ValueError("the tensor of the sets of classes is absent or does not fit the classes.")
    return entry.shape[0]


def restore_sets(
    arrays: dict[str, NDArray[Any]], items: Any, annotators: NDArray[Any], classes: NDArray[Any]
) -> tuple[LabelSets, Gold, LearntItems]:
    """Label sets and true sets of saved arrays, which are taken out of `arrays`."""
    members = arrays.pop(MEMBERS)
    learnt = LearntItems.from_arrays(arrays, items, annotators, np.arange(len(members)))
    if learnt is None:
        raise ValueError("the labels are absent.")
    return LabelSets(learnt.annotations, members, classes), learnt.gold, learnt
