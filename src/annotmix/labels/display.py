"""How labels and results show themselves: one line in a terminal, a short table in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from annotmix._common.words import count

if TYPE_CHECKING:
    from annotmix.labels.annotations import Annotations

#: Rows of a table in a notebook.
ROWS = 5


def counts(annotations: Annotations) -> str:
    """The numbers of items, annotators, classes and labels."""
    a = annotations
    weighted = "" if a.weight is None else "weighted "
    parts = [count(a.n_items, "item"), count(a.n_annotators, "annotator")]
    parts += [count(a.n_classes, "class", "classes"), count(len(a), f"{weighted}label")]
    return ", ".join(parts)


def annotations_html(annotations: Annotations) -> str:
    """Counts and the first labels."""
    first = annotations.keep(slice(0, ROWS)).to_long()
    return html("Annotations", counts(annotations), (first, len(annotations), "labels"))


def html(title: str, summary: str, *tables: tuple[pd.DataFrame, int, str]) -> str:
    """A notebook's view of a result: a title, a sentence and the first rows of tables.

    Parameters
    ----------
    title, summary : str
        Plain text.
    *tables : (DataFrame, int, str)
        A table, which is cut to its first rows; the number of rows that there are; what one of them is.
    """
    parts = [f"<p><b>{escape(title)}</b>: {escape(summary)}</p>"]
    for table, n, what in tables:
        parts.append(table.head(ROWS).to_html(border=0, max_cols=10, float_format="{:.3f}".format))
        if n > ROWS:
            parts.append(f"<p>… {n - ROWS} more {escape(what)}</p>")
    return "<div>" + "\n".join(parts) + "</div>"
