"""Names of items, annotators and classes in saved models."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotmix._common.schema import decode
from annotmix.estimators.model_facts import SavedNames, names_to_json

quick = settings(deadline=None, max_examples=50, derandomize=True)
NAMES = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=1, max_size=5).map(np.array),
    st.lists(st.floats(allow_nan=False), unique=True, max_size=5).map(lambda v: np.array(v, dtype=float)),
    st.lists(st.booleans(), unique=True, max_size=5).map(lambda v: np.array(v, dtype=bool)),
    st.lists(st.text(st.characters(exclude_characters="\0")), unique=True, max_size=5).map(
        lambda v: np.array(v, dtype=str)
    ),
    st.lists(st.text(), unique=True, max_size=5).map(lambda v: np.array([*v, None], dtype=object)[:-1]),
    st.lists(st.integers(), unique=True, max_size=5).map(lambda v: np.array([*v, None], dtype=object)[:-1]),
)


@quick
@given(NAMES)
def test_names_round_trip(names):
    back = decode(json.loads(json.dumps(names_to_json(names))), SavedNames).to_array()
    assert back.tolist() == names.tolist()
    assert [type(name) for name in back.tolist()] == [type(name) for name in names.tolist()]
    assert back.shape == names.shape
    assert (back.dtype == object) == (names.dtype == object)
    if len(names):
        assert back.dtype == names.dtype


@pytest.mark.parametrize(
    "names",
    [
        np.array([1, "a"], dtype=object),
        np.array([(1, 2), None], dtype=object)[:1],
        np.array([None, None]),
        np.array([1, True], dtype=object),
        np.array([b"a"]),
    ],
)
def test_names_that_cannot_be_saved(names):
    with pytest.raises(TypeError, match=r"all integers, floats, booleans or text can be saved, found \w+"):
        names_to_json(names)


@pytest.mark.parametrize(
    "saved",
    [
        {"type": "int", "values": ["a"], "object": False},
        {"type": "bool", "values": ["False"], "object": False},
        {"type": "int", "values": [1, True], "object": False},
        {"type": "str", "values": "abc", "object": True},
        {"type": "str", "values": [["a"]], "object": True},
        {"type": "float", "values": None, "object": False},
        {"type": "str", "values": ["a", "a"], "object": False},
        {"type": "int", "values": [10**30], "object": False},
    ],
)
def test_names_of_a_tampered_file(saved):
    with pytest.raises(ValueError, match=r"values|repeated|too large"):
        decode(saved, SavedNames).to_array()
