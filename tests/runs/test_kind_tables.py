"""People, models and rules in a run: what --annotators FILE says is kept, and compared."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from helpers.run_problem import write_problem
from typer.testing import CliRunner

from annotmix import alternative_test
from annotmix.cli import app
from annotmix.runs.folder import RunFolder

WHO = """worker,kind,price,model,prompt,family
w0,human,2,,,
w1,llm,0.1,llama,zero-shot,meta
w2,LLM,0.1,qwen,zero-shot,alibaba
w3,,,,,
expert,person,5,,,
"""


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    write_problem(folder)
    (folder / "who.csv").write_text(WHO)
    long = pd.read_csv(folder / "labels.csv", dtype=str)
    wide = long.pivot_table(index="item", columns="annotator", values="label", aggfunc="first")
    wide.reset_index().assign(outlet="a").to_csv(folder / "wide.csv", index=False)
    return folder


def fit(problem, labels, out, *more):
    return run(
        "fit", problem / labels, "--features", problem / "items.csv", "--out", out, "--model", "logistic",
        "--annotators", problem / "who.csv", *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(problem, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "long"
    return out, fit(problem, "labels.csv", out)


def test_the_table_is_kept_with_the_run(finished):
    out, said = finished
    findings = RunFolder(out).findings()
    crowd = findings.kinds["crowd"].set_index("annotator")
    expected = {"w0": "people", "w1": "models", "w2": "models", "w3": "unknown", "=2+3": "unknown"}
    assert crowd["kind"].to_dict() == expected | {"expert": "people"}
    assert crowd.loc["w1", ["group", "model", "prompt"]].tolist() == ["meta", "llama", "zero-shot"]
    assert crowd["cost"].dropna().to_dict() == {"w0": 2.0, "w1": 0.1, "w2": 0.1, "expert": 5.0}
    assert findings.annotators["kind"].to_dict() == expected
    assert pd.read_csv(out / "annotators.csv")["kind"].tolist() == findings.annotators["kind"].tolist()
    assert "1 of 5 annotators has no row in who.csv and no known kind: '=2+3'." in said.stdout
    assert "1 of 5 annotators in who.csv gave no label: 'expert'." in said.stdout
    assert {"role": "annotators", "name": "who.csv"}.items() <= findings.inputs[1].items()
    assert json.loads((out / "run.json").read_text())["request"]["annotators"][0].endswith("who.csv")


def test_the_table_decides_the_columns_of_a_wide_table(problem, tmp_path):
    said = fit(problem, "wide.csv", tmp_path / "run")
    findings = RunFolder(tmp_path / "run").findings()
    assert sorted(findings.annotators.index) == ["w0", "w1", "w2", "w3"]
    assert "'=2+3' (no row in --annotators)" in said.stdout
    assert "'outlet' (no row in --annotators)" in said.stdout


def test_damaged_tables_are_refused(finished, tmp_path):
    path = finished[0] / "findings" / "findings.json"
    whole = path.read_text()
    try:
        for damage in ({"crowds": whole}, {"crowd": {"index": None, "columns": {"annotator": [1]}}}):
            path.write_text(json.dumps(json.loads(whole) | {"kinds": damage}))
            with pytest.raises(ValueError, match="is damaged or not written by annotmix"):
                RunFolder(finished[0]).findings()
    finally:
        path.write_text(whole)


# ---------------------------------------------------------------- annotmix replace


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("replace")
    rng = np.random.default_rng(0)
    truth = rng.choice(["cat", "dog", "fox"], size=80)
    accuracy = {"ann": 0.8, "bob": 0.8, "eve": 0.75, "good": 0.9, "bad": 0.2}
    said = {m: np.where(rng.random(80) < a, truth, rng.permutation(truth)) for m, a in accuracy.items()}
    pd.DataFrame({"item": range(80), **said}).to_csv(folder / "labels.csv", index=False)
    kinds = ["human", "human", "human", "llm", "llm"]
    pd.DataFrame({"annotator": list(accuracy), "kind": kinds}).to_csv(folder / "who.csv", index=False)
    return folder


def test_replace_tests_every_model_of_the_table(people):
    by_table = run("replace", people / "labels.csv", "--annotators", people / "who.csv", "--json")
    found = json.loads(by_table.stdout)
    assert [(row["model"], row["passes"]) for row in found["rows"]] == [("good", True), ("bad", False)]
    assert len(found["people"]) == 6
    labels = pd.read_csv(people / "labels.csv").set_index("item")
    expected = alternative_test(labels, "good", ["ann", "bob", "eve"])
    assert found["rows"][0]["advantage"] == pytest.approx(expected.advantage)


def test_replace_takes_names_in_place_of_a_table(people, tmp_path):
    out = tmp_path / "models.csv"
    run("replace", people / "labels.csv", "--model", "good", "--model", "bad", "--out", out)
    assert pd.read_csv(out)["model"].tolist() == ["good", "bad"]
    nobody = CliRunner().invoke(app, ["replace", str(people / "labels.csv")])
    assert nobody.exit_code == 1
    assert "Nothing says which annotators are models" in nobody.stderr


# ---------------------------------------------------------------- the comparison in the run and its report


@pytest.fixture(scope="module")
def compared(people, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "compared"
    labels = pd.read_csv(people / "labels.csv")
    rng = np.random.default_rng(0)
    items = pd.DataFrame({"item": labels["item"], "x": rng.normal(size=80), "z": rng.normal(size=80)})
    items.to_csv(people / "items.csv", index=False)
    pd.DataFrame({"item": labels["item"], "truth": labels["good"]}).to_csv(people / "truth.csv", index=False)
    run(
        "fit", people / "labels.csv", "--features", people / "items.csv", "--annotators", people / "who.csv",
        "--model", "logistic", "--out", out,
    )  # fmt: skip
    return out


def test_kinds_are_compared(compared, people):
    findings = RunFolder(compared).findings()
    kinds = findings.kinds["kinds"].set_index("kind")
    assert kinds["labels"].to_dict() == {"people": 240, "models": 160}
    assert kinds.loc["people", "accuracy"] > kinds.loc["models", "accuracy"]
    assert findings.kinds["kind_agreement"]["n_items"].tolist() == [80]
    assert findings.kinds["replacements"]["model"].tolist() == ["good", "bad"]
    run("evaluate", compared, "--truth", people / "truth.csv")
    kinds = RunFolder(compared).findings().kinds["kinds"].set_index("kind")
    labels = pd.read_csv(people / "labels.csv")
    expected = np.mean([(labels[m] == labels["good"]).mean() for m in ("good", "bad")])
    assert kinds.loc["models", "real_accuracy"] == pytest.approx(expected)


def test_the_report_shows_the_comparison(compared, finished):
    page = (compared / "report.html").read_text()
    assert "People and models" in page
    assert "May a model replace people?" in page
    assert "Where models err and people do not" in page
    without = (finished[0] / "report.html").read_text()  # one person
    assert "People and models" in without
    assert "May a model replace people?" not in without


# ---------------------------------------------------------------- whom to ask, at which price


def test_suggest_takes_prices_and_people_from_the_run(compared, people, tmp_path):
    who = pd.read_csv(people / "who.csv").assign(price=[2.0, 2.0, 2.0, 0.1, 0.1])
    new = pd.DataFrame({"annotator": ["expert", "regex"], "kind": ["human", "rule"], "price": [5.0, 0.0]})
    pd.concat([who, new]).to_csv(tmp_path / "who.csv", index=False)
    labels = pd.read_csv(people / "labels.csv", dtype=str)
    labels.loc[::2, ["ann", "good"]] = ""
    labels.to_csv(tmp_path / "labels.csv", index=False)
    run(
        "fit", tmp_path / "labels.csv", "--features", people / "items.csv", "--model", "logistic",
        "--annotators", tmp_path / "who.csv", "--out", tmp_path / "run",
    )  # fmt: skip
    said = run("suggest", tmp_path / "run", "--budget", "60", "--out", tmp_path / "ask.csv")
    table = pd.read_csv(tmp_path / "ask.csv")
    assert set(table["annotator"]) <= {"ann", "good", "expert"}
    assert table["cost"].sum() <= 60
    assert "the budget is an amount of money" in said.stdout
    assert "The run does not know 1 of 6 annotators: 'expert'." in said.stdout
    assert (table["annotator"] == "good").sum() == 40  # whatever it has not labelled, as it costs least
    shown = RunFolder(tmp_path / "run").findings().suggestions
    assert 0 < len(shown) <= 100
    assert "cost" in shown


def test_without_all_prices_the_budget_is_a_number_of_labels(finished, tmp_path):
    said = run("suggest", finished[0], "--budget", "20", "--out", tmp_path / "ask.csv")
    assert "The budget is a number of labels, as labels of 2 annotators have no cost" in said.stdout
    assert len(pd.read_csv(tmp_path / "ask.csv")) == 20


# ---------------------------------------------------------------- answers that cannot be parsed


@pytest.mark.parametrize("wide", [True, False])
def test_answers_that_cannot_be_parsed_are_counted(people, compared, tmp_path, wide):
    labels = pd.read_csv(people / "labels.csv", dtype=str)
    labels.loc[:7, "good"] = "?"
    labels.loc[8:9, "good"] = "Parse error"
    labels.loc[:39, "ann"] = ""  # not asked
    if not wide:
        labels = labels.melt(id_vars="item", var_name="annotator", value_name="label")
        labels = labels[labels["label"] != ""]
    labels.to_csv(tmp_path / "labels.csv", index=False)
    said = run(
        "fit", tmp_path / "labels.csv", "--features", people / "items.csv", "--model", "logistic",
        "--annotators", people / "who.csv", "--out", tmp_path / "run",
    )  # fmt: skip
    assert (
        "Answers that could not be read as a label are missing: 'good' 10 (12.5% of its answers)."
        in said.stdout
    )
    findings = RunFolder(tmp_path / "run").findings()
    assert findings.annotators["unparsed"].to_dict() == {"good": 10} | dict.fromkeys(
        ["ann", "bob", "eve", "bad"], 0
    )
    assert findings.kinds["kinds"].set_index("kind")["unparsed"].to_dict() == {"people": 0, "models": 10}
    assert "10 (6.2%)" in (tmp_path / "run" / "report.html").read_text()
    assert "unparsed" not in RunFolder(compared).findings().annotators
