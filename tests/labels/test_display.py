"""How labels and results show themselves."""

import numpy as np
import pandas as pd
import pytest

import annotmix
from annotmix import Annotations

NASTY = "<script>alert(1)</script>"


@pytest.fixture
def labels():
    Z = np.where(np.random.default_rng(0).random((12, 3)) < 0.8, "cat", NASTY)
    return Annotations.from_matrix(
        Z, items=[f"{NASTY} {n}" for n in range(12)], annotators=[NASTY, "bo", "cem"]
    )


def test_one_line_in_a_terminal(labels):
    assert repr(labels) == "Annotations(12 items, 3 annotators, 2 classes, 36 labels)"
    assert repr(annotmix.dawid_skene(labels)).startswith(
        "DawidSkene(12 labelled items, 3 annotators, 2 classes; converged after "
    )
    shown = repr(annotmix.posterior(labels))
    assert shown.startswith("Posterior(12 items, 3 annotators, 2 classes, 36 labels, of which ")
    assert shown.endswith("probably wrong; from labels alone)")


def test_a_notebook_shows_a_few_rows_and_escapes_names(labels):
    views = {
        "labels": labels._repr_html_(),
        "items": annotmix.dawid_skene(labels)._repr_html_(),
        "annotators": annotmix.posterior(labels)._repr_html_(),
    }
    for view in views.values():
        assert "<script" not in view
        assert "&lt;script&gt;" in view
        assert len(view) < 5000
    assert "… 31 more labels" in views["labels"]
    assert "… 7 more items" in views["items"]
    assert "more annotators" not in views["annotators"]
    assert views["labels"].count("<tr") == 6


def test_without_labels_there_is_something_to_show():
    nothing = Annotations.from_matrix(np.full((2, 2), -1), classes=["a", "b"])
    assert "0 labels" in nothing._repr_html_()
    assert "<table" in annotmix.dawid_skene(nothing)._repr_html_()
    assert "<table" in annotmix.posterior(nothing)._repr_html_()


@pytest.mark.parametrize("aggregated", [annotmix.majority_vote, annotmix.dawid_skene, annotmix.aggregate])
def test_methods_without_features_take_labels_in_every_form(aggregated):
    Z = pd.DataFrame(
        [["cat", "cat", "dog"], ["dog", "dog", None]], index=["x", "y"], columns=["ada", "bo", "cem"]
    )
    a = Annotations.from_matrix(Z)
    for labels in (a, Z, a.to_long(), Z.to_numpy()):
        found = aggregated(labels)
        found = getattr(found, "labels", found)
        assert found.tolist() == ["cat", "dog"]
    assert aggregated(a.to_long()) is not None
    with pytest.raises(ValueError, match="X comes first"):
        aggregated(np.random.default_rng(0).random((20, 3)))
