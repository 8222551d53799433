"""What the tables of the report are made of: findings as small JSON.

Names stand in lists, and rows refer to them by position. Only what a person may look at goes in: the files of
the run have the rest, and the page says so.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from annotmix.runs.findings import Findings, Preview

#: Rows of each table that go into the page.
MOST = {"annotators": 5000, "labels": 2000, "disputed": 500, "suggestions": 500}
#: Longest name and longest text of an item, in characters; longer ones are cut.
NAME_LENGTH, TEXT_LENGTH = 80, 500
#: Bytes of all thumbnails together.
IMAGE_BYTES = 3_000_000
#: Bytes of all confusion matrices together; above, only the diagonals and the largest confusions are kept.
MATRIX_BYTES = 1_000_000
#: Confusions of an annotator that are kept then.
TOP_CONFUSIONS = 24
#: Marks a share that is not known; others are in steps of 1/254.
UNKNOWN = 255
_TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def payload(found: Findings) -> dict[str, Any]:
    """Everything that the script of the report shows."""
    order = shown_annotators(found)
    annotators = found.annotators.iloc[order]
    labels = found.labels.head(MOST["labels"])
    disputed = disputed_items(found)
    suggestions = found.suggestions.head(MOST["suggestions"])

    classes = _Names(found.classes)
    workers = _Names(annotators.index)
    tasks = _Names([])
    tables = {
        "annotators": {
            "worker": list(range(len(annotators))),
            **{name: _numbers(annotators[name]) for name in ("n_labels", "accuracy", "low", "high")},
            "agreement": _numbers(annotators["agreement"]),
            "confusion": [short(text, 2 * NAME_LENGTH) for text in annotators["confusion"]],
            "rate": _numbers(annotators["confusion_rate"]),
        },
        "labels": {
            "task": tasks.places(labels["task"]),
            "worker": workers.places(labels["worker"]),
            "label": classes.places(labels["label"]),
            "consensus": classes.places(labels["consensus"]),
            "probability": _numbers(labels["probability"]),
        },
        "disputed": {
            "task": tasks.places(disputed.index),
            "votes": [short(text, 2 * NAME_LENGTH) for text in disputed["votes"]],
            "label": classes.places(disputed["label"]),
            "probability": _numbers(disputed["probability"]),
            "disagreement": _numbers(disputed["disagreement"]),
        },
        "suggestions": {
            "task": tasks.places(suggestions["task"]),
            "worker": workers.places(suggestions["worker"]),
            "performance": _numbers(suggestions["performance"]),
            "gain": _numbers(suggestions["gain"]),
        },
    }
    previews = [found.previews.get(name, Preview()) for name in tasks.names]
    return {
        "classes": classes.shown(),
        "workers": workers.shown(),
        "tasks": tasks.shown(),
        "texts": [short(preview.text, TEXT_LENGTH) for preview in previews],
        "images": _images(previews),
        "matrices": matrices(found.confusion[order]),
        "tables": tables,
    }


def shown_annotators(found: Findings) -> NDArray[np.int64]:
    """Positions of the annotators with the most labels, in the order of the findings."""
    most = np.argsort(-found.annotators["n_labels"].to_numpy(), kind="stable")[: MOST["annotators"]]
    return np.sort(most)


def disputed_items(found: Findings) -> pd.DataFrame:
    """The items whose votes disagree most."""
    items = found.items[found.items["disagreement"] > 0]
    return items.sort_values("disagreement", ascending=False, kind="stable").head(MOST["disputed"])


def matrices(confusion: NDArray[np.float64]) -> dict[str, str]:
    """Confusion matrices as bytes in base64, a byte a share.

    Parameters
    ----------
    confusion : array, shape (M, C, C)

    Returns
    -------
    dict
        All matrices as `full`, (M, C, C). Where these are too many bytes: their `diagonal`, (M, C), and the
        largest entries beside it, as `cell` (position in the flat matrix, four bytes, little end first) and
        `share`, both (M, K).
    """
    M, C = confusion.shape[:2]
    with np.errstate(invalid="ignore"):
        known = np.isfinite(confusion)
        steps = np.where(known, np.rint(254 * np.clip(confusion, 0, 1)), UNKNOWN).astype(np.uint8)
    if steps.size <= MATRIX_BYTES:
        return {"full": _base64(steps)}
    flat = np.where(np.eye(C, dtype=bool) | ~known, 0, steps).reshape(M, C * C)
    k = min(TOP_CONFUSIONS, flat.shape[1] - 1)
    cell = np.argpartition(-flat.astype(np.int16), k, axis=1)[:, :k].astype("<u4")
    return {
        "diagonal": _base64(np.ascontiguousarray(np.diagonal(steps, axis1=1, axis2=2))),
        "cell": _base64(cell),
        "share": _base64(np.take_along_axis(flat, cell.astype(np.int64), axis=1)),
    }


def short(text: object, most: int = NAME_LENGTH) -> str:
    """A name or a text, cut where it is long, without marks that turn the direction of what follows."""
    whole = str(text).translate(_TURNING)
    return whole if len(whole) <= most else whole[: most - 1] + "…"


class _Names:
    """Names in the order in which they are first met."""

    def __init__(self, names: Iterable[object]):
        self.names: list[Any] = list(names)
        self._place = {name: place for place, name in enumerate(self.names)}

    def places(self, names: Iterable[object]) -> list[int]:
        places = []
        for name in names:
            if name not in self._place:
                self._place[name] = len(self.names)
                self.names.append(name)
            places.append(self._place[name])
        return places

    def shown(self) -> list[str]:
        return [short(name) for name in self.names]


def _numbers(values: pd.Series) -> list[float | int | None]:
    """Numbers with four digits behind the point; None where there is none."""
    return [None if not np.isfinite(v) else int(v) if v == int(v) else round(float(v), 4) for v in values]


def _images(previews: Sequence[Preview]) -> list[str]:
    """Thumbnails in base64, the first ones as far as there is room."""
    room, images = IMAGE_BYTES, []
    for preview in previews:
        image = preview.image or b""
        images.append(base64.b64encode(image).decode() if len(image) <= room else "")
        room -= len(image) if len(image) <= room else 0
    return images


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()
