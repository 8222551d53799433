"""Previews of the items that are most likely to be shown in the report."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd

from annotmix._common.words import shorten
from annotmix.reading import Items
from annotmix.runs.findings import Preview

#: Items of each list (labels, disputed items, suggestions) that get a preview. Texts are small: every
#: item that the report lists gets one. Thumbnails are for the first pages.
SHOWN = {"text": 2000, "images": 150}
LONGEST = 400
THUMBNAIL = 96


def make_previews(
    items: Items, table: pd.DataFrame, labels: pd.DataFrame, suggestions: pd.DataFrame
) -> dict[str, Preview]:
    """Shortened texts, or thumbnails of images, of the items that stand first in the tables of a report.

    A table of features has none. The other parameters are `items`, `labels` and `suggestions` of `Findings`.
    """
    if items.kind == "features":
        return {}
    most, contents = SHOWN[items.kind], dict(zip(items.ids, items.X, strict=True))
    disputed = table["disagreement"].sort_values(ascending=False, kind="stable").index[:most]
    doubted = list(dict.fromkeys(labels["item"]))[:most]
    wanted = dict.fromkeys([*doubted, *disputed, *suggestions["item"].head(most)])
    if items.kind == "text":
        return {item: Preview(shorten(contents[item], LONGEST)) for item in wanted}
    return {item: Preview(contents[item].name, _thumbnail(contents[item])) for item in wanted}


def _thumbnail(path: Any) -> bytes | None:
    from annotmix.encoders.pictures import read

    try:
        image = read(path)
    except (OSError, ValueError, SyntaxError):
        return None  # it was readable before; a report without this picture is better than none
    image.thumbnail((THUMBNAIL, THUMBNAIL))
    return as_jpeg(image)


def as_jpeg(image: Any) -> bytes:
    """A picture of pillow's, small."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()
