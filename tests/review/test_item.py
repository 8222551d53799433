"""What the page shows of an item."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import some_findings
from helpers.review_run import write_run
from hypothesis import given
from hypothesis import strategies as st

from annotmix.estimators.preparation import fit_preparation
from annotmix.reading import read_texts
from annotmix.review.item import Features, item_view, why
from annotmix.review.session import Session
from annotmix.runs.findings import Preview
from annotmix.runs.folder import RunFolder


def votes(*pairs):
    return [{"label": label, "reliability": rate, "weight": None} for label, rate in pairs]


@pytest.mark.parametrize(
    ("label", "classifier", "said", "counts", "expected"),
    [
        ("a", "a", [], True, "Nobody labelled this item; a is the opinion of the classifier alone."),
        ("a", "a", [("a", 0.9)], True, "The only label says a, and the classifier says a too."),
        ("a", "b", [("a", 0.9)] * 3, True, "All 3 labels say a, although the classifier says b."),
        (
            "a",
            "a",
            [("a", 0.9), ("a", 0.9), ("b", 0.9)],
            True,
            "2 of 3 labels say a, more than any other class; the classifier says a too.",
        ),
        (
            "a",
            "a",
            [("a", 0.9), ("b", 0.3), ("b", 0.5)],
            True,
            "Only 1 of 3 labels says a, but the classifier says a too, and annotators who said a give it to "
            "such items more reliably (90% right) than those who said b (40%).",
        ),
        (
            "a",
            "b",
            [("a", 0.9), ("b", 0.4)],
            True,
            "As many labels say a as b, but annotators who said a give it to such items more reliably "
            "(90% right) than those who said b (40%).",
        ),
        ("a", "a", [("b", 0.4)], True, "No label says a, but the classifier does."),
        (
            "a",
            "b",
            [("b", 0.4), ("c", None)],
            False,
            "No label says a, but all labels and the known confusions of their annotators make it most "
            "probable.",
        ),
    ],
)
def test_why(label, classifier, said, counts, expected):
    assert why(label, classifier, votes(*said), False, counts) == expected


def test_why_a_known_class():
    assert "known before (--gold): a" in why("a", "b", votes(("b", 0.9)), True, True)


@given(
    st.text(max_size=5), st.text(max_size=5),
    st.lists(st.tuples(st.text(max_size=2), st.none() | st.floats(0, 1)), max_size=6), st.booleans(),
)  # fmt: skip
def test_there_is_always_a_sentence(label, classifier, said, counts):
    assert why(label, classifier, votes(*said), False, counts).endswith(".")


def test_features_have_their_own_values():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(5, 2, 40), "n": rng.integers(9, size=40)})
    table["colour"] = np.array(["red", "blue"])[rng.integers(2, size=40)]
    table.loc[3, "colour"] = None
    columns, _ = fit_preparation(table, indicate=True)
    features = Features(columns, columns.transform(table))
    for row in range(40):
        (_, size), (_, n), (_, colour) = features.of_item(row)
        assert size == pytest.approx(table["size"][row], rel=1e-4)
        assert n == table["n"][row]
        assert colour == (None if row == 3 else table["colour"][row])


def test_an_item_has_everything(session):
    found, row = some_findings.small(), 8
    own = found.labels[found.labels["item"] == "item 8"].sort_values("probability", ascending=False)
    shown = item_view(session.index, session.board, row, session.shown)
    assert shown["name"] == "item 8"
    assert shown["label"] == found.items["label"].iloc[8]
    assert shown["text"] == found.previews["item 8"].text
    assert [vote["annotator"] for vote in shown["votes"]] == own["annotator"].tolist()
    at = found.annotators.index.get_loc(own["annotator"].iloc[0])
    c = list(found.classes).index(shown["label"])
    assert shown["votes"][0]["reliability"] == pytest.approx(found.confusion.whole[at, c, c])
    assert shown["votes"][0]["probability"] == pytest.approx(own["probability"].iloc[0])


def test_whole_texts_come_from_the_file_of_the_run(tmp_path):
    long = {f"item {n}": f"text {n} " * 100 for n in range(200)}
    path = tmp_path / "texts.csv"
    pd.DataFrame({"id": list(long), "text": list(long.values())}).to_csv(path, index=False)
    found = some_findings.small()
    previews = {name: Preview(text[:399] + "…") for name, text in long.items()}
    for n, digest in enumerate([read_texts(path).sources[0].sha256, "another"]):
        source = {"role": "texts", "name": "texts.csv", "sha256": digest, "rows": 200}
        findings = replace(found, previews=previews, inputs=[source])
        session = Session(RunFolder(write_run(tmp_path / f"run{n}", findings, text=str(path))))
        shown = session.item({"item": "3", "reviewer": "ann"})
        expected = (previews["item 3"].text, True) if n else (long["item 3"].strip(), False)
        assert (shown["text"].strip(), shown["cut"]) == expected
        session.close()
