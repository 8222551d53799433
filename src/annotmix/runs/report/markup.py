"""HTML and SVG elements as text, escaped by construction.

Whatever goes into an element is escaped, unless it is an element itself. So no name or text from the outside
can become markup.
"""

from __future__ import annotations

import html
from collections.abc import Iterable


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """An element with its children and attributes.

    Parameters
    ----------
    tag : str
    *children : object
        `Markup` is taken as it is, everything else as text.
    **attributes : object
        `class_` is written class, `stroke_width` stroke-width; numbers get at most two decimals.
    """
    pairs = (f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"' for key, value in attributes.items())
    inner = "".join(child if isinstance(child, Markup) else _text(child) for child in children)
    return Markup(f"<{tag}{''.join(pairs)}>{inner}</{tag}>")


def join(parts: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("\n".join(parts))


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return html.escape(str(value))
