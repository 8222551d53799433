"""What a person sees of the items that are most likely to be shown."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from annotmix.runs.findings import Preview

#: Items of each list (suspicious labels, disagreement, suggestions) that get a preview. Texts are small: all
#: that the report lists get one. Thumbnails are for the first pages.
SHOWN = {"text": 2000, "images": 150, "features": 0}
LONGEST = 400
THUMBNAIL = 96


def shown_items(kind: str, items: pd.DataFrame, labels: pd.DataFrame, suggestions: pd.DataFrame) -> list[str]:
    """Items of a kind ("features", "text", "images") that stand first in the lists of a report."""
    most = SHOWN[kind]
    suspicious = list(dict.fromkeys(labels["task"]))[:most]
    disputed = items["disagreement"].sort_values(ascending=False, kind="stable").index[:most]
    return list(dict.fromkeys([*suspicious, *disputed, *suggestions["task"].head(most)]))


def make_previews(kind: str, instances: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Preview]:
    """Shortened texts, or thumbnails of images; nothing for tables of features.

    Parameters
    ----------
    kind : {"features", "text", "images"}
    instances : mapping of item to text or path
    wanted : sequence of str
    """
    if kind == "text":
        return {item: Preview(_short(instances[item])) for item in wanted}
    if kind == "images":
        return {item: Preview(instances[item].name, _thumbnail(instances[item])) for item in wanted}
    return {}


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rstrip() + "…"


def _thumbnail(path: Any) -> bytes | None:
    from annotmix.encoders.pictures import read

    try:
        image = read(path)
    except (OSError, ValueError, SyntaxError):
        return None  # it was readable before; a report without this picture is better than none
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()
