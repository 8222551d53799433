"""Running a study: what is done, skipped, recorded as failed, and done again."""

from __future__ import annotations

import json
import sqlite3

import pytest

import annotmix
from annotmix.bench import worker
from annotmix.bench.driver import run_study
from annotmix.bench.status import status, tracebacks
from annotmix.bench.store import Store, StoreError, driving
from annotmix.bench.study_files import parse_study

STUDY = """
seeds: 1
datasets:
  - {name: digits, settings: {max_epochs: 2}}
  - {name: digits, alias: broken, settings: {max_epochs: 2, lr: 1e30}}
  - aloi
approaches: [annot-mix, true-base]
"""


def _study(text: str = STUDY):
    return parse_study(text, "mine", "mine.yaml")


def test_a_study_from_start_to_end(one_worker, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ANNOTMIX_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("ANNOTMIX_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "store.sqlite"
    outcome = run_study(_study(), path)
    assert (outcome.total, outcome.done, outcome.failed, outcome.without_data) == (6, 2, 2, 2)
    shown = capsys.readouterr().err
    assert "aloi is skipped: 'aloi/aloi.bz2' is in none of the data folders" in shown
    assert "broken, annot-mix, seed 0 failed: ValueError: lr must be" in shown

    with Store(path) as store:
        runs = store.runs()
        done = runs[runs["status"] == "done"].set_index("approach")
        scores = store.scores(done["id"]).set_index(["run", "epoch", "score"])["value"]
        history = store.history(done["id"], ["valid/clf-acc", "test/clf-acc"])
        (facts,) = store.datasets().values()
    assert facts["annotators"] == 20
    assert facts["percent_false"] == pytest.approx(100 * _false_share(), abs=1e-9)
    number = done.loc["annot-mix", "id"]
    assert set(scores[number]["last"].index) == {
        *(f"test/{s}" for s in ("clf-acc", "annot-acc", "label-ll", "perf-auroc")),
        "valid/clf-acc",
        *(f"train/{s}" for s in ("clf-acc", "annot-acc", "label-ll", "perf-auroc", "consensus-acc")),
    }
    assert set(scores[done.loc["true-base", "id"]]["best"].index) == {
        f"{part}/clf-acc" for part in ("test", "valid", "train")
    }
    assert scores[number]["last"].to_dict() == _by_hand()
    assert set(history["score"]) == {"valid/clf-acc"}
    assert sorted(history.loc[history["run"] == number, "epoch"]) == [1, 2]
    assert runs["torch"].notna().all()
    assert (done[["fit_seconds", "evaluate_seconds", "peak_mb"]] > 0).all(axis=None)
    assert "ValueError: lr must be" in runs.loc[runs["status"] == "failed", "error"].iloc[0]

    again = run_study(_study(), path)
    assert (again.before, again.done, again.failed, again.failed_before) == (2, 0, 0, 2)
    retried = run_study(_study(), path, retry=True)
    assert (retried.before, retried.failed) == (2, 2)
    assert tracebacks(path).count("Traceback") == 2
    rows = {name: [cell.text for cell in cells] for name, cells in status(path).rows}
    assert [rows[name][:5] for name in ("digits", "broken", "aloi")] == [
        ["2", "0", "0", "0", "0"],
        ["0", "0", "2", "0", "0"],
        ["0", "0", "0", "0", "2"],
    ]


def _by_hand() -> dict[str, float]:
    data = annotmix.load_dataset("digits")
    clf = annotmix.make_classifier("annot-mix", **data.settings | {"max_epochs": 2}, random_state=0)
    clf.fit(data.X, data.labels)
    found = {f"test/{k}": v for k, v in clf.evaluate(data.X_test, data.y_test, data.test_labels).items()}
    found |= {"valid/clf-acc": clf.score(data.X_valid, data.y_valid)}
    found |= {f"train/{k}": v for k, v in clf.evaluate(data.X, data.y, data.labels).items()}
    consensus = clf.consensus(data.X, data.labels)["label"].to_numpy()
    return found | {"train/consensus-acc": float((consensus == data.y).mean())}


def _false_share() -> float:
    data = annotmix.load_dataset("digits")
    table = data.labels.to_long()
    truth = dict(zip(data.labels.items.tolist(), data.y.tolist(), strict=True))
    return sum(truth[t] != label for t, label in zip(table["item"], table["label"], strict=True)) / len(table)


def test_history_is_kept_where_asked_and_the_result_is_the_same(one_worker, tmp_path):
    text = "seeds: 1\ndatasets: [{name: digits, settings: {max_epochs: 2}}]\napproaches: [mv-base]\n"
    path = tmp_path / "store.sqlite"
    assert run_study(_study(text), path).done == 1
    assert run_study(_study(text + "history: true\n"), path).done == 1  # the first one has no curves
    assert run_study(_study(text), path).before == 1  # the second one has all that is asked for
    with Store(path) as store:
        runs = store.runs()
        curves = store.history(runs["id"], ["test/clf-acc", "train/clf-acc"])
        values = store.scores(runs["id"]).pivot(index=["epoch", "score"], columns="run", values="value")
    assert set(curves["run"]) == {2}
    assert sorted(curves["epoch"]) == [1, 1, 2, 2]
    assert (values[1] == values[2]).all()


def test_again_runs_under_other_code_only(one_worker, tmp_path, monkeypatch):
    text = "seeds: 1\ndatasets: [{name: digits, settings: {max_epochs: 1}}]\napproaches: [mv-base]\n"
    path, code = tmp_path / "store.sqlite", {"commit": "a" * 40, "dirty": False}
    monkeypatch.setattr(worker, "code", lambda: dict(code))
    monkeypatch.setattr("annotmix.bench.driver.code", lambda: dict(code))
    assert run_study(_study(text), path).done == 1
    assert run_study(_study(text), path, again=True).done == 0
    code["commit"] = "b" * 40
    assert run_study(_study(text), path).done == 0
    assert run_study(_study(text), path, again=True).done == 1
    code["dirty"] = True  # not known to be the same code
    assert run_study(_study(text), path, again=True).done == 1
    assert run_study(_study(text), path, again=True).done == 1
    with Store(path) as store:
        runs = store.runs()
    assert runs["key"].nunique() == 1
    assert runs["commit"].str[0].tolist() == ["a", "b", "b", "b"]


def test_a_second_driver_is_refused(tmp_path):
    path = tmp_path / "store.sqlite"
    with driving(path), pytest.raises(StoreError, match="Another `annotmix bench run` is writing"):
        run_study(_study(), path)


def test_stale_runs_are_forgotten_by_the_next_driver_only(tmp_path):
    path, run = tmp_path / "store.sqlite", _study().runs()[0]
    with Store(path, write=True) as store:
        store.begin(run, False)
        store.note_plan("mine", [run])
    assert status(path).rows[-1][1][1].text == "0"  # nobody drives, so nothing is running
    with driving(path):
        assert status(path).rows[-1][1][1].text == "1"
    with Store(path, write=True) as store:
        assert store.forget_running() == 1
        assert store.runs().empty


def test_files_that_are_no_store(tmp_path):
    text, other = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    text.write_text("no database at all, but long enough to look at")
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE t (x)")
    for path in (text, other):
        for write in (False, True):
            with pytest.raises(StoreError):
                Store(path, write=write)
    with pytest.raises(StoreError, match="There is no result store"):
        Store(tmp_path / "none.sqlite")


def test_a_reader_cannot_write(tmp_path):
    path = tmp_path / "store.sqlite"
    Store(path, write=True).__exit__()
    with Store(path) as store, pytest.raises(sqlite3.OperationalError):
        store.note_dataset({}, {})


def test_the_store_says_nothing_about_where_it_was_made(one_worker, tmp_path):
    text = "seeds: 1\ndatasets: [{name: digits, settings: {max_epochs: 1}}]\napproaches: [mv-base]\n"
    path = tmp_path / "store.sqlite"
    run_study(_study(text), path, data_dir=tmp_path)
    with sqlite3.connect(path) as db:
        whole = json.dumps([db.execute(f"SELECT * FROM {t}").fetchall() for t in ("run", "plan", "dataset")])
    import platform

    assert str(tmp_path) not in whole
    assert len(platform.node()) < 4 or platform.node() not in whole
