"""The data of the report's tables: findings as compact JSON.

Names stand in lists, and rows refer to them by position. Every item is in the page with all its labels, as
far as there is room, so that a search finds it. Of the other tables only the first rows go in: the files of
the run have the rest, and the page says so.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix._common.words import shorten
from annotmix.runs.confusion_matrices import ConfusionMatrices
from annotmix.runs.findings import Findings, Preview, least_sure
from annotmix.runs.result_columns import TABLES, Column

#: Rows of each table that go into the page.
MOST = {"annotators": 5000, "labels": 2000, "disputed": 500, "items": 200_000, "suggestions": 500}
#: Labels of all items in the page together.
MOST_VOTES = 1_500_000
#: Longest text of an item, longest name and longest other text, in characters; longer ones are cut.
ITEM_TEXT, NAME, TEXT = 500, 200, 160
#: Bytes of all thumbnails together.
IMAGE_BYTES = 4_500_000
#: Marks a share that is not known; others are in steps of 1/254.
UNKNOWN = 255


class ShownTable(NamedTuple):
    """The rows of a table that go into the page, and the columns that it has there."""

    columns: list[Column]
    rows: pd.DataFrame


def shown_tables(findings: Findings) -> dict[str, ShownTable]:
    """The tables of the page by name: annotators, labels, disputed items, all items, suggestions."""
    return {
        "annotators": _shown("annotators", findings.annotators.iloc[_shown_annotators(findings)]),
        "labels": _shown("labels", findings.labels.head(MOST["labels"])),
        "disputed": _shown("items", _disputed(findings.items)),
        "items": _shown("items", _items(findings.items)),
        "suggestions": _shown("suggestions", findings.suggestions.head(MOST["suggestions"])),
    }


def payload(findings: Findings, shown: Mapping[str, ShownTable]) -> dict[str, Any]:
    """Everything that the script of the report shows."""
    names = {
        "class": _Names(findings.classes),
        "annotator": _Names(shown["annotators"].rows.iloc[:, 0]),
        "item": _Names(shown["items"].rows.iloc[:, 0]),  # so an item has the position of its row
    }
    tables = {name: _table(*table, names) for name, table in shown.items()}
    listed = [tables[name]["values"]["item"] for name in ("labels", "disputed", "suggestions", "items")]
    previews = [findings.previews.get(name, Preview()) for name in names["item"].names]
    return {
        "votes": _votes(findings.labels, names),  # before the names: it adds annotators without a row
        "classes": names["class"].shown(),
        "annotators": names["annotator"].shown(),
        "items": names["item"].shown(),
        "texts": [shorten(preview.text, ITEM_TEXT) for preview in previews],
        "images": _images({at: previews[at].image for places in listed for at in places}),
        "matrices": matrices(findings.confusion.take(_shown_annotators(findings))),
        "tables": tables,
    }


def _shown(name: str, rows: pd.DataFrame) -> ShownTable:
    whole = rows if rows.index.name is None else rows.reset_index()
    columns = [c for c in TABLES[name] if c.title and (c.kind == "matrix" or c.name in whole)]
    return ShownTable(columns, whole)


def _shown_annotators(findings: Findings) -> NDArray[np.int64]:
    """Positions of the annotators with the most labels, by the lower end of their interval, best first."""
    most = np.argsort(-findings.annotators["n_labels"].to_numpy(), kind="stable")[: MOST["annotators"]]
    low = findings.annotators["low"].to_numpy(dtype=float)[np.sort(most)]
    return np.sort(most)[np.argsort(-low, kind="stable")]


def _disputed(items: pd.DataFrame) -> pd.DataFrame:
    """The items whose votes disagree, the least sure first."""
    return least_sure(items[items["disagreement"] > 0]).head(MOST["disputed"])


def _items(items: pd.DataFrame) -> pd.DataFrame:
    """All items in their order; where these are too many, the least sure ones that there is room for."""
    if len(items) <= MOST["items"] and items["n_labels"].sum() <= MOST_VOTES:
        return items
    first = least_sure(items).head(MOST["items"])
    return first[first["n_labels"].cumsum() <= MOST_VOTES]


def _votes(labels: pd.DataFrame, names: Mapping[str, _Names]) -> dict[str, list[Any]]:
    """The labels of the items in the page, by item, the most probable first.

    Item n has the entries `start[n]` to `start[n + 1]` of `annotator`, `label`, `probability` and, where
    labels have weights, `weight`.
    """
    place = pd.Index(names["item"].names).get_indexer(pd.Index(labels["item"]))
    order = np.lexsort((-labels["probability"].to_numpy(dtype=float), place))
    order = order[place[order] >= 0]
    own, per_item = labels.iloc[order], np.bincount(place[order], minlength=len(names["item"].names))
    votes = {
        "start": np.concatenate([[0], np.cumsum(per_item)]).tolist(),
        "annotator": names["annotator"].places(own["annotator"]),
        "label": names["class"].places(own["label"]),
        "probability": _numbers(own["probability"]),
    }
    return votes | ({"weight": _numbers(own["weight"])} if "weight" in own else {})


def _table(columns: list[Column], rows: pd.DataFrame, names: Mapping[str, _Names]) -> dict[str, Any]:
    values: dict[str, list[Any]] = {}
    for column in columns:
        if column.kind in ("matrix", "votes"):
            continue
        cells = rows[column.name]
        if column.kind in names:
            values[column.name] = names[column.kind].places(cells)
        elif column.kind in ("text", "rated"):
            values[column.name] = [shorten(cell, TEXT) for cell in cells]
        else:
            values[column.name] = _numbers(cells)
        values |= {name: _numbers(rows[name]) for name in column.beside}
    heads = [
        {"name": c.name, "kind": c.kind, "title": c.title, "meaning": c.meaning, "beside": c.beside,
         "details": c.details}
        for c in columns
    ]  # fmt: skip
    return {"columns": heads, "values": values, "n": len(rows)}


def matrices(confusion: ConfusionMatrices) -> dict[str, str]:
    """Confusion matrices as bytes in base64, one byte per share.

    Returns
    -------
    dict
        All matrices as `full`, (M, C, C). Where these are too many bytes: their `diagonal`, (M, C), and the
        largest entries beside it, as `cell` (position in the flat matrix, four bytes, little end first) and
        `share`, both (M, K).
    """
    if confusion.whole is not None:
        return {"full": _base64(_steps(confusion.whole))}
    return {
        "diagonal": _base64(_steps(confusion.diagonal)),
        "cell": _base64(confusion.cell.astype("<u4")),
        "share": _base64(_steps(confusion.share)),
    }


def _steps(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Shares as bytes."""
    with np.errstate(invalid="ignore"):
        steps = np.where(np.isfinite(shares), np.rint(254 * np.clip(shares, 0, 1)), UNKNOWN)
    return np.asarray(steps.astype(np.uint8))


class _Names:
    """Names in the order of their first use."""

    def __init__(self, names: Iterable[object]):
        self.names: list[Any] = list(names)
        self._place = {name: place for place, name in enumerate(self.names)}

    def places(self, names: pd.Series) -> list[int]:
        places = []
        for name in names.tolist():
            if name not in self._place:
                self._place[name] = len(self.names)
                self.names.append(name)
            places.append(self._place[name])
        return places

    def shown(self) -> list[str]:
        return [shorten(name, NAME) for name in self.names]


def _numbers(values: pd.Series) -> list[float | int | None]:
    """Numbers with four significant digits, so that a small share is not 0; None where there is none.

    A share below 1 stays below 1: nothing is shown as certain that is not.
    """
    plain = np.asarray(values, dtype=float).tolist()
    return [None if not math.isfinite(v) else int(v) if v == int(v) else _rounded(v) for v in plain]


def _rounded(value: float) -> float:
    return min(float(f"{value:.4g}"), 0.9999) if value < 1 else float(f"{value:.4g}")


def _images(thumbnails: Mapping[int, bytes | None]) -> dict[int, str]:
    """Thumbnails in base64 by the position of their item, the first ones up to a total size."""
    left, images = IMAGE_BYTES, {}
    for place, image in thumbnails.items():
        if image and len(image) <= left:
            images[place] = base64.b64encode(image).decode()
            left -= len(image)
    return images


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
