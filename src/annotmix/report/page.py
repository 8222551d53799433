"""One self-contained HTML file: no script, no request, light and dark, screen and paper."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

import annotmix
from annotmix.report.markup import Markup, element, join


def page(title: str, *body: Markup) -> str:
    """A whole HTML document."""
    style = Markup((files("annotmix.report") / "style.css").read_text("utf-8"))
    head = [
        Markup('<meta charset="utf-8">'),
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
    html = element("html", element("head", join(head)), element("body", join([*body, reminder])), lang="en")
    return f"<!doctype html>\n{html}\n"


def section(title: str, *content: object) -> Markup:
    """A section; plain text among the content becomes paragraphs."""
    parts = [part if isinstance(part, Markup) else element("p", part) for part in content]
    return element("section", element("h2", title), *parts)


def figure(caption: object, *content: Markup) -> Markup:
    """A chart with its caption above it."""
    return element("figure", element("figcaption", caption), *content)


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """A table whose first column names the row."""
    head = element("tr", *(element("th", name, scope="col") for name in columns))
    body = [
        element("tr", element("th", first, scope="row"), *(element("td", cell) for cell in rest))
        for first, *rest in rows
    ]
    return element("table", element("caption", caption), element("thead", head), element("tbody", join(body)))
