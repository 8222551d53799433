"""Confidences as weights: log-probabilities, percentages and words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotmix.reading import Columns, read_labels
from annotmix.reading.confidences import as_weights


@pytest.mark.parametrize(
    ("column", "texts", "expected", "form"),
    [
        ("confidence", ["0.5", "1", None], [0.5, 1, np.nan], ""),
        ("logprob", ["-0.1", "0", "-2"], [np.exp(-0.1), 1, np.exp(-2)], "logarithms of probabilities"),
        ("confidence", ["80", "100", "5"], [0.8, 1, 0.05], "percentages"),
        ("anything", ["80%", "5 %"], [0.8, 0.05], "percentages"),
        ("weight", ["80", "100"], [80, 100], ""),  # a weight has no greatest value
        ("confidence", ["1", "5", "3"], [1, 5, 3], ""),  # a scale of five steps
        ("confidence", ["Low", "high", "medium"], [1 / 3, 1, 2 / 3], "words, 'Low' as 0.33"),
        ("confidence", ["very high", "low"], [1, 0.4], "words, 'very high' as 1, 'low' as 0.4"),
        ("confidence", ["0", "0"], [0, 0], ""),
    ],
)
def test_forms(column, texts, expected, form):
    weights, read_as = as_weights(np.array(texts, dtype=object), column)
    np.testing.assert_allclose(weights, expected)
    assert read_as.startswith(form)
    assert bool(read_as) == bool(form)


@given(st.lists(st.none() | st.text(max_size=8) | st.floats().map(str)))
def test_any_texts(texts):
    weights, _ = as_weights(np.array([*texts, None], dtype=object)[:-1], "confidence")
    assert weights.shape == (len(texts),)


def test_a_file_with_log_probabilities(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item,annotator,label,logprob\n1,a,x,-0.5\n1,b,y,-0.01\n2,a,y,-1\n2,b,y,0\n")
    labelled = read_labels([path], columns=Columns(weight="logprob"))
    np.testing.assert_allclose(labelled.annotations.weight, np.exp([-0.5, -0.01, -1, 0]))
    assert any("read as logarithms of probabilities, from 0.3679 to 1." in note for note in labelled.notes)
    path.write_text("item,annotator,label,score\n1,a,x,-0.5\n1,b,y,0.3\n")
    with pytest.raises(ValueError, match=r"row 0, column 'score', is '-0.5'; expected a number of 0 or more"):
        read_labels([path], columns=Columns(weight="score"))
