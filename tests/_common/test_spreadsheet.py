"""No spreadsheet runs a cell, and every text comes back."""

import io

import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st

from annotmix._common.spreadsheet import guard, may_be_guarded, to_csv, unguard, unguard_table

#: Texts with many of the signs that matter.
TEXTS = st.text(st.one_of(st.sampled_from("'=+-@\t\r\n ,;\"1."), st.characters(codec="utf-8")), max_size=8)


@given(TEXTS)
@example("-->")
@example("'-->")
@example("''=")
@example(" '=1")
@example("-17")
@example("'-17")
def test_every_text_comes_back_and_none_is_run(text):
    written = guard(text)
    assert unguard(written) == text
    assert not written.startswith(("=", "@", "\t", "\r"))
    if written.startswith(("+", "-")):
        assert written == text
        float(written.replace(",", "."))


def test_only_texts_that_would_be_run_are_changed():
    for text in ("-17", "+49170123", "-1.5e-3", "O'Brien", "'quoted'", "a=b", "'", ""):
        assert guard(text) == text
        assert unguard(text) == text
    assert [guard(text) for text in ("-->", "-17b", "'-17", "=1+1", "''@x")] == [
        "'-->",
        "'-17b",
        "''-17",
        "'=1+1",
        "'''@x",
    ]
    assert guard(-17) == -17


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), TEXTS.filter(lambda text: text.strip()))
def test_tables_come_back_from_csv(rows, heading):
    rows = [(a.replace("\0", ""), b.replace("\0", "")) for a, b in rows]
    table = pd.DataFrame(rows, columns=["first", heading.replace("\0", "") + "-"], dtype=object)
    text = to_csv(table)
    raw = pd.read_csv(
        io.StringIO(text), dtype=object, keep_default_na=False, index_col=False, skip_blank_lines=False
    )
    back, changed = unguard_table(raw)
    assert back.to_numpy().tolist() == table.to_numpy().tolist()
    assert list(back.columns) == list(table.columns)
    assert not changed or may_be_guarded(text)


def test_a_probability_below_1_is_not_written_as_certain():
    numbers = [1.0, 1 - 1e-9, 0.9999994, 0.5, 1e-9, float("nan")]
    written = to_csv(pd.DataFrame({"p": numbers, "n": range(6)})).splitlines()[1:]
    assert written == ["1,0", "0.999999,1", "0.999999,2", "0.5,3", "1e-09,4", ",5"]
