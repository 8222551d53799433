import os
import signal
import sqlite3
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotmix.reading import Columns, read_truth
from annotmix.reading.decisions import Decision, Decisions, DecisionsError, is_decisions


@pytest.fixture
def file(tmp_path):
    return tmp_path / "review.db"


def decided(item, label, reviewer="ann", **more):
    return Decision(item, reviewer, "class", label, **more)


def test_the_newest_decision_of_a_reviewer_counts_and_undo_brings_the_last_one_back(file):
    with Decisions(file, write=True) as decisions:
        decisions.add(decided("i1", "cat"))
        decisions.add(decided("i1", "dog", note="a tail", shown={"consensus": "cat", "probability": 0.6}))
        decisions.add(Decision("i2", "ann", "unsure"))
        assert decisions.true_labels() == {"i1": "dog"}
        assert decisions.undo("ann").item == "i2"
        assert decisions.undo("ann").label == "dog"
        assert decisions.true_labels() == {"i1": "cat"}
        assert decisions.undo("bob") is None
        assert [d.label for d in decisions.current()] == ["cat"]


def test_most_reviewers_decide_and_a_tie_decides_nothing(file):
    with Decisions(file, write=True) as decisions:
        for reviewer, label in (("ann", "cat"), ("bob", "cat"), ("cyn", "dog")):
            decisions.add(decided("i1", label, reviewer))
        for reviewer, label in (("ann", "cat"), ("bob", "dog")):
            decisions.add(decided("i2", label, reviewer))
        decisions.add(Decision("i3", "ann", "invalid"))
        decisions.add(Decision("i4", "ann", "skipped"))
        assert decisions.true_labels() == {"i1": "cat"}
        assert decisions.invalid() == ["i3"]
        assert set(decisions.table()["verdict"]) == {"class", "invalid", "skipped"}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("xy"), st.sampled_from("ab"), st.sampled_from(["c", "d", None])),
        max_size=12,
    )
)
def test_any_history_is_the_history_replayed(tmp_path_factory, steps):
    """A step without a class takes back the reviewer's last decision."""
    history: list[tuple[str, str, str]] = []
    with Decisions(tmp_path_factory.mktemp("d") / "review.db", write=True) as decisions:
        for item, reviewer, label in steps:
            if label is None:
                decisions.undo(reviewer)
                last = max((k for k, h in enumerate(history) if h[1] == reviewer), default=None)
                if last is not None:
                    history.pop(last)
            else:
                decisions.add(decided(item, label, reviewer))
                history.append((item, reviewer, label))
        newest = {(item, reviewer): label for item, reviewer, label in history}
        assert {(d.item, d.reviewer): d.label for d in decisions.current()} == newest


def test_no_decision_is_lost_when_the_process_is_killed(file):
    code = (
        "import sys; from pathlib import Path; from annotmix.reading.decisions import *\n"
        "d = Decisions(Path(sys.argv[1]), write=True)\n"
        "for n in range(10**6):\n    print(d.add(Decision(f'i{n}', 'ann', 'class', 'cat')), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE, text=True
    ) as process:
        said = [process.stdout.readline() for _ in range(20)]
        os.kill(process.pid, signal.SIGKILL)
        said += process.stdout.readlines()
    last = int([line for line in said if line.endswith("\n")][-1])
    with Decisions(file) as decisions:
        assert len(decisions.current()) >= last >= 20


def test_two_reviewers_write_at_once(file):
    with Decisions(file, write=True) as one, Decisions(file, write=True) as other:
        for n in range(20):
            one.add(decided(f"i{n}", "cat", "ann"))
            other.add(decided(f"i{n}", "cat" if n % 2 else "dog", "bob"))
        assert one.state() == other.state()
        assert len(one.current()) == 40
        assert len(one.true_labels()) == 10


def test_files_of_others_are_refused(tmp_path, file):
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE decision (id)")
    with pytest.raises(DecisionsError, match="no decisions of this version"):
        Decisions(tmp_path / "other.db", write=True)
    (tmp_path / "text.db").write_text("SQLite format 3\0 but no such thing" * 50)
    with pytest.raises(DecisionsError, match="cannot be used"):
        Decisions(tmp_path / "text.db")
    with pytest.raises(DecisionsError, match="annotmix review makes them"):
        Decisions(file)
    assert not is_decisions(tmp_path)


def test_decisions_are_true_labels_for_every_command(file):
    with Decisions(file, write=True) as decisions:
        decisions.add(Decision("i1", "ann", "unsure"))
        with pytest.raises(ValueError, match="no item that reviewers"):
            read_truth(file, Columns(), "gold")
        decisions.add(decided("i1", "cat"))
        truth, notes, source = read_truth(file, Columns(), "gold")
    assert truth == {"i1": "cat"}
    assert "1 true labels" in notes[0]
    assert (source.role, source.rows) == ("gold", 1)
