"""One self-contained HTML file: no request, light and dark, screen and paper."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import annotmix
from annotmix.runs.report.markup import Markup, element, join

STYLES = ("style/page.css", "style/tables.css", "style/details.css", "style/paper.css")
#: Data with more characters are compressed.
PLAIN = 1_000_000


def page(
    title: str,
    opening: Markup,
    *sections: Markup,
    styles: Sequence[str] = STYLES,
    scripts: Sequence[str] = (),
    data: Any = None,
) -> str:
    """A whole HTML document.

    Its security policy allows the style and the script that are in it, by their checksums, and nothing else:
    no request, and no code that came in with the data.

    Parameters
    ----------
    title : str
    opening : Markup
        The part before the main part.
    *sections : Markup
    styles, scripts : sequences of str
        Files of this package to put into the page; the scripts become one module.
    data : JSON, optional
        The data of the script, in the element `data`; see `embedded_data`.
    """
    style, script = source(styles), source(scripts)
    allowed = checksum(script) if scripts else "'none'"
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {checksum(style)}; script-src {allowed}"
    )
    head = [
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", title),
        element("style", style),
    ]
    reminder = element(
        "footer",
        element(
            "p",
            element("strong", "Such scores describe labels, not people."),
            " They depend on which items someone happened to get, on how many, and on the model. Use them to "
            "weigh labels and to find unclear instructions, not to judge, pay or rank the people who gave "
            "them.",
        ),
        element("p", f"Made with annotmix {annotmix.__version__}.", class_="quiet"),
    )
    parts = [opening, element("main", join(sections)), reminder]
    if data is not None:
        parts.append(embedded_data(data))
    if scripts:
        parts.append(element("script", script, type="module"))
    html = element("html", element("head", join(head)), element("body", join(parts)), lang="en")
    return f"<!doctype html>\n{html}\n"


def embedded_data(data: Any) -> Markup:
    """The element `data`: JSON, or, where this is long, JSON that is compressed with gzip, in base64."""
    text = embedded_json(data)
    if len(text) <= PLAIN:
        return element("script", text, type="application/json", id="data")
    packed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)
    return element("script", base64.b64encode(packed).decode(), type="application/gzip", id="data")


def embedded_json(data: Any) -> Markup:
    """JSON for an element `script`; no name or text in it can close the element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def section(title: str, *content: object, **attributes: object) -> Markup:
    """A section; plain text among the content becomes paragraphs."""
    parts = [part if isinstance(part, Markup) else element("p", part) for part in content]
    return element("section", element("h2", title), *parts, **attributes)


def figure(caption: object, *content: Markup) -> Markup:
    """A chart with its caption above it."""
    return element("figure", element("figcaption", caption), *content)


def key(kind: str) -> Markup:
    """The dot of a chart, for its caption."""
    dot = element("circle", cx=8, cy=8, r=5.5, class_=kind)
    return element("svg", dot, width=16, height=16, aria_hidden="true")


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]], **attributes: object
) -> Markup:
    """A table whose first column names the row."""
    head = element("tr", *(element("th", name, scope="col") for name in columns))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in rest))
        for first, *rest in rows
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", head),
        element("tbody", join(body)),
        **attributes,
    )


def scrolling_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """A table that scrolls on a narrow screen, so that the page does not."""
    return element("div", table(caption, columns, rows), class_="scroll")


def source(names: Sequence[str]) -> Markup:
    """Files of this package as one text."""
    return Markup("\n".join((files("annotmix.runs.report") / name).read_text("utf-8") for name in names))


def checksum(text: str) -> str:
    """A style or a script as a security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
