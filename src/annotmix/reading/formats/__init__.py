"""The formats of label files: one module per format, and one line in `FORMATS`.

A format's module has two functions:

- `recognises(file, columns)` says whether an `InputFile` looks like this format;
- `read(files, columns)` returns the labels in files of this format as a list of `LabelRows`.

Modules are imported when they are needed: the command line shows names and titles without loading pandas.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from annotmix.reading.input_files import InputFile


@dataclass(frozen=True)
class Columns:
    """Names of columns or fields; None stands for a column that is found by its usual name.

    Parameters
    ----------
    item, annotator, label : str, optional
        Names of columns. In exports `item` names the field that identifies an item, and `label` the question.
    missing : tuple of str
        Labels that stand for no label, besides the usual ones.
    weight : str, optional
        Column of the labels' weights, in a table with one row per label.
    annotators : tuple of str
        Columns of the annotators, in a table with one column per annotator; by default they are recognised.
        Or one file with a table of annotators, see `annotmix.reading.annotator_table`.
    exclude : tuple of str
        Columns of such a table that are no annotators.
    text : str, optional
        Column of the items' texts, in a table.
    fold_case : bool
        Make one class of labels that differ only in upper and lower case or in spaces.
    rename : mapping of label to class
        Other names for labels; "" makes one a missing label.
    several : bool
        Read answers that may name several classes: every label is then a tuple of classes.
    delimiter : str, optional
        Separates classes in a cell; by default it is recognised.
    no_class : tuple of str
        Words for an answer without a class, besides an empty list and "(none)".
    known : tuple of str
        The annotators in a file that `annotators` named; columns of these names are annotators, no others.
    """

    item: str | None = None
    annotator: str | None = None
    label: str | None = None
    missing: tuple[str, ...] = ()
    weight: str | None = None
    annotators: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    text: str | None = None
    fold_case: bool = False
    rename: Mapping[str, str] = field(default_factory=dict)
    several: bool = False
    delimiter: str | None = None
    no_class: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Labels as a format's module returns them; incomplete and repeated ones are left out later.

    Parameters
    ----------
    item, annotator, label : array of str or None, shape (n,)
        With `Columns.several`, a label is a tuple of classes, which may be empty, or None.
    notes : list of str
        Notes about what was read, changed and left out.
    texts : mapping of item to text
        Where the file carries them.
    weight : array of float, shape (n,), optional
        nan where a row has none.
    time : array of float, shape (n,), optional
        When a label was given, in seconds since 1970 (UTC); nan where it is unknown.
    used : tuple of str
        Columns of a table that hold annotators, labels, weights and times, and so are no features.
    unparsed : array of bool, shape (n,), optional
        Whether a row is an answer that could not be parsed; by default every row without a label is.
    """

    item: NDArray[Any]
    annotator: NDArray[Any]
    label: NDArray[Any]
    notes: list[str]
    texts: Mapping[str, str] = field(default_factory=dict)
    weight: NDArray[np.float64] | None = None
    time: NDArray[np.float64] | None = None
    used: tuple[str, ...] = ()
    unparsed: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Format:
    """A format of label files.

    Parameters
    ----------
    name : str
        The value of `--format`.
    title : str
        A file of this format in words, for help and messages: "an export of Prodigy".
    module : str
        The module with the functions `recognises` and `read`.
    """

    name: str
    title: str
    module: str

    def recognises(self, file: InputFile, columns: Columns) -> bool:
        """Whether a file looks like this format."""
        return bool(importlib.import_module(self.module).recognises(file, columns))

    def read(self, files: Sequence[InputFile], columns: Columns) -> list[LabelRows]:
        """The labels in files of this format."""
        return list(importlib.import_module(self.module).read(files, columns))


#: The formats by name. The last one that recognises a file is used; "long" recognises every file.
FORMATS = {
    entry.name: entry
    for entry in (
        Format("long", "a table with one row per label", f"{__name__}.long"),
        Format("wide", "a table with one row per item and one column per annotator", f"{__name__}.wide"),
        Format("doccano", "an export of doccano, one file per annotator", f"{__name__}.doccano"),
        Format(
            "lists", "a table with one row per item and lists of annotators and labels", f"{__name__}.lists"
        ),
        Format("argilla", "an export of Argilla", f"{__name__}.argilla"),
        Format("label-studio", "an export of Label Studio", f"{__name__}.label_studio"),
        Format("prodigy", "an export of Prodigy", f"{__name__}.prodigy"),
    )
}
