"""The scores against loops."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotmix.labels.metrics import annot_acc, clf_acc, perf_auroc

quick = settings(deadline=None, max_examples=60, derandomize=True)


def auroc_slowly(correct: list[bool], scores: list[float]) -> float:
    """The share of (right, false) pairs in which the right label has the higher score; ties count half."""
    won = [
        1.0 if r > f else 0.5 if r == f else 0.0
        for is_right, r in zip(correct, scores, strict=True)
        for is_right_too, f in zip(correct, scores, strict=True)
        if is_right and not is_right_too
    ]
    return sum(won) / len(won) if won else math.nan


@quick
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])), max_size=30))
def test_perf_auroc_equals_all_pairs_with_ties(pairs):
    correct, scores = [c for c, _ in pairs], [s for _, s in pairs]
    assert perf_auroc(correct, scores) == pytest.approx(auroc_slowly(correct, scores), abs=1e-12, nan_ok=True)


def test_perf_auroc_without_ties():
    rng = np.random.default_rng(0)
    scores = rng.random(200)
    correct = rng.random(200) < scores
    found = perf_auroc(correct, scores)
    assert found == pytest.approx(auroc_slowly(correct.tolist(), scores.tolist()), abs=1e-12)
    assert perf_auroc(~correct, scores) == pytest.approx(1 - found, abs=1e-12)
    assert perf_auroc(correct.astype(int), scores.astype(np.float32)) == pytest.approx(found, abs=1e-3)


def test_perf_auroc_by_hand():
    assert perf_auroc([True, False], [0.9, 0.1]) == 1
    assert perf_auroc([True, False], [0.1, 0.9]) == 0
    assert perf_auroc([True, False, True], [0.5, 0.5, 0.6]) == 0.75


@pytest.mark.parametrize("correct", [[True, True], [False, False], []])
def test_one_sided_is_nan_without_a_word(correct):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(perf_auroc(correct, [0.5] * len(correct)))


@pytest.mark.parametrize(
    ("correct", "scores"),
    [([True, False], [0.5]), ([[True, False]], [[0.5, 0.1]]), ([True, False], [[0.5], [0.1]]), (True, 0.5)],
)
def test_perf_auroc_of_other_shapes(correct, scores):
    with pytest.raises(ValueError, match="correct and p_perf must be vectors of one length"):
        perf_auroc(correct, scores)


def test_perf_auroc_of_missing_estimates():
    with pytest.raises(ValueError, match="finite, found nan"):
        perf_auroc([True, False], [0.5, np.nan])


@pytest.mark.parametrize("score", [clf_acc, annot_acc])
@quick
@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_shares_equal_a_loop(score, pairs):
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    assert score(left, right) == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))


@pytest.mark.parametrize("score", [clf_acc, annot_acc])
def test_shares_of_text_and_of_tables_go_by_position(score):
    assert score(["cat", "dog"], np.array(["cat", "cow"])) == 0.5
    assert score(pd.Series(["cat", "dog"], index=[1, 0]), pd.Series(["cat", "dog"])) == 1


@pytest.mark.parametrize(("score", "names"), [(clf_acc, "y_true and y_pred"), (annot_acc, "z and z_pred")])
@pytest.mark.parametrize(
    ("left", "right"), [([1, 2], [1]), ([], []), ([[1]], [[1]]), ([1, 2], [[1], [2]]), (1, 1)]
)
def test_shares_of_other_shapes(score, names, left, right):
    with pytest.raises(ValueError, match=f"{names} must be vectors of one length, not empty"):
        score(left, right)
