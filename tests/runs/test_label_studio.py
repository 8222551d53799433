"""Questions go to Label Studio and come back: as files, and through a server that answers like a real one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from helpers.fake_label_studio import PERSONAL, TOKEN, running
from helpers.set_crowds import CLASSES, set_crowd
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.labels.set_texts import write_set
from annotmix.reading import Columns, read_labels
from annotmix.reading.values import as_ids
from annotmix.runs import label_studio, label_studio_api, label_studio_exchange
from annotmix.runs.fit import fit
from annotmix.runs.folder import RunFolder
from annotmix.runs.label_studio import TaskForm, as_text, make_tasks
from annotmix.runs.label_studio_api import LabelStudio, RefusedError
from annotmix.runs.label_studio_exchange import STATE, push
from annotmix.runs.request import Request
from annotmix.runs.suggest import suggest

SAMPLES = Path(__file__).parents[1] / "reading" / "samples" / "label_studio"
runner = CliRunner()


def run(*arguments):
    return runner.invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def copied(finished, tmp_path):
    return shutil.copytree(finished[0], tmp_path / "run")


@pytest.fixture
def studio(monkeypatch):
    """A fake server with the token in the environment, and no waiting."""
    monkeypatch.setenv(label_studio_api.TOKEN, TOKEN)
    monkeypatch.setattr(label_studio_api.time, "sleep", lambda seconds: None)
    with running() as (url, state):
        yield url, state


def server(url, token=TOKEN, waited=None):
    return LabelStudio(url, token, wait=(lambda s: None) if waited is None else waited.append, timeout=5)


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


@pytest.fixture(scope="module")
def moods(tmp_path_factory):
    """A run of an export of Label Studio whose texts are longer than those of the report."""
    folder = tmp_path_factory.mktemp("moods")
    tasks = json.loads((SAMPLES / "text_JSON.json").read_text("utf-8"))
    for task in tasks:
        task["data"]["text"] += " and so on" * 50
    (folder / "old.json").write_text(json.dumps(tasks), "utf-8")
    request = Request((folder / "old.json",), folder / "run", label="mood", model="logistic")
    fit(request, lambda line: None, progress=False)
    return folder


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


# ---------------------------------------------------------------- push and pull


def test_push_annotate_pull_fit(studio, moods, tmp_path):
    url, state = studio
    state.add_project(config='<View><Text name="words" value="$body"/><Choices name="mood" toName="words">'
                      '<Choice value="good"/><Choice value="bad"/></Choices></View>')  # fmt: skip
    folder = shutil.copytree(moods / "run", tmp_path / "run")
    arguments = ("push", folder, "--url", url, "--project", 1, "--budget", 2)
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    n = len(state.items(1))
    assert f"{n} tasks sent" in done.stdout
    assert all(task["data"]["body"].endswith("and so on") for task in state.tasks[1])  # the project's field
    assert f"0 tasks sent; {n} were in the project already" in run(*arguments).stdout
    assert (
        "has no annotations yet"
        in run("pull", "--url", url, "--project", 1, "--out", tmp_path / "x.json").stderr
    )
    state.annotate(1, "bad", 3, question="mood")
    done = run("pull", "--url", url, "--project", 1, "--out", tmp_path / "new.json", "--json")
    assert json.loads(done.stdout)["annotations"] == n
    labelled = read_labels([moods / "old.json", tmp_path / "new.json"], columns=Columns(label="mood"))
    assert {own for own in triples(labelled) if own[1] == "3" and own[0] in state.items(1)} == {
        (item, "3", "bad") for item in state.items(1)
    }
    done = run(
        "fit",
        moods / "old.json",
        tmp_path / "new.json",
        "--label",
        "mood",
        "--model",
        "logistic",
        "--out",
        tmp_path / "again",
    )
    assert done.exit_code == 0, done.output
    done = run("pull", "--url", url, "--project", 1, "--out", tmp_path / "named.json", "--emails")
    assert "bea@example.org" in set(read_labels([tmp_path / "named.json"]).annotations.annotators)


def test_without_questions_nothing_is_sent(studio, finished, copied):
    url, state = studio
    with pytest.raises(ValueError, match="nothing to ask"):
        push(copied, server(url), finished[1].suggestions.head(0))
    assert state.requests == []


def test_a_new_project_is_used_again(studio, copied):
    url, state = studio
    assert "Project 1 is new" in run("push", copied, "--url", url, "--budget", 3).stdout
    assert run("push", copied, "--url", url, "--budget", 5).exit_code == 0
    assert len(state.projects) == 1
    assert len(state.items(1)) == len(set(state.items(1))) == 5
    assert state.projects[1]["parsed_label_config"]["label"]["labels"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "failure", [("/import", "lose"), ("/import", 502), ("/import", 429, {"Retry-After": "7"})]
)
def test_a_lost_answer_sends_nothing_twice(studio, finished, copied, failure):
    url, state = studio
    state.failures.append(failure)
    waited: list[float] = []
    asked = finished[1].suggestions.head(8)
    push(copied, server(url, waited=waited), asked)
    assert sorted(state.items(1)) == sorted(asked["item"])
    assert waited == [7.0 if failure[1] == 429 else label_studio_exchange.SETTLED]


@pytest.mark.parametrize("ending", ["/api/projects/", "/import"])
def test_a_killed_push_continues(studio, finished, copied, monkeypatch, ending):
    """The process dies between a request and its answer; the next one makes nothing a second time."""
    url, state = studio
    monkeypatch.setattr(label_studio_exchange, "BATCH", 3)
    asked = finished[1].suggestions.head(8)
    dying = server(url)
    send = dying._once

    def die(method, address, body, authorisation):
        answer = send(method, address, body, authorisation)
        if method == "POST" and address.endswith(ending):
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr(dying, "_once", die)
    with pytest.raises(KeyboardInterrupt):
        push(copied, dying, asked)
    pushed = push(copied, server(url), asked)
    assert len(state.projects) == 1
    assert sorted(state.items(1)) == sorted(asked["item"])
    assert (pushed.sent, pushed.known) == ((5, 3) if ending == "/import" else (8, 0))


def test_a_killed_process_continues(studio, copied):
    """The same with a process that is really killed, while the server does what it was asked."""
    url, state = studio
    code = (
        "import os, sys; from pathlib import Path; from annotmix.runs import label_studio_exchange as e\n"
        "from annotmix.runs.label_studio_api import connect; from annotmix.runs.suggest import suggest\n"
        "s = connect(sys.argv[2]); old = s._once\n"
        "def once(method, address, *more):\n"
        "    answer = old(method, address, *more)\n"
        "    if address.endswith('/import'): os.kill(os.getpid(), 9)\n"
        "    return answer\n"
        "s._once = once; e.BATCH = 3; run = Path(sys.argv[1]); e.push(run, s, suggest(run, 7)[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(copied), url], capture_output=True, timeout=120)
    assert done.returncode == -9, done.stderr
    assert len(json.loads((copied / STATE).read_text("utf-8"))["projects"][url]["sending"]) == 3
    assert run("push", copied, "--url", url, "--budget", 7).exit_code == 0
    assert len(state.projects) == 1
    assert len(state.items(1)) == len(set(state.items(1))) == 7


def test_a_project_must_have_the_question_and_the_choices(studio, finished, copied):
    url, state = studio
    state.add_project()  # with the classes of the recorded one
    asked = finished[1].suggestions.head(2)
    with pytest.raises(ValueError, match="lacks the choices 'a', 'b', 'c'"):
        push(copied, server(url), asked, project=1)
    with pytest.raises(ValueError, match=r"none called 'lable'.*'label'"):
        push(copied, server(url), asked, project=1, form=TaskForm(question="lable"))
    with pytest.raises(ValueError, match="has no project 5"):
        push(copied, server(url), asked, project=5)
    assert state.items(1) == []


# ---------------------------------------------------------------- the token


@pytest.mark.parametrize("status", [400, 401, 403, 404, 500, 302])
@pytest.mark.parametrize("path", ["/api/projects/1", "/import"])
def test_the_token_is_in_no_message(studio, finished, copied, status, path):
    """The server puts the token into its answers."""
    url, state = studio
    choices = "".join(f'<Choice value="{name}"/>' for name in "abc")
    state.add_project(config=f'<Text name="t" value="$t"/><Choices name="label">{choices}')
    headers = {"Location": "http://127.0.0.1:9/elsewhere"}
    state.failures += [(path, status, headers)] * 10
    with pytest.raises((ValueError, OSError)) as wrong:
        push(copied, server(url), finished[1].suggestions.head(2), project=1)
    assert str(status) in str(wrong.value) or "has no project 1" in str(wrong.value)
    assert TOKEN not in str(wrong.value)
    assert not any(TOKEN.encode() in own.read_bytes() for own in copied.rglob("*") if own.is_file())


def test_commands_do_not_print_the_token(studio, copied):
    url, state = studio
    state.failures += [("/api/projects/", 401)]
    wrong = run("push", copied, "--url", url, "--budget", 2)
    assert wrong.exit_code == 1
    assert wrong.stderr.count("Error: ") == 1
    assert "Account & Settings" in wrong.stderr
    assert TOKEN not in wrong.output


def test_reading_is_tried_again(studio):
    url, state = studio
    state.add_project()
    state.failures += [("/1", 503), ("/1", "lose"), ("/1", 429, {"Retry-After": "3"})]
    waited: list[float] = []
    assert server(url, waited=waited).project(1)["id"] == 1
    assert waited == [1.0, 2.0, 3.0]
    state.failures += [("/1", 503)] * 5
    with pytest.raises(RefusedError, match="answers 503"):
        server(url).project(1)


def test_a_personal_token_is_exchanged_and_renewed(studio):
    url, state = studio
    state.add_project()
    personal = server(url, PERSONAL)
    assert personal.project(1)["id"] == 1
    assert state.authorisations[-1] == "Bearer access0"
    state.access.append("another")  # the first one has expired
    assert personal.project(1)["id"] == 1
    assert state.authorisations[-1] == "Bearer access2"
    with pytest.raises(RefusedError, match="does not accept the token") as refused:
        server(url, "wrong.personal.token").project(1)
    assert "wrong.personal" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "match"),
    [
        ("http://labels.example.org", "in the clear"),
        ("ftp://labels.example.org", "expected an address"),
        ("https://", "expected an address"),
        ("https://me:secret@labels.example.org", "without a name and a password"),
        ("https://labels.example.org/?token=x", "alone, without"),
        ("http://127.0.0.1.example.org", "in the clear"),
        ("https://a:b", "expected an address"),
    ],
)
def test_the_token_goes_to_safe_addresses_only(url, match):
    with pytest.raises(ValueError, match=match) as wrong:
        LabelStudio(url, TOKEN)
    assert "secret" not in str(wrong.value)
    assert TOKEN not in str(wrong.value)


def test_without_a_token_nothing_is_sent(monkeypatch, copied):
    monkeypatch.delenv(label_studio_api.TOKEN, raising=False)
    wrong = run("push", copied, "--url", "http://127.0.0.1:9")
    assert "LABEL_STUDIO_API_KEY" in wrong.stderr
    monkeypatch.setenv(label_studio_api.TOKEN, "two words")
    wrong = run("push", copied, "--url", "http://127.0.0.1:9")
    assert "two words" not in wrong.output
    monkeypatch.setenv(label_studio_api.TOKEN, TOKEN)
    monkeypatch.setattr(label_studio_api.time, "sleep", lambda seconds: None)
    wrong = run("pull", "--url", "http://127.0.0.1:9", "--project", 1, "--out", copied / "x.json")
    assert "No answer from http://127.0.0.1:9" in wrong.stderr


@settings(max_examples=60, deadline=None)
@given(
    answer=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda own: (
            st.lists(own, max_size=3)
            | st.dictionaries(
                st.sampled_from(["id", "tasks", "total", "data", "results", "title", "annotmix_item", "x"]),
                own,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_strange_answers_are_refused_or_read(answer):
    strange = LabelStudio("http://127.0.0.1:1", TOKEN, wait=lambda seconds: None)
    strange._once = lambda *_: answer  # type: ignore[method-assign]
    for ask in (
        lambda: (
            label_studio_exchange._items(strange, 1)
            if not isinstance(answer, dict) or answer.get("total") == 0
            else None
        ),
        lambda: strange.create_project("title", "<View/>"),
        lambda: strange.export(1, [1]),
        lambda: label_studio_exchange._fitting(answer, TaskForm(), 1) if isinstance(answer, dict) else None,
        strange.emails,
    ):
        try:
            ask()
        except (ValueError, OSError):
            continue
