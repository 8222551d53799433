"""Columns of a table by role: found by their names, or named by the user."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from typing import Any

from annotmix._common.words import some

#: Names that a column of each role may have, best first; compared without case and punctuation.
ALIASES = {
    "item": (
        "item", "task", "taskid", "itemid", "hitid", "instance", "instanceid", "example", "exampleid",
        "sample", "sampleid", "document", "documentid", "docid", "textid", "imageid", "image", "filename",
        "file", "question", "questionid", "key", "index", "id",
    ),
    "annotator": (
        "annotator", "worker", "workerid", "annotatorid", "rater", "raterid", "labeler", "labeller",
        "labelerid", "coder", "user", "userid", "username", "performer", "completedby", "annotatedby",
        "sessionid", "session", "expert",
    ),
    "label": (
        "label", "class", "category", "annotation", "answer", "choice", "response", "rating", "labels",
        "value",
    ),
    "weight": ("weight",),
    "truth": (
        "truth", "gold", "true", "truelabel", "goldlabel", "groundtruth", "goldstandard", "trueclass",
        "goldclass", "correctlabel", "correctanswer", "correct", "reference", "target", "gt", "y",
    ),
    "text": (
        "text", "sentence", "content", "body", "document", "question", "comment", "review", "tweet",
        "message", "utterance", "title",
    ),
    "cost": ("cost", "price", "fee", "pay", "costperlabel", "priceperlabel"),
    "time": (
        "timestamp", "createdat", "submittedat", "annotatedat", "labeledat", "labelledat", "completedat",
        "answeredat", "updatedat", "created", "submitted", "submittime", "datetime", "date", "time",
    ),
    "load": ("load", "limit", "capacity", "most", "maxlabels"),
    "kind": ("kind", "annotatorkind", "annotatortype", "type"),
    "model": ("model", "modelname", "llm"),
    "prompt": ("prompt", "promptname", "prompting"),
    "group": ("group", "family", "team"),
}  # fmt: skip
#: A true label may also stand in a column that is called like a label.
ALIASES["truth"] += ALIASES["label"]
#: Roles with the same aliases but other options: the item in a file of features, texts or clean labels, the
#: clean label, and the available annotator.
ALIASES |= {
    "id": ALIASES["item"], "valid": ALIASES["truth"], "gold": ALIASES["truth"],
    "available": ALIASES["annotator"],
}  # fmt: skip
#: Advice where the column of a role is not found in a file.
HINTS = {
    "item": "Name the column with --item NAME.",
    "annotator": "Name the column with --annotator NAME.",
    "label": "Name the column with --label NAME.",
    "weight": "Name the column with --weight NAME.",
    "truth": "Name the column with --label NAME.",
    "text": "Name the column with --text-column NAME.",
    "id": "Name the column with --item-column NAME.",
    "valid": "Call the column 'truth'.",
    "gold": "Call the column 'truth'.",
    "available": "Call the column 'annotator'.",
}
_CALLED = {
    "id": "item", "valid": "true label", "gold": "true label", "truth": "true label",
    "available": "annotator",
}  # fmt: skip


def find_column(columns: Sequence[Any], role: str, named: str | None = None, file: str | None = None) -> str:
    """The column of a role; an error lists the columns and guesses the nearest.

    Parameters
    ----------
    columns : sequence of str
    role : {"item", "annotator", "label", "weight", "truth", "text", "id", "valid", "gold", "available"}
    named : str, optional
        The name that the user chose; by default the column is found by the aliases of the role.
    file : str, optional
        Name of the file, for messages; None for a table in memory.
    """
    table = "The table" if file is None else repr(file)
    column = guess_column(columns, role) if named is None else named if named in columns else None
    if column is None:
        wanted = [named] if named is not None else list(ALIASES[role])
        near = _nearest(wanted, columns)
        hint = f" Did you mean {near!r}?" if near is not None else ""
        looked = (
            f"column {named!r}"
            if named is not None
            else f"column for the {_CALLED.get(role, role)}, such as {ALIASES[role][0]!r}"
        )
        what_to_do = f"Name it with {role}=…" if file is None else HINTS[role]
        listed = some(list(columns), 12)
        raise ValueError(f"{table} has no {looked}. It has the columns {listed}.{hint} {what_to_do}")
    if (times := list(columns).count(column)) > 1:
        raise ValueError(f"{table} has {times} columns {column!r}; keep one of them.")
    return column


def guess_column(columns: Sequence[Any], role: str) -> str | None:
    """The column whose name is the best alias of the role, None where there is none."""
    by_name: dict[str, str] = {}
    for column in columns:
        by_name.setdefault(_plain(column), str(column))
    return next((by_name[alias] for alias in ALIASES[role] if alias in by_name), None)


def called(name: Any, aliases: Collection[str]) -> bool:
    """Whether a column has one of these names, compared without case and punctuation."""
    return _plain(name) in aliases


def near_column(columns: Sequence[Any], role: str) -> str | None:
    """A column whose name is nearly an alias of the role, as after a typing error."""
    return _nearest(list(ALIASES[role][:4]), columns, cutoff=0.7)


def _nearest(wanted: list[str], columns: Sequence[Any], cutoff: float = 0.6) -> str | None:
    plain = {_plain(column): str(column) for column in columns}
    best = [
        (difflib.SequenceMatcher(None, _plain(want), near).ratio(), near)
        for want in wanted
        for near in difflib.get_close_matches(_plain(want), plain, n=1, cutoff=cutoff)
    ]
    return plain[max(best)[1]] if best else None


def _plain(name: Any) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower()[:100])
