"""push and pull, through a server that answers like a real Label Studio."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest
from helpers.fake_label_studio import PERSONAL, TOKEN, running
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from annotmix.cli import app
from annotmix.reading import Columns, read_labels
from annotmix.runs import label_studio_api, label_studio_exchange
from annotmix.runs.label_studio import TaskForm
from annotmix.runs.label_studio_api import LabelStudio, RefusedError
from annotmix.runs.label_studio_exchange import STATE, push

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
