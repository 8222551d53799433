"""The commands about runs: exit codes, what they print, and that nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers.run_problem import EPOCHS
from typer.testing import CliRunner

from annotmix._common import files
from annotmix.cli import app
from annotmix.runs.folder import RunFolder

runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


def fit(problem, out, *more, epochs=EPOCHS):
    return run(
        "fit",
        problem / "labels.csv",
        "--features",
        problem / "items.csv",
        "--out",
        out,
        "--epochs",
        epochs,
        *more,
    )


@pytest.fixture
def copied(finished, tmp_path):
    """A finished run that may be changed."""
    return shutil.copytree(finished[0], tmp_path / "run")


def error(result):
    assert result.exit_code == 1, result.output
    assert result.stderr.count("Error: ") == 1
    assert "Traceback" not in result.stderr
    return result.stderr


# ---------------------------------------------------------------- fit


def test_fit_says_what_it_found_or_one_document(problem, tmp_path):
    result = fit(problem, tmp_path / "a", epochs=2)
    assert result.exit_code == 0, result.stderr
    assert "What was understood" in result.stdout
    assert "labels (" in result.stdout
    as_json = fit(problem, tmp_path / "b", "--json", epochs=2)
    document = json.loads(as_json.stdout)
    assert document["classes"] == ["a", "b", "c"]
    assert "What was understood" in as_json.stderr
    assert fit(problem, tmp_path / "c", "--quiet", epochs=2).output == ""


def test_a_run_is_not_overwritten_by_accident(problem, copied):
    before = (copied / "run.json").read_bytes()
    assert "already holds a run" in error(fit(problem, copied))
    assert "already holds a run" in error(fit(problem, copied, "--resume"))
    assert (copied / "run.json").read_bytes() == before
    assert fit(problem, copied, "--overwrite", epochs=2).exit_code == 0
    assert json.loads((copied / "run.json").read_text())["request"]["epochs"] == 2


def test_files_of_the_user_are_never_overwritten(problem, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    for more in ((), ("--overwrite",), ("--resume",)):
        assert "holds other files (labels.csv)" in error(fit(problem, tmp_path, *more))
    assert (tmp_path / "labels.csv").read_text() == "mine"
    assert "is a file" in error(fit(problem, tmp_path / "labels.csv"))


def test_interrupted_says_how_to_continue_and_ends_the_same(problem, finished, tmp_path, monkeypatch):
    from annotmix.training import loop as engine

    shown, note = [], engine._note

    def interrupt(row):
        shown.append(row)
        if len(shown) == 3:
            raise KeyboardInterrupt
        return note(row)

    monkeypatch.setattr(engine, "_note", interrupt)
    out = tmp_path / "my run"
    result = fit(problem, out)
    assert result.exit_code == 130
    assert [path.name for path in out.iterdir()] == ["checkpoint"]
    assert "holds an unfinished run" in error(fit(problem, out))
    assert "unfinished run (continue it with" in error(run("report", out))
    command = shlex.split(result.stderr.splitlines()[-1])
    assert command[-1] == "--resume"
    resumed = run(*command[1:])
    assert resumed.exit_code == 0, resumed.stderr
    assert len(shown) == EPOCHS
    assert json.loads((out / "run.json").read_text())["settings"]["approach"] == "annot-mix-plus"
    assert (out / "items.csv").read_bytes() == (finished[0] / "items.csv").read_bytes()
    assert not (out / "checkpoint").exists()


def test_another_run_cannot_be_resumed(problem, tmp_path, monkeypatch):
    from annotmix.training import loop as engine

    def interrupt(row):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_note", interrupt)
        fit(problem, tmp_path / "run")
    assert "cannot be resumed" in error(fit(problem, tmp_path / "run", "--resume", "--seed", "1"))
    gold = problem / "truth.csv"
    assert "cannot be resumed" in error(fit(problem, tmp_path / "run", "--resume", "--gold", gold))


@pytest.mark.parametrize("full", ["items.csv", "findings.json", "run.json"])
def test_full_disk_leaves_the_old_run_whole(problem, copied, monkeypatch, full):
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    write = files.write_bytes

    def refuse(path, data):
        if path.name == full:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_bytes", refuse)
        assert "No space left on device" in error(fit(problem, copied, "--overwrite", "--seed", "1"))
    whole = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    assert {path: data for path, data in whole.items() if "checkpoint" not in path.parts} == before
    result = fit(problem, copied, "--overwrite", "--resume", "--seed", "1")
    assert result.exit_code == 0, result.stderr


KILLED = """
import os, sys
from annotmix.cli import main
from helpers.interrupted import die

replace = os.replace

def killed(source, target):
    if os.path.basename(target) == "items.csv" and ".finished-" in str(source):
        die()
    replace(source, target)

os.replace = killed
main()
"""


def test_a_killed_overwrite_is_finished_by_the_next_command(problem, copied):
    arguments = ["fit", problem / "labels.csv", "--features", problem / "items.csv", "--out", copied]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments, "--overwrite", "--epochs", "1"],
        env=environment,
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (copied / "items.csv").exists()  # it was about to come
    result = run("suggest", copied, "--budget", "3", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads((copied / "run.json").read_text())["request"]["epochs"] == 1
    assert RunFolder(copied).findings().settings["parameters"]["max_epochs"] == 1
    assert not (copied / "checkpoint").exists()
    assert [path.name for path in copied.rglob(".*")] == []


def test_a_folder_where_another_fit_works(problem, copied):
    with RunFolder(copied).claim(overwrite=True):
        assert "Another annotmix fit is working in" in error(fit(problem, copied, "--overwrite"))
        assert run("evaluate", copied, "--truth", problem / "truth.csv").exit_code == 0
        assert run("report", copied).exit_code == 0
    assert "no such folder" in error(run("evaluate", copied / "x", "--truth", problem / "truth.csv"))
    assert not (copied / "x").exists()


def test_mistakes_leave_nothing_behind(problem, tmp_path):
    out = tmp_path / "run"
    other, empty, alike, nameless = (
        tmp_path / f"{name}.csv" for name in ("other", "empty", "alike", "nameless")
    )
    nameless.write_text("height,width\n1,2\n")
    other.write_text("id,x\nq1,1\nq2,2\n")
    empty.write_text("")
    alike.write_text("item,annotator,label\n000,a,yes\n001,b,yes\n")
    (tmp_path / "photos").mkdir()
    elsewhere, strange, one = (tmp_path / f"{name}.csv" for name in ("elsewhere", "strange", "one"))
    elsewhere.write_text("id,truth\nq1,a\n")
    strange.write_text("id,truth\n000,z\n")
    one.write_text("id,truth\n000,a\n")
    labels, items = problem / "labels.csv", problem / "items.csv"
    for arguments, expected in (
        ((tmp_path / "lables.csv", "--features", items), "There is no file"),
        ((tmp_path / "photos", "--features", items), "holds no file with labels: CSV"),
        ((empty, "--features", items), "empty.csv' is empty"),
        ((labels, "--features", empty), "empty.csv' is empty"),
        ((labels, "--features", tmp_path), "is a folder"),
        ((labels, "--text", tmp_path), "is a folder"),
        ((labels, "--images", items), "is not a folder with images"),
        ((labels, "--images", tmp_path / "photos"), "holds no images"),
        ((alike, "--features", items), "All labels are 'yes'; a classifier needs at least two classes"),
        ((items, "--features", items), "no column for the annotator"),
        ((labels, "--features", nameless), "no column for the item, such as 'item'"),
        ((labels, "--features", nameless), "Name the column with --item-column NAME"),
        ((labels, "--features", items, "--valid", other), "Call the column 'truth'"),
        ((labels, "--features", items, "--gold", other), "Call the column 'truth'"),
        (
            (labels, "--features", items, "--gold", elsewhere),
            "None of the 1 items in --gold is among the 150",
        ),
        ((labels, "--features", items, "--gold", strange), "--gold has labels that no annotator gave: 'z'."),
        (
            (labels, "--features", items, "--gold", one, "--valid", one),
            "All 1 items in --valid are in --gold",
        ),
        ((labels, "--features", other), "None of the"),
        ((labels,), "--features FILE, --text FILE or --images FOLDER"),
        ((labels, "--features", other, "--images", tmp_path), "Give one of"),
        ((labels, "--features", tmp_path / "itmes.csv"), "There is no file"),
        ((labels, "--features", problem / "items.csv", "--approach", "annot-mx"), "Did you mean 'annot-mix'"),
        ((labels, "--features", problem / "items.csv", "--encoder", "text:minilm"), "--encoder is for"),
        ((labels, "--features", problem / "items.csv", "--label", "lable"), "Did you mean 'label'"),
    ):
        assert expected in error(run("fit", *arguments, "--out", out))
        assert not out.exists()


def test_wrong_usage_is_exit_code_two(problem):
    assert run("fit").exit_code == 2
    assert fit(problem, "x", epochs=0).exit_code == 2
    assert run("suggest", "x", "--budget", "0").exit_code == 2


def test_thousands_of_annotators_with_one_label(tmp_path):
    rng = np.random.default_rng(0)
    n = 3000
    y = rng.integers(2, size=n)
    pd.DataFrame({"id": range(n), "x": y + rng.normal(size=n), "z": rng.normal(size=n)}).to_csv(
        tmp_path / "items.csv", index=False
    )
    pd.DataFrame({"item": range(n), "annotator": [f"w{i}" for i in range(n)], "label": y}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    result = fit(tmp_path, tmp_path / "run", "--json", epochs=1)
    assert result.exit_code == 0, result.stderr
    assert "3000 of 3000 annotators gave a single label" in result.stderr
    annotators = pd.read_csv(tmp_path / "run" / "annotators.csv")
    assert (annotators["high"] - annotators["low"]).min() > 0.5


# ---------------------------------------------------------------- asking a run


def test_predict(problem, finished, tmp_path):
    result = run("predict", finished[0], problem / "items.csv")
    table = pd.read_csv(pd.io.common.StringIO(result.stdout), dtype={"item": str})
    assert table.columns.tolist() == ["item", "label", "probability", "P(a)", "P(b)", "P(c)"]
    assert len(table) == 150
    np.testing.assert_allclose(table[["P(a)", "P(b)", "P(c)"]].sum(axis=1), 1, atol=1e-4)
    truth = pd.read_csv(problem / "truth.csv", dtype=str).set_index("id")["truth"]
    assert (table.set_index("item")["label"] == truth).mean() > 0.9
    out = tmp_path / "p.csv"
    assert run("predict", finished[0], problem / "items.csv", "--out", out, "--quiet").output == ""
    assert out.read_text() == result.stdout
    pd.read_csv(problem / "items.csv").drop(columns="x2").to_csv(tmp_path / "less.csv", index=False)
    assert "lacks 1 column" in error(run("predict", finished[0], tmp_path / "less.csv"))


def test_predict_takes_the_columns_that_the_run_took(problem, tmp_path):
    items = pd.read_csv(problem / "items.csv", dtype={"id": str}).rename(columns={"id": "sku", "x0": "class"})
    items.to_csv(tmp_path / "items.csv", index=False)
    shutil.copy(problem / "labels.csv", tmp_path)
    result = fit(tmp_path, tmp_path / "run", "--item-column", "sku", "--include", "class", epochs=1)
    assert result.exit_code == 0, result.stderr
    result = run("predict", tmp_path / "run", tmp_path / "items.csv", "--json")
    assert len(json.loads(result.stdout)["rows"]) == 150


def test_evaluate_keeps_the_scores(problem, copied):
    result = run("evaluate", copied, "--truth", problem / "truth.csv", "--json")
    scores = json.loads(result.stdout)["scores"]
    assert scores["n"] == 150
    assert scores["consensus-acc"] > scores["majority-acc"]
    assert scores["label-auroc"] > 0.8
    assert 0 <= scores["ece"] <= 1
    found = json.loads((copied / "findings" / "findings.json").read_text())
    assert found["scores"] == scores
    assert found["inputs"][-1]["role"] == "truth"
    assert len(RunFolder(copied).read("features")[0]) == 150
    truth = pd.read_csv(problem / "truth.csv", dtype=str).set_index("id")["truth"]
    labels = pd.read_csv(copied / "labels.csv", dtype=str)
    right = (labels["label"] == labels["item"].map(truth)).groupby(labels["annotator"]).mean()
    annotators = pd.read_csv(copied / "annotators.csv", index_col="annotator")
    np.testing.assert_allclose(annotators["real_accuracy"], right.loc[annotators.index], atol=1e-6)
    other = problem / "labels.csv"
    assert "two true labels" in error(run("evaluate", copied, "--truth", other, "--label", "label"))


def test_suggest(finished, tmp_path):
    table = json.loads(run("suggest", finished[0], "--budget", "30", "--json").stdout)["rows"]
    assert len({(row["item"], row["annotator"]) for row in table}) == 30
    only = run("suggest", finished[0], "--budget", "3", "--annotator", "w1", "--out", tmp_path / "ask.csv")
    assert only.exit_code == 0
    assert set(pd.read_csv(tmp_path / "ask.csv")["annotator"]) == {"w1"}
    assert "Unknown annotators 'w9'" in error(run("suggest", finished[0], "--annotator", "w9"))


def test_suggest_within_costs_and_loads(finished, tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("annotator,cost,load\nw0,0.5,3\nw1,0.75,\nnew one,1,2\n")
    out = tmp_path / "ask.csv"
    result = run("suggest", finished[0], "--budget", "10", "--annotators", people, "--out", out)
    assert result.exit_code == 0, result.stderr
    table = pd.read_csv(out)
    asked = table["annotator"].value_counts()
    assert set(asked.index) == {"w0", "w1", "new one"}
    assert asked["w0"] <= 3
    assert asked["new one"] <= 2
    assert (table["cost"] == table["annotator"].map({"w0": 0.5, "w1": 0.75, "new one": 1})).all()
    assert f"{len(table)} labels for {table['cost'].sum():g} of 10." in result.stdout
    assert "does not know 1 of 3 annotators: 'new one'." in result.stdout
    both = run("suggest", finished[0], "--annotators", people, "--annotator", "w1")
    assert "one by one or in a table, not both" in error(both)
    few = run(
        "suggest", finished[0], "--budget", "10", "--annotator", "w1", "--per-annotator", "4", "--out", out
    )
    assert "Only 4 pairs" in few.stdout


def test_report_again(copied, tmp_path):
    (copied / "report.html").unlink()
    assert run("report", copied).exit_code == 0
    assert (copied / "report.html").exists()
    assert run("report", copied, "--out", tmp_path / "deep" / "page.html").exit_code == 0
    assert (tmp_path / "deep" / "page.html").exists()
    assert "holds no run" in error(run("report", tmp_path / "nothing"))


def test_damaged_runs_are_one_line(copied):
    (copied / "findings" / "findings.json").write_text("{")
    assert "damaged" in error(run("report", copied))
    (copied / "model" / "preparation.json").write_text("[]")
    assert "damaged" in error(run("predict", copied, copied / "labels.csv"))


def test_export_is_checked_and_says_what_it_takes(finished, problem, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    path = tmp_path / "classifier.onnx"
    result = run("export", finished[0], "--onnx", path, "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads((tmp_path / "classifier.onnx.json").read_text())
    assert facts["columns"] == ["x0", "x1", "x2", "x3", "colour=a", "colour=b", "colour=c", "colour=red"]
    items = pd.read_csv(problem / "items.csv", dtype={"id": str})
    raw = np.column_stack(
        [items[["x0", "x1", "x2", "x3"]], *((items["colour"] == level) for level in ("a", "b", "c", "red"))]
    ).astype(np.float32)
    session = onnxruntime.InferenceSession(path.read_bytes())
    meta = session.get_modelmeta()
    assert meta.description == meta.custom_metadata_map["input"] == facts["input"]["meaning"]
    assert "columns of the table" in meta.description
    assert json.loads(meta.custom_metadata_map["classes"]) == ["a", "b", "c"]
    assert session.get_inputs()[0].shape == ["n", 8]
    proba = session.run(None, {facts["input"]["name"]: raw})[0]
    predicted = pd.read_csv(pd.io.common.StringIO(run("predict", finished[0], problem / "items.csv").stdout))
    np.testing.assert_allclose(proba, predicted[["P(a)", "P(b)", "P(c)"]], atol=1e-4)
    assert np.isnan(raw).any()


@pytest.mark.parametrize("method", ["posterior", "mv", "ds", "crowd-kit:Wawa", "crowd-kit:ZeroBasedSkill"])
def test_aggregate(problem, tmp_path, method):
    out, people = tmp_path / "consensus.csv", tmp_path / "annotators.csv"
    result = run(
        "aggregate", problem / "labels.csv", "--method", method, "--out", out, "--out-annotators", people
    )
    assert result.exit_code == 0, result.stderr
    table = pd.read_csv(out)
    classes = ["P(a)", "P(b)", "P(c)"]
    assert table.columns.tolist() == ["item", "label", "probability", "n_labels", *classes]
    assert set(table["label"]) <= {"a", "b", "c"}
    np.testing.assert_allclose(table[classes].sum(axis=1), 1, atol=1e-4)
    of_label = table[classes].to_numpy()[range(len(table)), table["label"].map("abc".index)]
    np.testing.assert_allclose(table["probability"], of_label, atol=1e-5)
    annotators = pd.read_csv(people)
    assert annotators.columns.tolist() == ["annotator", "accuracy", "low", "high", "n_labels"]
    order = annotators.set_index("annotator")["accuracy"]
    assert order["w0"] > order["w2"]
    assert "'nope'" in error(run("aggregate", problem / "labels.csv", "--method", "nope"))


def test_aggregate_says_the_kind_of_every_annotator(problem, tmp_path):
    who, people = tmp_path / "who.csv", tmp_path / "annotators.csv"
    who.write_text("annotator,kind\nw0,human\nw1,llm\n")
    result = run(
        "aggregate", problem / "labels.csv", "--annotators", who, "--method", "mv", "--out-annotators", people
    )
    assert result.exit_code == 0, result.stderr
    kinds = pd.read_csv(people).set_index("annotator")["kind"]
    assert kinds[["w0", "w1", "w2"]].tolist() == ["people", "models", "unknown"]


def test_aggregate_as_json_has_both_tables(problem):
    printed = json.loads(run("aggregate", problem / "labels.csv", "--json").stdout)
    assert {row["annotator"] for row in printed["annotators"]} >= {"w0", "w1", "w2", "w3"}
    assert {"item", "label", "probability"} <= set(printed["rows"][0])


# ---------------------------------------------------------------- other models


def test_a_classifier_of_scikit_learn_in_place_of_a_network(problem, tmp_path):
    out = tmp_path / "logistic"
    result = fit(problem, out, "--model", "logistic")
    assert result.exit_code == 0, result.output
    settings = json.loads((out / "run.json").read_text())["settings"]
    assert settings["approach"] == "logistic regression"
    assert settings["posterior"]["out of fold"]
    predicted = run("predict", out, problem / "items.csv", "--json")
    assert predicted.exit_code == 0, predicted.output
    for command in (("suggest", out, "--budget", 5), ("report", out)):
        assert run(*command).exit_code == 0
    soft = tmp_path / "soft.csv"
    refused = run("export", out, "--soft", soft, "--onnx", tmp_path / "model.onnx")
    assert "holds no network" in error(refused)
    assert not soft.exists()


def test_auto_says_which_model_it_chose_and_why(problem, tmp_path):
    result = fit(problem, tmp_path / "run", "--model", "auto", epochs=2)
    assert result.exit_code == 0, result.output
    said = next(line for line in result.stdout.splitlines() if line.startswith("Chose "))
    for name in ("annot-mix-plus", "logistic regression", "gradient boosting"):
        assert f"{name} 0." in said
    notes = json.loads((tmp_path / "run" / "run.json").read_text())["notes"]
    assert said in notes
    assert "--model must be one of" in error(fit(problem, tmp_path / "no", "--model", "forest"))
