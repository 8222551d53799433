"""Items with several classes, from files to results."""

from __future__ import annotations

import io
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from helpers.set_crowds import CLASSES, set_crowd
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.labels import posterior
from annotmix.labels.set_texts import write_set
from annotmix.reading import Columns, read_labels
from annotmix.runs.folder import RunFolder

runner = CliRunner()


def run(*words):
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Labels, features and true sets of items; the last five items have no labels."""
    folder = tmp_path_factory.mktemp("sets")
    true, sets = set_crowd(120, 8, 3)
    labels = sets.to_long()
    labels["labels"] = labels["labels"].map(write_set)
    labels[labels["item"].isin(sets.items[:-5])].to_csv(folder / "labels.csv", index=False)
    noise = np.random.default_rng(0).normal(0, 0.4, true.shape)
    features = pd.DataFrame(true + noise, index=pd.Index(sets.items, name="item"), columns=list("ABCDE"))
    features.to_csv(folder / "items.csv")
    truth = [write_set([name for name, own in zip(CLASSES, row, strict=True) if own]) for row in true]
    pd.DataFrame({"item": sets.items, "truth": truth}).to_csv(folder / "truth.csv", index=False)
    return folder


@pytest.mark.parametrize("method", ["posterior", "mv", "ds"])
def test_aggregate(files, method):
    words = ["aggregate", files / "labels.csv", "--multi-label", "--method", method, "-q"]
    table = pd.read_csv(io.StringIO(run(*words).stdout), keep_default_na=False)
    sets = read_labels([files / "labels.csv"], columns=Columns(several=True)).sets
    assert table["item"].tolist() == sets.items.tolist()
    assert (table["label"] == "(none)").any()
    q = table[[f"P({name})" for name in CLASSES]].to_numpy()
    assert ((q >= 0) & (q <= 1)).all()
    if method == "posterior":
        np.testing.assert_allclose(q, posterior(sets).q, atol=2e-6)
        assert table["label"].tolist() == posterior(sets).consensus["labels"].map(write_set).tolist()
    if method == "mv":
        share = pd.Series(sets.chosen[:, 0]).groupby(sets.item).mean()
        np.testing.assert_allclose(q[:, 0], share, atol=2e-6)


@pytest.fixture(scope="module")
def crowd_run(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    result = run(
        "fit", files / "labels.csv", "--features", files / "items.csv", "--multi-label",
        "--model", "logistic", "--out", out,
    )  # fmt: skip
    return out, result.output


def check_run(out, files):
    """The files of a run on the simulated crowd, and the commands about it."""
    items = pd.read_csv(out / "items.csv", keep_default_na=False, index_col="item")
    assert len(items) == 120
    q = items[[f"P({name})" for name in CLASSES]].to_numpy(dtype=float)
    names = [write_set([c for c, p in zip(CLASSES, row, strict=True) if p >= 0.5]) for row in q]
    assert items["label"].tolist() == names
    assert (items["n_labels"].tail(5) == 0).all()
    labels = pd.read_csv(out / "labels.csv", keep_default_na=False)
    assert len(labels) == 115 * 3
    assert "(none)" in set(labels["label"])
    annotators = pd.read_csv(out / "annotators.csv")
    assert annotators["sensitivity"].between(0, 1).all()
    assert pd.read_csv(out / "findings" / "classes.csv")["class"].tolist() == list(CLASSES)
    assert len(pd.read_csv(out / "findings" / "annotator_classes.csv")) == 8 * len(CLASSES)
    report = (out / "report.html").read_text()
    assert "Classes one by one" in report
    run("evaluate", out, "--truth", files / "truth.csv")
    scores = RunFolder(out).findings().scores
    assert scores["learnt"] == 115
    assert scores["new"] == 5
    assert scores["subset-acc"] > scores["vote-subset-acc"]
    assert 0 <= scores["clf-hamming"] <= 1
    again = run("evaluate", out, "--truth", files / "truth.csv").output
    assert "exactly the right set" in again
    run("report", out)
    assert "exactly the right" in (out / "report.html").read_text()
    predicted = run("predict", out, files / "items.csv", "-q").stdout
    table = pd.read_csv(io.StringIO(predicted), keep_default_na=False)
    assert len(table) == 120
    assert set(table["label"]) & {"(none)", *CLASSES}


def test_fit_writes_files_that_every_command_reads(crowd_run, files):
    out, said = crowd_run
    assert "classes     5: calm, live, loud, rock, sad" in said
    check_run(out, files)


@pytest.mark.parametrize("command", [["review"], ["export", "--soft", "soft.csv"]])
def test_commands_for_one_class_per_item_refuse_in_one_line(crowd_run, command):
    name, *options = command
    result = runner.invoke(app, [name, str(crowd_run[0]), *options])
    assert result.exit_code == 1
    assert "is for one class per item, and this run has several" in result.stderr


def test_suggest_refuses_in_one_line(crowd_run):
    result = runner.invoke(app, ["suggest", str(crowd_run[0])])
    assert result.exit_code == 1
    assert "one class per item" in result.output


def test_gold_and_valid_are_sets(files, tmp_path):
    truth = pd.read_csv(files / "truth.csv")
    truth.head(20).to_csv(tmp_path / "gold.csv", index=False)
    truth.tail(20).to_csv(tmp_path / "valid.csv", index=False)
    out = tmp_path / "run"
    run(
        "fit", files / "labels.csv", "--features", files / "items.csv", "--multi-label",
        "--model", "logistic", "--out", out,
        "--gold", tmp_path / "gold.csv", "--valid", tmp_path / "valid.csv", "-q",
    )  # fmt: skip
    findings = RunFolder(out).findings()
    gold = findings.items.iloc[:20]
    sets = [write_set(sorted(text.split("|"))) for text in truth["truth"].head(20)]
    assert gold["label"].tolist() == sets == gold["gold"].tolist()
    assert findings.scores["n"] == 20


def test_a_damaged_file_of_classes_is_refused(crowd_run, tmp_path):
    out = tmp_path / "run"
    shutil.copytree(crowd_run[0], out)
    path = out / "findings" / "findings.json"
    saved = json.loads(path.read_text())
    saved["several"]["annotators"]["columns"]["class"][0] = "jazz"
    path.write_text(json.dumps(saved))
    with pytest.raises(ValueError, match="jazz"):
        RunFolder(out).findings()


def test_fit_with_a_network_and_its_export(files, tmp_path):
    pytest.importorskip("onnxruntime")
    out = tmp_path / "run"
    run(
        "fit", files / "labels.csv", "--features", files / "items.csv", "--multi-label",
        "--out", out, "--epochs", 15, "-q",
    )  # fmt: skip
    check_run(out, files)
    run("export", out, "--onnx", tmp_path / "c.onnx")
    facts = json.loads((tmp_path / "c.onnx.json").read_text())
    assert facts["classes"] == list(CLASSES)
    assert facts["checked"]["largest difference"] < 1e-5


def test_other_approaches_refuse_in_one_line(files, tmp_path):
    words = ["fit", files / "labels.csv", "--features", files / "items.csv", "--multi-label"]
    words += ["--out", tmp_path / "run", "--approach", "annot-mix", "--epochs", 1]
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == 1
    assert "annot-mix learns one class per item" in result.output
