"""Features made ready for a network."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotmix._common.schema import decode
from annotmix.estimators.preparation import OTHER, Preparation, SavedPreparation, fit_preparation


def test_numbers_categories_and_missing_values():
    table = pd.DataFrame(
        {
            "n": ["1", "2", "", "3"] * 25,
            "comma": ["1,5", "2,5", "3,5", "4,5"] * 25,
            "flag": [True, False] * 50,
            "city": ["Rome", "Oslo", None, "Rome"] * 24 + ["A", "B", "C", "D"],
            "same": ["x"] * 100,
            "id": [f"row {i}" for i in range(100)],
        }
    )
    made, notes = fit_preparation(table)
    assert made.numeric == ["n", "comma", "flag"]
    assert made.levels == {"city": ["Oslo", "Rome", OTHER]}
    X = made.transform(table)
    np.testing.assert_allclose(X[:, :3].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(X[:, :3].std(axis=0), 1, atol=1e-5)
    assert X[2, 3:].tolist() == [0, 0, 0]  # a missing city
    assert X[0, 3:].tolist() == [0, 1, 0]
    assert X[96, 3:].tolist() == [0, 0, 1]
    assert X[2, 0] == X[1, 0]  # the median, 2
    text = " ".join(notes)
    for part in (
        "3 columns of numbers",
        "'n' (25)",
        "constant or empty: 'same'",
        "every row: 'id'",
        "'city' (4)",
    ):
        assert part in text


def test_new_tables_are_treated_the_same():
    table = (
        pd.DataFrame({"x": [0.0, 2.0, 4.0], "k": ["a", "b", "a"]}).loc[[0, 1, 2] * 4].reset_index(drop=True)
    )
    made, _ = fit_preparation(table)
    again = Preparation.from_file(decode(json.loads(json.dumps(made.to_dict())), SavedPreparation))
    new = pd.DataFrame({"k": ["b", "new"], "x": ["oops", "2"], "more": [1, 2]})
    np.testing.assert_array_equal(made.transform(new), again.transform(new))
    assert again.transform(new)[0, 0] == again.transform(new)[1, 0]  # what is no number is the median
    with pytest.raises(ValueError, match="lacks 1 column that the model was trained on: 'x'"):
        again.transform(new.drop(columns="x"), "new.csv")


def test_nothing_to_learn_from_is_said():
    with pytest.raises(ValueError, match="None of the columns 'x', 'y' can be used"):
        fit_preparation(pd.DataFrame({"x": [1, 1], "y": ["a", "b"]}))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(st.none(), st.floats(), st.integers(), st.booleans(), st.text(max_size=3), st.just("nan")),
        min_size=4,
        max_size=12,
    )
)
def test_any_column_gives_finite_features_or_an_error(values):
    table = pd.DataFrame({"x": pd.Series(values, dtype=object), "y": range(len(values))})
    made, _ = fit_preparation(table)
    X = made.transform(table)
    assert X.shape == (len(values), len(made.feature_names))
    assert np.isfinite(X).all()
