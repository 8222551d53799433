"""`annotmix fit`: what is in the run's folder, and what was said."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from helpers.run_problem import EPOCHS

import annotmix
from annotmix.labels.aggregation import majority_vote
from annotmix.labels.annotations import Annotations
from annotmix.labels.coefficients import percent_agreement
from annotmix.reading import Columns
from annotmix.runs.evaluate import evaluate
from annotmix.runs.findings import doubts
from annotmix.runs.fit import fit
from annotmix.runs.folder import RunFolder
from annotmix.runs.predict import predict
from annotmix.runs.request import Request
from annotmix.runs.storage import load_findings, save_findings
from annotmix.runs.suggest import suggest


def test_what_was_understood_is_said_first(finished):
    _, _, said = finished
    text = "\n".join(said)
    assert text.index("What was understood") < text.index("Training annot-mix")
    for part in ("labelled items have features", "'nowhere'", "3: a, b, c"):
        assert part in text
    assert "missing numbers became the median of their column: 'x1' (15)" in text
    assert "1 column of categories became 4 one-hot columns: 'colour'" in text
    assert "a different value in nearly every row: 'name'" in text
    assert "1 annotator gave the same label to everything, 10 items or more: 'w3'" in text


@pytest.mark.parametrize(("n_features", "layers"), [(5, "256 and 128"), (300, "128")])
def test_python_trains_the_same_network(tmp_path, n_features, layers):
    rng = np.random.default_rng(0)
    items = [f"{i:02d}" for i in range(40)]
    features = pd.DataFrame(rng.normal(size=(40, n_features)), index=pd.Index(items, name="item"))
    features.to_csv(tmp_path / "items.csv")
    labels = pd.DataFrame({"item": items * 2, "annotator": ["ann"] * 40 + ["bob"] * 40})
    labels["label"] = rng.choice(["cat", "dog"], size=80)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    out, said = tmp_path / "run", []
    fit(Request((tmp_path / "labels.csv",), out, tmp_path / "items.csv", epochs=2), said.append, False)

    X = np.load(out / "findings" / "features.npy")
    clf = annotmix.AnnotMixPlusClassifier(max_epochs=2, random_state=0).fit(X, labels, items=items)
    loaded = annotmix.load(out / "model")
    np.testing.assert_array_equal(clf.predict_proba(X), loaded.predict_proba(X))
    network = {"hidden": clf.hidden_, "dropout": clf.dropout_, "weight_decay": clf.weight_decay_}
    assert network == {name: getattr(loaded, f"{name}_") for name in network}
    run = json.loads((out / "run.json").read_text())
    assert run["settings"]["parameters"].items() >= (network | {"hidden": list(clf.hidden_)}).items()
    assert f"(layers of {layers}, dropout 0.5)" in "\n".join(said)


def test_every_file_is_there(finished):
    out, found, _ = finished
    names = {path.name for path in out.iterdir()}
    assert names == {
        "model", "findings", "items.csv", "labels.csv", "annotators.csv", "report.html", "run.json",
    }  # fmt: skip
    items = pd.read_csv(out / "items.csv", dtype={"item": str})
    assert len(items) == 150
    assert items["item"].tolist() == found.items.index.tolist()
    labels = pd.read_csv(out / "labels.csv")
    assert labels["probability"].is_monotonic_increasing
    assert len(labels) == len(found.labels)
    run = json.loads((out / "run.json").read_text())
    assert [source["role"] for source in run["inputs"]] == ["labels", "features"]
    assert run["settings"]["parameters"]["max_epochs"] == EPOCHS
    assert set(run["settings"]["versions"]) >= {"python", "torch", "annotmix"}


def test_formulas_are_neutralised_and_numbers_are_not(finished):
    out, found, _ = finished
    assert "=2+3" in found.annotators.index
    text = (out / "annotators.csv").read_text()
    assert "'=2+3,2," in text
    assert "\n=2+3" not in text


def test_items_against_slow_counting(finished):
    _, found, _ = finished
    labels = found.labels
    for item, row in found.items.head(30).iterrows():
        own = labels[labels["item"] == item]
        votes = own["label"].value_counts()
        assert row["n_labels"] == len(own)
        assert sorted(row["votes"].split(", ")) == sorted(f"{k} ({v})" for k, v in votes.items()) or not len(
            own
        )
        if len(own):
            top = sorted(votes[votes == votes.max()].index)
            assert row["majority"] == " = ".join(top)
            assert row["differs"] == (row["label"] not in top)
            assert row["agreement"] == pytest.approx((own["label"] == row["label"]).mean())
            share = votes / len(own)
            assert row["disagreement"] == pytest.approx(-(share * np.log2(share)).sum(), abs=1e-12)


def test_annotators_against_slow_counting(finished):
    _, found, _ = finished
    labels = found.labels
    for annotator, row in found.annotators.iterrows():
        own = labels[labels["annotator"] == annotator]
        assert row["n_labels"] == len(own)
        assert 0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1
        shares = []
        for _, label in own.iterrows():
            others = labels[(labels["item"] == label["item"]) & (labels["annotator"] != annotator)]
            if len(others):
                shares.append((others["label"] == label["label"]).mean())
        assert row["agreement"] == pytest.approx(np.mean(shares))
    assert found.confusion.whole.shape == (len(found.annotators), 3, 3)
    np.testing.assert_allclose(found.confusion.whole.sum(axis=2), 1)


def test_a_run_with_weights(problem, tmp_path):
    """A soft label of annotator w0, and confidences: counted by weight everywhere."""
    given = pd.read_csv(problem / "labels.csv", dtype=str)
    sure = given["annotator"].eq("w0")
    rest = given[sure].assign(label=given["label"].map({"a": "b", "b": "c", "c": "a"}), sure=0.25)
    table = pd.concat([given.assign(sure=np.where(sure, 0.75, 0.5)), rest])
    table.to_csv(tmp_path / "labels.csv", index=False)
    request = Request(
        (tmp_path / "labels.csv",), tmp_path / "run", problem / "items.csv", weight="sure", epochs=3
    )
    said = []
    found = fit(request, said.append, progress=False)
    assert any("Labels count by the column 'sure', from 0.25 to 0.75." in line for line in said)
    labels = found.labels
    expected = labels["weight"] * (1 - labels["probability"])
    assert expected.is_monotonic_decreasing
    for item, row in found.items.head(20).iterrows():
        own = labels[labels["item"] == item]
        votes = own.groupby("label")["weight"].sum()
        assert row["n_labels"] == own["annotator"].nunique()
        if len(own):
            assert sorted(row["votes"].split(", ")) == sorted(f"{k} ({v:g})" for k, v in votes.items())
            assert row["agreement"] == pytest.approx(votes.get(row["label"], 0) / votes.sum())
    for annotator, row in found.annotators.iterrows():
        own = labels[labels["annotator"] == annotator]
        assert row["n_labels"] == own["item"].nunique()
        assert 0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1
        shares, weights = [], []
        for _, label in own.iterrows():
            others = labels[(labels["item"] == label["item"]) & (labels["annotator"] != annotator)]
            if len(others):
                same = others.loc[others["label"] == label["label"], "weight"]
                shares.append(same.sum() / others["weight"].sum())
                weights.append(label["weight"])
        assert row["agreement"] == pytest.approx(np.average(shares, weights=weights))
    (again,) = RunFolder(tmp_path / "run").read("posterior")
    assert again.annotations.weight is not None
    np.testing.assert_array_equal(again.consensus["probability"], found.items["probability"])
    assert evaluate(tmp_path / "run", problem / "truth.csv", Columns()).scores["majority-acc"] > 0.5


def test_it_finds_the_right_labels_and_whom_to_trust(finished, problem):
    _, found, _ = finished
    truth = pd.read_csv(problem / "truth.csv", dtype=str).set_index("id")["truth"]
    right = (found.items["label"] == truth.loc[found.items.index]).mean()
    given = Annotations.from_long(found.labels)
    vote = majority_vote(given, random_state=0)
    assert right > (vote == truth.loc[vote.index]).mean()
    assert found.annotators["accuracy"].drop("=2+3").idxmax() == "w0"
    assert found.annotators.loc["w0", "accuracy"] - found.annotators.loc["w3", "accuracy"] > 0.2
    assert found.annotators.loc["w3", "confusion"].endswith("→ c")
    wide = found.annotators["high"] - found.annotators["low"]
    assert wide["=2+3"] > 2 * wide["w0"]


def test_the_same_seed_gives_the_same_run(finished, problem, tmp_path):
    _, found, _ = finished
    request = Request(
        (problem / "labels.csv",), tmp_path / "run", features=problem / "items.csv", epochs=EPOCHS
    )
    again = fit(request, lambda line: None, progress=False)
    pd.testing.assert_frame_equal(found.items, again.items)
    pd.testing.assert_frame_equal(found.annotators, again.annotators)


def test_findings_survive_the_disk(finished, tmp_path):
    _, found, _ = finished
    save_findings(tmp_path, found)
    again = load_findings(tmp_path)
    for name in ("items", "annotators", "labels", "history", "suggestions"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(found, name), check_dtype=False)
    pd.testing.assert_frame_equal(again.agreement.classes, found.agreement.classes, check_dtype=False)
    assert again.agreement.alpha == found.agreement.alpha
    long = Annotations.from_long(found.labels[["item", "annotator", "label"]])
    assert again.agreement.percent == pytest.approx(percent_agreement(long))
    np.testing.assert_array_equal(again.confusion.whole, found.confusion.whole)
    assert (again.title, again.notes, list(again.classes)) == (found.title, found.notes, list(found.classes))
    saved = json.loads((tmp_path / "findings.json").read_text("utf-8"))
    agreement = saved.pop("agreement")  # as older versions wrote it
    (tmp_path / "findings.json").write_text(json.dumps(saved))
    assert load_findings(tmp_path).agreement is None
    agreement["classes"]["columns"]["class"][0] = "another"
    (tmp_path / "findings.json").write_text(json.dumps(saved | {"agreement": agreement}))
    with pytest.raises(ValueError, match="about other classes"):
        load_findings(tmp_path)
    (tmp_path / "findings.json").write_text('{"format": 2}')
    with pytest.raises(ValueError, match="damaged"):
        load_findings(tmp_path)


def test_valid_selects_and_scores(problem, tmp_path):
    request = Request(
        (problem / "labels.csv",), tmp_path / "run", features=problem / "items.csv", epochs=4,
        valid=problem / "truth.csv",
    )  # fmt: skip
    found = fit(request, lambda line: None, progress=False)
    assert found.settings["parameters"]["select"] == "best"
    assert "valid/clf-acc" in found.history
    assert found.scores["n"] == 150
    assert found.calibration["count"].sum() == found.scores["learnt"] == (found.items["n_labels"] > 0).sum()


@pytest.fixture
def some_gold(problem, tmp_path):
    """A file with the true labels of 30 items, and of one that does not exist."""
    truth = pd.read_csv(problem / "truth.csv", dtype=str)
    gold = pd.concat([truth.head(30), pd.DataFrame({"id": ["elsewhere"], "truth": ["a"]})])
    gold.to_csv(tmp_path / "gold.csv", index=False)
    return tmp_path / "gold.csv", truth.head(30).set_index("id")["truth"]


def test_gold_is_learnt_and_fixed_and_valid_is_scored_without_it(problem, some_gold, tmp_path):
    path, gold = some_gold
    request = Request(
        (problem / "labels.csv",), tmp_path / "run", features=problem / "items.csv", epochs=4,
        valid=problem / "truth.csv", gold=path,
    )  # fmt: skip
    said = []
    found = fit(request, said.append, progress=False)
    items = found.items
    assert items["gold"].head(30).tolist() == items["label"].head(30).tolist() == gold.tolist()
    assert (items["probability"].head(30) == 1).all()
    assert (items["gold"].iloc[30:] == "").all()
    assert items["probability"].iloc[30:].max() < 1
    own = found.labels[found.labels["item"].isin(gold.index)]
    right = own["label"].to_numpy() == gold.loc[own["item"]].to_numpy()
    np.testing.assert_array_equal(own["probability"], right.astype(float))
    assert found.scores["n"] == 120
    assert (
        found.scores["learnt"] == found.calibration["count"].sum() == (items["n_labels"].iloc[30:] > 0).sum()
    )
    for note in (
        "1 of 31 items in --gold not among the items: 'elsewhere'.",
        "30 of 150 items in --valid are in --gold too; they are learnt, so they neither choose the epoch nor "
        "count in the scores.",
    ):
        assert note in found.notes
        assert any(note in line for line in said)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["request"]["gold"] == str(path)
    assert run["settings"]["gold"] == "true labels of 30 items"
    assert [source["role"] for source in run["inputs"]] == ["labels", "features", "valid", "gold"]
    assert f"--gold {path}" in run["settings"]["command"]
    again = evaluate(tmp_path / "run", problem / "truth.csv", Columns())
    assert again.scores == found.scores
    assert any("leave out 30 of 150 items with a true label: gold" in note for note in again.notes)
    model = annotmix.load(tmp_path / "run" / "model")
    assert model.consensus()["label"].tolist() == items["label"].tolist()


def test_without_gold_there_is_no_column_of_it(finished):
    out, found, _ = finished
    assert "gold" not in found.items
    assert "gold" not in json.loads((out / "run.json").read_text())["settings"]


def test_an_approach_without_folds_judges_by_labels_alone(problem, tmp_path):
    request = Request(
        (problem / "labels.csv",),
        tmp_path / "run",
        features=problem / "items.csv",
        epochs=4,
        approach="mv-base",
    )
    found = fit(request, lambda line: None, progress=False)
    assert (
        "mv-base has no predictions of items that it has not learnt, so labels are judged by labels alone; "
        "annot-mix-plus has." in found.notes
    )
    assert found.annotators.loc["w0", "accuracy"] > found.annotators.loc["w3", "accuracy"]
    assert (found.items["label"] == found.items["classifier"])[found.items["n_labels"] == 0].all()
    model = annotmix.load(tmp_path / "run" / "model")
    np.testing.assert_array_equal(model.consensus()["probability"], found.items["probability"])
    X = np.load(tmp_path / "run" / "findings" / "features.npy")
    assert found.items["classifier"].tolist() == model.predict(X).tolist()
    used = found.settings["posterior"]
    assert (used["classifier"], used["helps"], used["out of fold"]) == (0, False, False)
    assert len(found.suggestions)
    table, _ = suggest(tmp_path / "run", 5)
    assert len(table) == 5


def test_features_of_noise_are_said_not_to_help(problem, tmp_path):
    items = pd.read_csv(problem / "items.csv", dtype={"id": str})[["id"]]
    rng = np.random.default_rng(0)
    items.assign(x=rng.normal(size=len(items)), z=rng.normal(size=len(items))).to_csv(
        tmp_path / "items.csv", index=False
    )
    request = Request((problem / "labels.csv",), tmp_path / "run", tmp_path / "items.csv", epochs=2)
    found = fit(request, lambda line: None, progress=False)
    (note,) = (note for note in found.notes if "features do not help" in note)
    assert re.search(
        r"judged by the labels alone \(likelihood .* 0\.\d+ without, 0\.\d+ with the class", note
    )


def test_the_files_say_what_the_model_says(finished):
    out, found, _ = finished
    model = annotmix.load(out / "model")
    assert not any("do not help" in note for note in found.notes)
    used = found.settings["posterior"]
    assert (used["helps"], used["out of fold"]) == (True, True)
    assert used["likelihood with"] > used["likelihood without"]
    own = ["label", "probability", "n_labels", "agreement"]
    pd.testing.assert_frame_equal(found.items[own], model.consensus(), check_dtype=False, check_exact=True)
    key = ["item", "annotator"]
    said = found.labels.sort_values(key, ignore_index=True)
    quality = model.label_quality().sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(said[quality.columns], quality, check_dtype=False, check_exact=True)
    assert (said["consensus"] == model.consensus()["label"].loc[said["item"]].to_numpy()).all()
    annotators = model.posterior_.annotators
    pd.testing.assert_frame_equal(
        found.annotators[annotators.columns], annotators, check_dtype=False, check_exact=True
    )
    np.testing.assert_array_equal(
        found.confusion.whole, model.posterior_.confusion(annotators.index).to_numpy().reshape(-1, 3, 3)
    )
    for name, table in (("items", found.items), ("annotators", found.annotators), ("labels", found.labels)):
        written = pd.read_csv(out / f"{name}.csv", dtype={"item": str})
        np.testing.assert_allclose(
            written.select_dtypes("number"), table.select_dtypes("number").astype(float), rtol=1e-5
        )


def test_texts_come_with_the_export(problem, tmp_path, monkeypatch):
    exported = [
        {
            "id": n,
            "data": {"text": f"<b>{'good' if n % 2 else 'bad'} film</b> {n}"},
            "annotations": [
                {
                    "completed_by": by,
                    "result": [{"from_name": "q", "value": {"choices": ["+" if n % 2 else "-"]}}],
                }
                for by in (1, 2)
            ],
        }
        for n in range(20)
    ]
    (tmp_path / "export.json").write_text(json.dumps(exported))
    monkeypatch.setenv("ANNOTMIX_CACHE", str(tmp_path / "cache"))
    found = fit(
        Request((tmp_path / "export.json",), tmp_path / "run", epochs=2), lambda line: None, progress=False
    )
    assert found.settings["encoder"] == "text:minilm"
    assert found.previews["3"].text == "<b>good film</b> 3"
    new = tmp_path / "new.csv"
    new.write_text("id,text\nx,a good film\n")
    table, _ = predict(tmp_path / "run", new, progress=False)
    assert table["item"].tolist() == ["x"]
    loaded = annotmix.load(tmp_path / "run" / "model")
    assert loaded.n_features_in_ == 384
    assert RunFolder(tmp_path / "run").read("preparation")[0].kind == "text"


def test_labels_of_a_classifier_that_has_hardly_learnt_come_with_a_warning():
    items = pd.DataFrame({"n_labels": [2, 1, 0], "probability": [0.3, 0.4, 1.0]})
    (doubt,) = doubts(items)
    assert "only 35% sure on average" in doubt
    assert doubts(items.assign(probability=0.9)) == []
    assert doubts(items.assign(n_labels=0)) == []
