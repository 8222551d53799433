"""The page of a review: one HTML file with its style and script, in the style of the report."""

from __future__ import annotations

import re
from importlib.resources import files

from annotmix.runs.report.page import checksum, source

STYLES = ("style/page.css", "style/tables.css")
SCRIPTS = ("script/elements.js",)
OWN_SCRIPTS = ("state.js", "content.js", "deciding.js", "queue.js", "training.js", "start.js")


def review_page() -> str:
    """The whole page."""
    style = "\n".join([source(STYLES), _own("review.css")])
    script = "\n".join([source(SCRIPTS), *map(_own, OWN_SCRIPTS)])
    return _own("page.html").replace("{{style}}", style).replace("{{script}}", script)


def policy(html: str) -> str:
    """The content security policy of a page: its own style and script, pictures and data of its server."""
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', html, re.DOTALL)
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "img-src 'self' data:; connect-src 'self'; "
        f"style-src {checksum(style)}; script-src {checksum(script)}"
    )


def _own(name: str) -> str:
    return (files("annotmix.review.page") / name).read_text("utf-8")
