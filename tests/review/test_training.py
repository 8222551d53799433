"""Learning again with decisions."""

import json
import subprocess
import sys
import time

import pandas as pd
import pytest
from helpers import some_findings
from helpers.review_run import write_run
from helpers.run_problem import write_problem

from annotmix.reading import Columns, read_truth
from annotmix.reading.decisions import Decision, Decisions
from annotmix.review.changes import changes
from annotmix.review.export import export
from annotmix.review.session import Session
from annotmix.review.training import KNOWN, open_decisions
from annotmix.runs.fit import fit
from annotmix.runs.folder import RunFolder
from annotmix.runs.request import Request


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """A run of real files, and its request."""
    folder = tmp_path_factory.mktemp("learnt")
    write_problem(folder)
    request = Request(
        (folder / "labels.csv",), folder / "run", features=folder / "items.csv", model="logistic"
    )
    fit(request, lambda _: None, progress=False)
    return request


def test_use_these_decisions(learnt, tmp_path):
    run = RunFolder(learnt.out)
    assert run.read("request")[0].settings() == learnt.settings()
    session = Session(run, reviewer="ann")
    with pytest.raises(ValueError, match="No item has a class"):
        session.train()
    before = session.index.findings
    truth = pd.read_csv(learnt.out.parent / "truth.csv", dtype=str).set_index("id")["truth"]
    for name in before.items.sort_values("probability").index[:15]:
        told = {"item": session.board.row[name], "verdict": "class", "label": truth[name], "reviewer": "ann"}
        session.decide({**told, "note": "", "filters": {}})
    bad = next(row for row in range(150) if session.board.status[row] == 0)
    session.decide({"item": bad, "verdict": "invalid", "reviewer": "ann"})
    assert session.train()["state"] == "running"
    while (answer := session.training.answer())["state"] == "running":
        time.sleep(0.05)
    session.close()
    assert answer["state"] == "done", answer["lines"]
    new = learnt.out.parent / "run-reviewed"
    assert answer["out"] == str(new)
    assert RunFolder(learnt.out).findings().items.equals(before.items)  # the earlier run is kept
    after = RunFolder(new).findings()
    assert (after.items["gold"] != "").sum() == 15
    assert after.items["n_labels"].iloc[bad] == 0
    assert answer["changes"] == changes(before, after, set(after.items.index[after.items["gold"] != ""]))

    again = Session(RunFolder(new), reviewer="ann")  # the review goes on with the decisions so far
    made = again.progress({})
    assert (made["decided"], made["left"]["n"], made["sample"]) == (15, 135, None)
    assert again.training.request().out.name == "run-reviewed-2"
    assert again.decisions.invalid() == [before.items.index[bad]]
    again.close()

    (path, n), (labels, n_items) = export(learnt.out, tmp_path / "d.csv", tmp_path / "l.csv")
    assert (n, n_items) == (16, 149)
    with Decisions(learnt.out / "review.db") as decisions:
        assert read_truth(path, Columns(), "gold")[0] == decisions.true_labels()
    assert pd.read_csv(labels, dtype=str)["status"].value_counts()["decided"] == 15


def test_missing_files_are_named_with_the_command(tmp_path):
    session = Session(RunFolder(write_run(tmp_path / "run", some_findings.small(), text="no.csv")))
    session.decisions.add(Decision("item 1", "ann", "class", "class 1"))
    with pytest.raises(
        ValueError, match=r"not there any more: labels\.csv, no\.csv.*annotmix fit labels\.csv .*--gold"
    ):
        session.train()
    session.close()


@pytest.mark.parametrize(
    "request_", [{"labels": "x"}, {"colour": 1}, {"epochs": "many"}, {"gold": 3}, {"missing": "x"}], ids=str
)
def test_a_damaged_request_is_refused(tmp_path, request_):
    run = write_run(tmp_path / "run", some_findings.small())
    (run / "run.json").write_text(json.dumps({"request": {"labels": ["a"], **request_}}))
    with pytest.raises(ValueError, match="damaged"):
        RunFolder(run).read("request")


def test_classes_that_were_known_before_stay_known(tmp_path):
    found = some_findings.small()
    found.items["gold"] = ""
    found.items.loc[["item 1", "item 2"], "gold"] = "class 0"
    session = Session(RunFolder(write_run(tmp_path / "run", found, gold="gold.csv")))
    session.decisions.add(Decision("item 2", "ann", "class", "class 3"))
    with Decisions(session.training.request().gold) as both:
        assert both.true_labels() == {"item 1": "class 0", "item 2": "class 3"}
    assert session.decisions.true_labels() == {"item 2": "class 3"}
    session.close()


def test_a_run_that_learnt_decisions_begins_with_them(tmp_path):
    with Decisions(tmp_path / "review.db", write=True) as first:
        first.add_all([Decision("item 1", "ann", "invalid"), Decision("item 2", KNOWN, "class", "class 1")])
    run = write_run(tmp_path / "run", some_findings.small(), gold=str(tmp_path / "review.db"))
    with open_decisions(RunFolder(run)) as own:
        assert [decision.item for decision in own.current()] == ["item 1"]
        own.undo("ann")
    with open_decisions(RunFolder(run)) as own:
        assert own.current() == []


def test_the_child_ends_with_its_parent(tmp_path):
    request = Request((tmp_path / "none.csv",), tmp_path / "out").settings()
    child = subprocess.Popen(
        [sys.executable, "-m", "annotmix.review.child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    child.communicate(json.dumps(request).encode() + b"\n", timeout=60)  # closes stdin
    assert child.returncode == 130
    assert not (tmp_path / "out").exists()


def test_nothing_is_exported_where_nothing_was_decided(tmp_path):
    run = write_run(tmp_path / "run", some_findings.small())
    with pytest.raises(OSError, match="annotmix review makes them"):
        export(run, tmp_path / "d.csv", None)
