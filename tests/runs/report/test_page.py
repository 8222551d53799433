"""Pages: escaped by construction, self-contained, accessible."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from helpers.markup import Balance

from annotmix.runs.report.demo import Example, Findings, demo_page
from annotmix.runs.report.markup import Markup, element, join
from annotmix.runs.report.page import page, section, table

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def html():
    matrix = np.eye(2)
    return demo_page(
        Findings(
            curves=pd.DataFrame(
                {"mv-base": [0.7, 0.6], "annot-mix": [0.7, 0.9], "true-base": [0.8, 0.95]}, index=[1, 2]
            ),
            annotators=pd.DataFrame(
                {"labels": [3, 1], "estimated": [0.9, 0.2], "real": [1.0, 0.0]}, index=[EVIL, '"b"&']
            ),
            consensus=pd.DataFrame({"truth": [0, 1], "majority": [1, 1], "consensus": [0, 1]}),
            confusions={EVIL: (EVIL, matrix, matrix)},
            examples=[Example(np.ones((2, 2)), {EVIL: EVIL}, EVIL, EVIL)],
            classes=[EVIL, "b"],
            n_test=10,
            seed=0,
        )
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
    assert html.count("<svg") == html.count('role="img"') + html.count('aria-hidden="true"') + 1  # nested


def test_page_says_what_was_found(html):
    assert "From labels that are 75% right to a classifier that is 90% right" in html
    assert "right for 50.0% of the training images" in html
    assert "It repaired 1 labels of the majority and spoilt 0." in html
    assert "best after epoch 1, with 70.0%, and ends with 60.0%" in html
    assert "Such scores describe labels, not people." in html


def test_tables_name_their_rows_and_columns():
    html = table("Things", ["Name", "Size"], [["a", 1], [EVIL, 2]])
    assert html.count('scope="col"') == 2
    assert html.count('scope="row"') == 2
    assert "<img" not in html


def test_any_page_can_be_made():
    html = page(EVIL, element("header", EVIL), section(EVIL, EVIL))
    assert "<img" not in html
    assert html.startswith("<!doctype html>")
    Balance(html)
