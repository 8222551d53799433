"""The section of the report about annotators who err together."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from helpers.markup import words
from helpers.some_findings import HOSTILE, small

from annotmix.runs.report.run import run_page
from annotmix.runs.result_columns import make_table
from annotmix.runs.storage import load_findings, save_findings


def with_groups(counts_less, decides, names="model 1, model 2"):
    groups = make_table(
        "groups",
        {
            "annotators": [names, "model 3, model 4"],
            "n_annotators": [2, 2],
            "n_labels": [2.0, 1.5],
            "votes": [1.1, 1.4],
            "decides": [decides, 0.0],
            "counts_less": [counts_less, counts_less],
        },
    )
    settings = {"posterior": {"classifier": 0.0, "pairs judged": 66, "votes": 4.25}}
    return replace(small(), groups=groups, settings=settings)


def test_groups_are_shown_with_what_they_are_worth():
    page = run_page(with_groups(True, 0.3))
    assert re.search(r'<div class="scroll"><table><caption>Groups of annotators', page)
    text = words(page)
    for part in (
        "Annotators who err together",
        "2 groups of annotators",
        "4.2 independent votes",
        "30.0%",
        "less",
    ):
        assert part in text
    assert "decide 30% of the items" not in text


def test_a_group_that_decides_is_a_warning():
    text = words(run_page(with_groups(False, 0.3)))
    assert "model 1, model 2 decide 30% of the items" in text


def test_nobody_errs_together():
    found = with_groups(False, 0.0)
    text = words(run_page(replace(found, groups=found.groups.iloc[:0])))
    assert "Of 66 pairs of annotators with enough common items, none" in text
    assert "err together" not in words(run_page(small()))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name):
    page = run_page(with_groups(False, 0.3, name))
    assert "<script>alert" not in page
    assert "<img src=x" not in page


def test_groups_are_saved_and_read_again(tmp_path):
    found = with_groups(True, 0.3)
    save_findings(tmp_path / "findings", found)
    again = load_findings(tmp_path / "findings")
    assert again.groups.equals(found.groups)
    save_findings(tmp_path / "findings", small())
    assert load_findings(tmp_path / "findings").groups is None
