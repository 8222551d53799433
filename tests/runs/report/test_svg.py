"""Charts: well-formed, escaped, and at the right places."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from annotmix.runs.report import svg

EVIL = "<img src=x onerror=alert(1)>"
CHARTS = {
    "lines": svg.line_chart({EVIL: [0.5, 0.9], "b": [0.2, 0.8]}, EVIL, "epoch"),
    "one step": svg.line_chart({"a": [0.5]}, "a", "epoch"),
    "dumbbells": svg.dumbbells([EVIL, 7], [0.2, 0.9], [0.1, 1.0], EVIL, chance=0.1),
    "loss": svg.line_chart({EVIL: [2.5, np.nan, 0.012]}, EVIL, "epoch", form="#.3g"),
    "constant loss": svg.line_chart({"a": [0.0, 0.0]}, "a", "epoch", form="#.3g"),
    "reliability": svg.reliability([0.5, 0.9], [0.4, 1.0], [3, 0], EVIL),
    "intervals": svg.dumbbells([EVIL], [0.2], [0.1], EVIL, bars=[(0.1, 0.3)]),
}


@pytest.mark.parametrize("name", CHARTS)
def test_charts_are_well_formed_and_described(name):
    root = ElementTree.fromstring(CHARTS[name])
    assert root.tag == "svg"
    assert root.get("role") == "img"
    assert root.get("aria-label")
    assert not root.findall(".//img")
    assert "<img" not in CHARTS[name]


@pytest.mark.parametrize("name", CHARTS)
def test_nothing_is_nan(name):
    assert "nan" not in CHARTS[name]


def test_lines_end_where_their_values_say():
    root = ElementTree.fromstring(svg.line_chart({"a": [0.8, 1.0], "b": [1.0, 0.9]}, "two", "epoch"))
    ends = [line.get("points").split()[-1] for line in root.iter("polyline")]
    assert ends[0] == "1000,0.0"
    assert ends[1] == "1000,500.0"  # the axis runs from 80% to 100%
    assert [text.text for text in root.iter("text") if "name" in text.get("class")] == ["a 100.0%", "b 90.0%"]


def test_an_axis_has_round_numbers_around_all_values():
    root = ElementTree.fromstring(svg.line_chart({"a": [2.31, 0.77, np.nan]}, "one", "epoch", form="#.3g"))
    texts = [text.text for text in root.iter("text")]
    assert texts[:5] == ["0.5", "1", "1.5", "2", "2.5"]
    assert "a 0.770" in texts
    points = root.find(".//polyline").get("points").split()
    assert points == ["0,95.0", "500,865.0"]


def test_the_steps_of_long_training_do_not_overlap():
    root = ElementTree.fromstring(svg.line_chart({"a": [0.9] * 300}, "one", "epoch"))
    steps = [int(text.text) for text in root.iter("text") if text.text.isdigit()]
    assert steps == [1, 50, 100, 150, 200, 250, 300]


def test_reliability_puts_bins_at_their_place():
    root = ElementTree.fromstring(svg.reliability([0.5, 0.9], [1.0, 0.4], [3, 0], "bins"))
    assert [(dot.get("cx"), dot.get("cy")) for dot in root.iter("circle")] == [("194", "10")]


def test_names_at_the_ends_do_not_overlap():
    root = ElementTree.fromstring(svg.line_chart({c: [0.5, 0.9] for c in "abcd"}, "four", "epoch"))
    places = sorted(float(t.get("y")) for t in root.iter("text") if "name" in t.get("class"))
    assert np.all(np.diff(places) >= 20)


def test_dots_stand_on_the_scale():
    root = ElementTree.fromstring(svg.dumbbells(["a"], [0.0], [1.0], "one"))
    places = {dot.get("class"): dot.get("cx") for dot in root.iter("circle")}
    assert places == {"ring": "97.00%", "full": "36.00%"}


def test_long_names_are_cut_and_whole_in_the_tooltip():
    name = "a" * 50
    root = ElementTree.fromstring(svg.dumbbells([name], [0.5], [0.5], "one"))
    assert name in root.find(".//title").text
    assert max(len(text.text) for text in root.iter("text")) <= svg.NAME_LENGTH


def test_bars_are_the_dots_or_an_interval():
    for bars, expected in ((None, ("36.00%", "97.00%")), ([(0.5, 1.0)], ("66.50%", "97.00%"))):
        root = ElementTree.fromstring(svg.dumbbells(["a"], [0.0], [1.0], "one", bars=bars))
        (bar,) = (line for line in root.iter("line") if line.get("class") == "bar")
        assert (bar.get("x1"), bar.get("x2")) == expected
