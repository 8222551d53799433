"""What a person sees of an item."""

from __future__ import annotations

import io

import pandas as pd
from PIL import Image

from annotmix.reading import Items
from annotmix.runs.previews import LONGEST, THUMBNAIL, make_previews


def previews(kind, contents):
    names = list(contents)
    items = pd.DataFrame({"disagreement": [0.0] * len(names), "probability": 1.0}, index=names)
    listed = pd.DataFrame({"item": names[:1]})
    return make_previews(Items(kind, names, list(contents.values()), [], []), items, listed, listed)


def test_thumbnails_are_small_jpegs(tmp_path):
    Image.new("RGBA", (300, 200), (10, 20, 30, 40)).save(tmp_path / "a.png")
    (tmp_path / "gone.png").write_bytes(b"no image any more")
    paths = {"a": tmp_path / "a.png", "gone": tmp_path / "gone.png"}
    made = previews("images", paths)
    with Image.open(io.BytesIO(made["a"].image)) as image:
        assert image.format == "JPEG"
        assert image.size == (THUMBNAIL, round(THUMBNAIL * 2 / 3))  # whole, in its own shape
    assert (made["a"].text, made["gone"].image) == ("a.png", None)


def test_texts_are_shortened():
    made = previews("text", {"a": "x" * 1000, "b": "short"})  # b stands in no list
    assert len(made["a"].text) == LONGEST
    assert made["a"].text.endswith("…")
    assert made["b"].text == "short"
