"""Pages: escaped by construction, self-contained, accessible."""

from __future__ import annotations

import re

import pytest
from helpers.markup import Balance

from annotmix.runs.report.markup import Markup, element, join
from annotmix.runs.report.page import figure, page, section, table
from annotmix.runs.report.svg import dumbbells

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def html():
    chart = figure(EVIL, dumbbells([EVIL, "b"], [0.9, 0.2], [1.0, 0.0], EVIL))
    return page(
        EVIL,
        element("header", element("h1", EVIL)),
        section(EVIL, EVIL, chart, table(EVIL, [EVIL], [[EVIL]])),
    )


def test_text_is_escaped_and_elements_are_not():
    assert element("b", EVIL, element("i", "x & y")) == (
        "<b>&lt;img src=x onerror=alert(1)&gt;<i>x &amp; y</i></b>"
    )
    assert element("b", title='"><script>') == '<b title="&quot;&gt;&lt;script&gt;"></b>'
    assert element("a", class_="c", fill_opacity=0.5, x=2.0) == '<a class="c" fill-opacity="0.5" x="2"></a>'
    assert isinstance(join([element("b"), element("i")]), Markup)


def test_names_from_outside_never_become_markup(html):
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    found = Balance(html)
    assert not {"img", "script"} & set(found.tags)
    assert not [name for name, _ in found.attributes if name.startswith("on")]


def test_page_is_self_contained(html):
    assert not re.search(r"https?:|//|@import|url\(|<link|<script", html)
    assert not {"src", "href"} & {name for name, _ in Balance(html).attributes}


def test_page_is_readable_by_all(html):
    for part in ('<html lang="en">', 'name="viewport"', "prefers-color-scheme: dark", "@media print"):
        assert part in html
    tags = Balance(html).tags
    assert tags.count("h1") == 1
    assert {"header", "section", "figure", "figcaption", "caption", "footer"} <= set(tags)
    assert html.count("<svg") == html.count('role="img"')
    assert html.startswith("<!doctype html>")
    assert "Such scores describe labels, not people." in html


def test_tables_name_their_rows_and_columns():
    html = table("Things", ["Name", "Size"], [["a", 1], [EVIL, 2]])
    assert html.count('scope="col"') == 2
    assert html.count('scope="row"') == 2
    assert "<img" not in html
