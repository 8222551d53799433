"""Times of labels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotmix.reading import read_labels
from annotmix.reading.times import iso, parse_times

MOMENTS = st.datetimes(datetime(2002, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=0)
)


@given(
    moments=st.lists(MOMENTS, min_size=1, max_size=5),
    form=st.sampled_from(["iso", "zone", "date", "s", "ms", "us", "ns", "pandas"]),
)
def test_every_form_is_read(moments, form):
    seconds = np.array([moment.timestamp() for moment in moments])
    written = {
        "iso": lambda: [moment.strftime("%Y-%m-%d %H:%M:%S") for moment in moments],
        "zone": lambda: [moment.astimezone(timezone(timedelta(hours=2))).isoformat() for moment in moments],
        "date": lambda: [moment.date().isoformat() for moment in moments],
        "s": lambda: [str(int(second)) for second in seconds],
        "ms": lambda: seconds * 1e3,
        "us": lambda: [int(second) * 10**6 for second in seconds],
        "ns": lambda: [int(second) * 10**9 for second in seconds],
        "pandas": lambda: pd.to_datetime(seconds, unit="s"),
    }[form]()
    expected = seconds - seconds % 86400 if form == "date" else seconds
    found = parse_times(pd.Series(written))
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert [datetime.fromisoformat(text).timestamp() for text in iso(found)] == expected.tolist()


@pytest.mark.parametrize(
    "cells", [["03/04/2024"], ["12.5", "3"], ["", None], ["soon"], [True, False], ["2024"]]
)
def test_other_columns_are_left_alone(cells):
    assert parse_times(pd.Series(cells, dtype=object)) is None


def test_the_newest_label_counts_and_keeps_its_time(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "task,worker,label,created_at\n"
        "b,w2,dog,2024-05-03T00:00:00Z\n"
        "a,w1,cat,2024-05-02T00:00:00Z\n"
        "a,w1,dog,2024-05-01T00:00:00Z\n"
        "a,w2,dog,\n"
    )
    labelled = read_labels([path])
    rows = labelled.annotations.to_long().assign(time=iso(labelled.time)).to_numpy().tolist()
    assert sorted(rows) == [
        ["a", "w1", "cat", "2024-05-02T00:00:00Z"],
        ["a", "w2", "dog", ""],
        ["b", "w2", "dog", "2024-05-03T00:00:00Z"],
    ]
    assert any("the newest counts" in note for note in labelled.notes)


def test_a_column_that_holds_no_times_is_named(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label,date\na,w1,cat,03/04/2024\nb,w1,dog,04/04/2024\n")
    labelled = read_labels([path])
    assert labelled.time is None
    assert any("'date' is not used: it holds no times such as" in note for note in labelled.notes)
