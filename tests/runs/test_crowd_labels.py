"""--soft: the labels that the crowd would give, on the command line."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from annotmix import load
from annotmix.cli import app
from annotmix.runs.conclusions import disagreement


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_soft_labels_of_a_run(finished, tmp_path):
    out = tmp_path / "soft.csv"
    result = run("export", finished[0], "--soft", out)
    assert result.exit_code == 0, result.output
    table = pd.read_csv(out)
    soft = load(finished[0] / "model").posterior_.soft_labels()
    shares = table.filter(like="P(").to_numpy()
    np.testing.assert_allclose(shares, soft.values, atol=1e-6)
    assert len(table) == len(finished[1].items)
    assert disagreement(soft.rise) in " ".join(result.output.split())


def test_the_soft_labels_of_new_items(finished, problem, tmp_path):
    hard, soft = tmp_path / "hard.csv", tmp_path / "soft.csv"
    for out, more in ((hard, []), (soft, ["--soft"])):
        assert run("predict", finished[0], problem / "items.csv", "--out", out, *more).exit_code == 0
    p, r = (pd.read_csv(out).filter(like="P(").to_numpy() for out in (hard, soft))
    theta = load(finished[0] / "model").posterior_.soft_labels().confusion
    np.testing.assert_allclose(r, p @ theta, atol=5e-6)


def test_the_soft_labels_of_labels_alone(problem, tmp_path):
    out = tmp_path / "soft.csv"
    assert run("aggregate", problem / "labels.csv", "--soft", "--out", out).exit_code == 0
    np.testing.assert_allclose(pd.read_csv(out).filter(like="P(").sum(axis=1), 1, atol=5e-6)
    refused = run("aggregate", problem / "labels.csv", "--soft", "--method", "mv")
    assert refused.exit_code == 1
    assert "--soft needs --method posterior" in refused.stderr


def test_an_export_of_nothing_is_refused(finished):
    result = run("export", finished[0])
    assert result.exit_code == 1
    assert "--onnx FILE" in result.stderr


def test_the_soft_labels_of_groups(problem, tmp_path):
    labels = pd.read_csv(problem / "labels.csv")
    [column] = [name for name in labels.columns if name in ("annotator", "worker")]
    names = sorted(labels[column].astype(str).unique())
    table = pd.DataFrame(
        {"annotator": names, "group": ["young" if n % 2 else "old" for n in range(len(names))]}
    )
    table.to_csv(tmp_path / "who.csv", index=False)
    options = [
        "--features",
        problem / "items.csv",
        "--model",
        "logistic",
        "--annotators",
        tmp_path / "who.csv",
    ]
    made = run("fit", problem / "labels.csv", *options, "--out", tmp_path / "run", "--quiet")
    assert made.exit_code == 0, made.output
    assert run("export", tmp_path / "run", "--soft", tmp_path / "soft.csv").exit_code == 0
    soft = pd.read_csv(tmp_path / "soft.csv")
    assert soft["group"].unique().tolist() == ["all", "old", "young"]
    by_group = soft.groupby("group")["n_labels"].sum()
    assert by_group["old"] + by_group["young"] == by_group["all"]
    np.testing.assert_allclose(soft.filter(like="P(").sum(axis=1), 1, atol=5e-6)
