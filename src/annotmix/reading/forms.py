"""What the readers of all forms take and give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from annotmix.labels.annotations import Annotations
from annotmix.reading.files import Source
from annotmix.reading.values import Texts


@dataclass(frozen=True)
class Columns:
    """What the user said about columns or fields; None is to be found.

    Parameters
    ----------
    task, worker, label : str, optional
        Names of columns. In exports `task` names the field that identifies an item, and `label` the question.
    missing : tuple of str
        Labels that stand for no label, besides the usual ones.
    weight : str, optional
        Column of the labels' weights, in a table with a row a label.
    """

    task: str | None = None
    worker: str | None = None
    label: str | None = None
    missing: tuple[str, ...] = ()
    weight: str | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Labels as they were read, before incomplete and repeated ones are left out.

    Parameters
    ----------
    task, worker, label : array of str or None, shape (n,)
    form : str
        "long", "wide", "label-studio", "doccano" or "prodigy".
    notes : list of str
        What was understood, changed and left out.
    texts : mapping of item to text
        Where the file carries them.
    weight : array of float, shape (n,), optional
        nan where a row has none.
    """

    task: Texts
    worker: Texts
    label: Texts
    form: str
    notes: list[str]
    texts: Mapping[str, str] = field(default_factory=dict)
    weight: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labels that were read, and what was understood.

    Parameters
    ----------
    annotations : Annotations
        Items, annotators and classes are text; items and annotators in the order of the file.
    form : str
        "long", "wide", "label-studio", "doccano" or "prodigy".
    notes : list of str
        What was understood, changed and left out.
    texts : mapping of item to text
        Where the file carries them.
    sources : list of Source
    """

    annotations: Annotations
    form: str
    notes: list[str]
    texts: Mapping[str, str]
    sources: list[Source]
