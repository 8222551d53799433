"""Previews of the items in the report: texts of all, thumbnails of those that are most likely to be shown."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd

from annotmix._common.words import shorten
from annotmix.reading import Items
from annotmix.runs.findings import Preview, least_sure

#: Thumbnails: for the first items of each list of the report (labels, disputed items, suggestions), and for
#: further items while there are fewer than `MOST_IMAGES`.
FIRST_IMAGES, MOST_IMAGES = 150, 450
#: Longest text of an item, and of all items together, in characters; every item gets its share.
LONGEST, ALL_TEXTS = 400, 20_000_000
THUMBNAIL = 256


def make_previews(
    items: Items, table: pd.DataFrame, labels: pd.DataFrame, suggestions: pd.DataFrame
) -> dict[str, Preview]:
    """Shortened texts of all items, or thumbnails of the images that stand first in the tables of a report.

    A table of features has none. The other parameters are `items`, `labels` and `suggestions` of `Findings`.
    """
    if items.kind == "features":
        return {}
    contents = dict(zip(items.ids, items.X, strict=True))
    if items.kind == "text":
        longest = min(LONGEST, ALL_TEXTS // max(len(contents), 1))
        return {item: Preview(shorten(text, longest)) for item, text in contents.items()}
    disputed = least_sure(table[table["disagreement"] > 0]).index[:FIRST_IMAGES]
    doubted = list(dict.fromkeys(labels["item"]))[:FIRST_IMAGES]
    first = dict.fromkeys([*doubted, *disputed, *suggestions["item"].head(FIRST_IMAGES)])
    wanted = list(dict.fromkeys([*first, *contents]))[: max(len(first), MOST_IMAGES)]
    return {item: Preview(contents[item].name, _thumbnail(contents[item])) for item in wanted}


def _thumbnail(path: Any) -> bytes | None:
    from annotmix.encoders.pictures import read

    try:
        image = read(path)
    except (OSError, ValueError, SyntaxError):
        return None  # it was readable before; a report without this picture is better than none
    image.thumbnail((THUMBNAIL, THUMBNAIL))  # whole: its sides keep their ratio
    return as_jpeg(image)


def as_jpeg(image: Any) -> bytes:
    """A picture of pillow's, small."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()
