"""One number of wrong labels, best and worst annotators, and what the labels found rest on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.some_findings import bare, small

from annotmix.runs.conclusions import (
    by_reliability,
    counts_of,
    extremes,
    probably_wrong,
    rests_on,
    warnings_of,
)
from annotmix.runs.inputs import read_inputs
from annotmix.runs.report.opening import opening
from annotmix.runs.report.run import run_page
from annotmix.runs.request import Request
from annotmix.runs.storage import write_findings
from annotmix.runs.summary import summary, summary_lines

WEIGHTS = {
    "classifier": 1.5, "correlation": 0.2, "shares": 1.0,
    "likelihood without": -0.7, "likelihood with": -0.5, "helps": True,
}  # fmt: skip


def with_weights(**changes):
    return replace(small(), settings={"posterior": {**WEIGHTS, **changes}})


def test_report_summary_and_labels_agree_about_wrong_labels(tmp_path):
    found = small()
    write_findings(tmp_path, found)
    written = pd.read_csv(tmp_path / "labels.csv")
    wrong, n = int((written["probability"] < 0.5).sum()), len(written)
    assert 0 < wrong < n
    assert probably_wrong(found.labels) == (wrong, n)
    figures = summary(found, tmp_path)
    assert (figures["labels more likely wrong than right"], figures["labels"]) == (wrong, n)
    assert f"{wrong} of {n} labels" in summary_lines(found, tmp_path)[1]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert f"{wrong} of {n} labels are probably wrong" in page
    assert f"{wrong} of {n} are more likely wrong than right" in page


def test_labelled_and_unlabelled_items_are_counted_apart(tmp_path):
    found = small()
    counts, labelled = counts_of(found), int((found.items["n_labels"] > 0).sum())
    assert (counts.annotators, counts.items, counts.labelled) == (30, 200, labelled)
    assert counts.unlabelled == 200 - labelled > 0
    assert counts.labels == found.items["n_labels"].sum()
    assert counts.per_item == found.items["n_labels"].sum() / labelled
    figures = summary(found, tmp_path)
    assert (figures["items"], figures["labelled items"]) == (200, labelled)
    page = opening(found)
    assert f"to {labelled} items, {counts.per_item:.1f} per item. {200 - labelled} more items" in page
    assert f"of {labelled} labelled items the label is 95% sure" in page


def test_weights_do_not_change_the_number_of_hard_labels():
    labels = small().labels
    weighted = labels.assign(weight=np.random.default_rng(0).random(len(labels)))
    assert probably_wrong(weighted) == probably_wrong(labels)


def test_a_soft_label_is_one_label():
    labels = pd.DataFrame(
        [
            ("x", "ann", "cat", 0.7, 0.9), ("x", "ann", "dog", 0.3, 0.1),  # right with 0.66
            ("x", "bob", "cat", 0.2, 0.9), ("x", "bob", "dog", 0.8, 0.1),  # right with 0.26
        ],
        columns=["item", "annotator", "label", "weight", "probability"],
    )  # fmt: skip
    assert probably_wrong(labels) == (1, 2)


def test_the_command_line_counts_a_soft_label_once(tmp_path):
    labels, items = tmp_path / "labels.csv", tmp_path / "items.csv"
    labels.write_text("item,annotator,label,weight\nx,ann,cat,0.7\nx,ann,dog,0.3\ny,ann,cat,1\ny,bob,dog,1\n")
    items.write_text("item,size\nx,1\ny,2\nz,3\n")
    inputs = read_inputs(Request((labels,), tmp_path / "run", features=items, weight="weight"), False)
    assert (inputs.understood["labels"], inputs.understood["items"]) == (3, 2)
    assert inputs.understood["labels per item"][0] == 1.5


def crowd(**intervals):
    low, high = zip(*intervals.values(), strict=True)
    return pd.DataFrame({"low": low, "high": high}, index=pd.Index(list(intervals), name="annotator"))


def test_a_handful_of_labels_makes_nobody_best_or_worst():
    people = crowd(few=(0.4, 1.0), good=(0.8, 0.9), fair=(0.5, 0.6), unlucky=(0.0, 0.7), bad=(0.2, 0.3))
    best, worst = extremes(people)
    assert (best.name, worst.name) == ("good", "bad")
    assert by_reliability(people).index.tolist() == ["good", "fair", "few", "bad", "unlucky"]


@pytest.mark.parametrize(
    "people",
    [
        crowd(a=(0.5, 0.6)),
        crowd(middle=(0.5, 0.6), few=(0.1, 0.95)),  # one interval inside the other
        crowd(a=(0.5, 0.8), b=(0.4, 0.7)),
        crowd(a=(np.nan, np.nan)),
    ],
)
def test_where_intervals_meet_nobody_is_named(people):
    assert extremes(people) is None


def test_the_first_screen_and_the_summary_name_the_same_people(tmp_path):
    found = small()
    annotators = found.annotators.copy()
    annotators.loc["annotator 4", ["low", "high"]] = 0.93, 0.97
    annotators.loc["annotator 7", ["low", "high"]] = 0.01, 0.05
    found = replace(found, annotators=annotators)
    line = next(line for line in summary_lines(found, tmp_path) if "reliable" in line)
    assert "'annotator 4' (93% to 97% of labels right)" in line
    assert "'annotator 7' (1% to 5% of labels right)" in line
    page = opening(found)
    assert "Most reliable is <bdi>annotator 4</bdi> (93% to 97%)" in page
    assert "least <bdi>annotator 7</bdi> (1% to 5%)" in page
    alike = replace(found, annotators=annotators.assign(low=0.1, high=0.9))
    assert "Most reliable" not in opening(alike)
    assert any("do not suffice" in line for line in summary_lines(alike, tmp_path))


def test_the_basis_of_the_labels_is_said_in_a_sentence():
    assert rests_on(small()) == ""
    both = rests_on(with_weights())
    assert "rest on labels and classifier together, with a weight of 1.5 for the classifier" in both
    assert "three labels of one item count as 2.1 independent ones" in both
    assert "independent" not in rests_on(with_weights(correlation=0.0))
    useless = with_weights(classifier=0.0, helps=False)
    assert "rest on labels alone, as the classifier does not predict" in rests_on(useless)
    absent = with_weights(classifier=0.0, helps=False, **{"likelihood with": -0.7})
    assert "rest on labels alone, as no network that has not seen an item" in rests_on(absent)
    assert rests_on(useless) in opening(useless)
    assert "what the item looks like" not in opening(useless)
    assert "what the item looks like" in opening(small())


def test_a_note_that_features_do_not_help_is_on_the_first_screen():
    note = "The features do not help: labels are judged by the labels alone."
    found = replace(small(), notes=["61 columns were standardised.", note])
    assert warnings_of(found) == [note]
    page = run_page(found)
    assert page.index(note) < page.index("Which labels are right?")
    assert any(note in line for line in summary_lines(found, Path("run")))


def test_little_is_enough_for_a_summary():
    lines = summary_lines(bare(), Path("run"))
    assert "0 of 0 labels" in lines[1]
    assert not any("nan" in line for line in lines)
