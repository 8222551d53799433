"""Questions become tasks of Label Studio, and label files of several formats are one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from helpers.set_crowds import CLASSES, set_crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.labels.set_texts import write_set
from annotmix.reading import Columns, read_labels
from annotmix.reading.values import as_ids
from annotmix.runs import label_studio
from annotmix.runs.folder import RunFolder
from annotmix.runs.label_studio import TaskForm, as_text, make_tasks
from annotmix.runs.suggest import suggest

SAMPLES = Path(__file__).parents[1] / "reading" / "samples" / "label_studio"
runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


def triples(labelled):
    return set(
        labelled.annotations.to_long()[["item", "annotator", "label"]].itertuples(index=False, name=None)
    )


# ---------------------------------------------------------------- tasks


def test_a_task_has_the_item_the_question_and_the_prediction(finished):
    folder, found, _ = finished
    asked, _ = suggest(folder, 5, per_item=2)
    tasks = make_tasks(folder, asked, TaskForm(votes=True))
    assert [task["data"]["annotmix_item"] for task in tasks.tasks] == list(dict.fromkeys(asked["item"]))
    task = tasks.tasks[0]
    item = task["data"]["annotmix_item"]
    own = asked[asked["item"] == item]
    assert task["data"]["annotmix_asked"] == ", ".join(own["annotator"])
    assert (
        task["data"]["features"]["name"] == f"photo {int(item)}"
    )  # columns of the file, not what was learnt from
    votes = found.labels[found.labels["item"] == item]
    assert all(
        f"{row.annotator}: {row.label} (" in task["data"]["annotmix_votes"] for row in votes.itertuples()
    )
    (prediction,) = task["predictions"]
    assert prediction["score"] == pytest.approx(found.items.loc[item, "probability"], abs=1e-6)
    (result,) = prediction["result"]
    assert (result["from_name"], result["to_name"], result["type"]) == ("label", "features", "choices")
    assert result["value"] == {"choices": [found.items.loc[item, "label"]]}
    assert 'value="$features"' in tasks.config()
    assert all(f'<Choice value="{name}"/>' in tasks.config() for name in "abc")


def test_texts_are_whole_while_the_files_are_those_of_the_run(moods, tmp_path):
    asked = pd.DataFrame({"item": ["1", "2"], "annotator": ["3", "3"]})
    tasks = make_tasks(moods / "run", asked, TaskForm(question="mood"))
    assert all(task["data"]["text"].endswith("and so on") for task in tasks.tasks)
    assert tasks.notes == []
    assert tasks.tasks[0]["predictions"][0]["result"][0]["from_name"] == "mood"
    run_file = json.loads((moods / "run" / "run.json").read_text("utf-8"))
    other = shutil.copytree(moods / "run", tmp_path / "run")
    (tmp_path / "other.json").write_text((moods / "old.json").read_text("utf-8") + " ", "utf-8")
    run_file["request"]["labels"] = [str(tmp_path / "other.json")]  # a file that the run does not know
    (other / "run.json").write_text(json.dumps(run_file), "utf-8")
    changed = make_tasks(other, asked)
    assert all(len(task["data"]["text"]) <= 401 for task in changed.tasks)
    assert "2 tasks are shortened" in changed.notes[0]


def test_images_have_the_address_that_labels_or_options_give():
    own = {"/data/upload/1/ab.png": "ab.png", "b c.png": "sub/b c.png"}
    addresses, notes = label_studio._addresses(own, None)
    assert addresses == {"/data/upload/1/ab.png": "/data/upload/1/ab.png", "b c.png": "sub/b c.png"}
    assert "1 images have a name and no address" in notes[0]
    addresses, notes = label_studio._addresses(own, "https://example.org/photos")
    assert addresses["b c.png"] == "https://example.org/photos/sub/b%20c.png"
    assert notes == []


def test_suggest_writes_tasks_and_tables_to_fill_in(finished, tmp_path):
    done = run(
        "suggest",
        finished[0],
        "--budget",
        4,
        "--format",
        "label-studio",
        "--question",
        "genre",
        "--out",
        tmp_path / "t.json",
    )
    assert done.exit_code == 0, done.output
    tasks = json.loads((tmp_path / "t.json").read_text("utf-8"))
    assert {task["predictions"][0]["result"][0]["from_name"] for task in tasks} == {"genre"}
    assert '<Choices name="genre"' in done.stdout
    printed = run(
        "suggest", finished[0], "--budget", 4, "--format", "label-studio", "--question", "genre", "-q"
    )
    assert json.loads(printed.stdout) == tasks
    assert run("suggest", finished[0], "--votes").exit_code == 2
    assert run("suggest", finished[0], "--format", "labelstudio").exit_code == 2


def test_a_filled_table_comes_back(problem, finished, tmp_path):
    run("suggest", finished[0], "--budget", 6, "--annotator", "w0", "--out", tmp_path / "ask.csv")
    table = pd.read_csv(tmp_path / "ask.csv", dtype=str)
    table.loc[:3, "label"] = "b"
    table.to_csv(tmp_path / "ask.csv", index=False)
    before = triples(read_labels([problem / "labels.csv"]))
    labelled = read_labels([problem / "labels.csv", tmp_path / "ask.csv"])
    assert triples(labelled) - before == {(item, "w0", "b") for item in table["item"][:4]}
    assert not labelled.unparsed  # questions without an answer are no answers


def test_items_with_several_classes(tmp_path):
    true, sets = set_crowd(60, 5, 3)
    labels = sets.to_long()
    labels["labels"] = labels["labels"].map(write_set)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    features = pd.DataFrame(
        true.astype(float), index=pd.Index(sets.items, name="item"), columns=list("ABCDE")
    )
    features.to_csv(tmp_path / "items.csv")
    done = run(
        "fit", tmp_path / "labels.csv", "--features", tmp_path / "items.csv", "--multi-label", "--model",
        "logistic", "--out", tmp_path / "run", "-q",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    items = RunFolder(tmp_path / "run").findings().items
    asked = pd.DataFrame({"item": items.index[:10], "annotator": "new"})
    tasks = make_tasks(tmp_path / "run", asked)
    assert 'choice="multiple"' in tasks.config()
    assert tasks.classes == list(CLASSES)
    for task in tasks.tasks:
        (result,) = task["predictions"][0]["result"]
        found = items.loc[task["data"]["annotmix_item"], "label"]
        assert write_set(result["value"]["choices"]) == found
        task |= {"id": 0, "annotations": [{"id": 1, "completed_by": 9, "result": [result]}]}
    (tmp_path / "new.json").write_text(as_text(tasks.tasks), "utf-8")
    joined = read_labels([tmp_path / "labels.csv", tmp_path / "new.json"], columns=Columns(several=True)).sets
    answers = joined.to_long().query("annotator == '9'")
    assert len(answers)
    assert (answers["labels"].map(write_set) == items["label"].loc[answers["item"]].to_numpy()).all()


def test_a_table_with_one_row_per_class_and_an_export(tmp_path):
    rows = [("t1", "7", "x"), ("t1", "7", "y"), ("t2", "7", "x")]
    pd.DataFrame(rows, columns=["item", "annotator", "label"]).to_csv(tmp_path / "old.csv", index=False)
    answer = {"from_name": "label", "type": "choices", "value": {"choices": ["y", "z"]}}
    own = {"id": 1, "completed_by": 7, "result": [answer], "updated_at": "2027-01-01T00:00:00Z"}
    task = {"id": 1, "data": {"annotmix_item": "t2"}, "annotations": [own]}
    (tmp_path / "new.json").write_text(json.dumps([task]), "utf-8")
    for order in (["old.csv", "new.json"], ["new.json", "old.csv"]):
        sets = read_labels([tmp_path / name for name in order], columns=Columns(several=True)).sets
        found = {(row.item, row.annotator, frozenset(row.labels)) for row in sets.to_long().itertuples()}
        assert found == {("t1", "7", frozenset("xy")), ("t2", "7", frozenset("yz"))}


# ---------------------------------------------------------------- files of different formats


def test_labels_of_a_table_and_of_exports_are_one(tmp_path):
    rows = [("t1", "7", "good", "2026-01-01T00:00:00Z"), ("t2", "8", "bad", "2030-01-01T00:00:00Z")]
    pd.DataFrame(rows, columns=["item", "annotator", "label", "time"]).to_csv(
        tmp_path / "old.csv", index=False
    )

    def task(number, item, user, choice):
        answer = {"from_name": "label", "type": "choices", "value": {"choices": [choice]}}
        own = {"id": number, "completed_by": user, "result": [answer], "updated_at": "2027-01-01T00:00:00Z"}
        return {"id": number, "data": {"text": f"text {item}", "annotmix_item": item}, "annotations": [own]}

    tasks = [task(1, "t1", 7, "bad"), task(2, "t2", 8, "good"), task(3, "t3", 8, "good")]
    (tmp_path / "new.json").write_text(json.dumps(tasks), "utf-8")
    expected = {("t1", "7", "bad"), ("t2", "8", "bad"), ("t3", "8", "good")}
    for order in (["old.csv", "new.json"], ["new.json", "old.csv"]):
        labelled = read_labels([tmp_path / name for name in order])
        assert triples(labelled) == expected
        assert labelled.texts["t3"] == "text t3"
    assert labelled.format == "label-studio and long"
    wide = pd.DataFrame(
        {"id": ["t1", "t2", "t4"], "ann": ["good", "bad", "bad"], "ben": ["good", "", "good"]}
    )
    wide.to_csv(tmp_path / "wide.csv", index=False)
    for order in (["wide.csv", "new.json"], ["new.json", "wide.csv"]):
        labelled = read_labels([tmp_path / name for name in order])
        assert len(labelled.annotations) == 5 + 3
        assert set(labelled.annotations.annotators) == {"ann", "ben", "7", "8"}


@settings(max_examples=40, deadline=None)
@given(
    names=st.lists(st.text(min_size=1, max_size=12).filter(str.strip), min_size=1, max_size=5, unique=True),
    data=st.data(),
)
def test_any_item_comes_back_from_an_export(names, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    chosen = [data.draw(st.sampled_from("ab")) for _ in names]
    answers = [{"from_name": "label", "type": "choices", "value": {"choices": [own]}} for own in chosen]
    tasks = [
        {
            "id": n,
            "data": {"annotmix_item": name},
            "annotations": [{"id": n, "completed_by": 1, "result": [own]}],
        }
        for n, (name, own) in enumerate(zip(names, answers, strict=True))
    ]
    (folder / "export.json").write_text(json.dumps(tasks), "utf-8")
    texts, _ = as_ids(names)
    found = {item: label for item, _, label in triples(read_labels([folder / "export.json"]))}
    kept = [(own, label) for own, label in zip(texts.tolist(), chosen, strict=True) if own is not None]
    assert set(found) == {own for own, _ in kept}
    assert all((item, label) in kept for item, label in found.items())


def test_tables_of_our_tasks_need_no_question(tmp_path):
    """With one annotation per task nothing tells answers from data but the names that tasks have."""
    rows = [
        {
            "annotmix_asked": "w1", "annotmix_item": f"i{n}", "annotmix_question": "Which?",
            "annotmix_votes": "none", "annotation_id": n, "annotator": 4, "features": "{}", "id": n,
            "created_at": "2026-01-01T00:00:00Z", "label": "ab"[n % 2], "lead_time": 1,
            "updated_at": "2026-01-01T00:00:00Z",
        }
        for n in range(6)
    ]  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "export.csv", index=False)
    assert triples(read_labels([tmp_path / "export.csv"])) == {(f"i{n}", "4", "ab"[n % 2]) for n in range(6)}


def test_new_answers_about_images_join_the_old_ones(data_file, tmp_path):
    old = data_file("label_studio/img_JSON.json")
    tasks = json.loads(old.read_text("utf-8"))
    for number, task in enumerate(tasks, start=500):  # another project has other numbers
        task |= {
            "id": number,
            "data": {"image": task["data"]["image"], "annotmix_item": task["data"]["image"]},
        }
        task["annotations"] = task["annotations"][:1]
        task["annotations"][0] |= {"completed_by": 99}
    (tmp_path / "new.json").write_text(json.dumps(tasks), "utf-8")
    before = triples(read_labels([old], columns=Columns(item="image")))
    after = triples(read_labels([old, tmp_path / "new.json"], columns=Columns(item="image")))
    assert before < after
    assert len(after - before) == 60
    assert {own[0] for own in after} == {own[0] for own in before}
