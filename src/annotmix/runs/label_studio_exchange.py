"""Questions go to a project of Label Studio, and answers come back.

What was sent is asked of the server: before tasks are sent, the items of the project's tasks are listed, and
so they are after every request whose answer was lost. `RUN/label-studio.json` says which project a run uses,
and which items were under way when a process was killed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pandas as pd

from annotmix._common.files import write_json, write_text
from annotmix._common.locks import hold
from annotmix._common.progress import Progress
from annotmix._common.schema import Strict, read_json
from annotmix._common.words import did_you_mean, some
from annotmix.reading.formats.label_studio_tables import ITEM_FIELD
from annotmix.runs.folder import RunFolder
from annotmix.runs.label_studio import TaskForm, Tasks, as_text, make_tasks
from annotmix.runs.label_studio_api import PAGE, LabelStudio, Record, UncertainError

STATE = "label-studio.json"
#: Tasks that are sent at once.
BATCH = 50
#: Seconds after which a request whose answer was lost has been dealt with, and how often it is sent.
SETTLED, ATTEMPTS = 5.0, 4


class SavedProject(Strict):
    """The project of a run on one server; `number` is None while the project is being made."""

    title: str
    number: int | None = None
    sending: list[str] = msgspec.field(default_factory=list)


class SavedState(Strict):
    """The content of `label-studio.json`: the projects of a run by the address of their server."""

    format: Literal[1] = 1
    projects: dict[str, SavedProject] = msgspec.field(default_factory=dict)


@dataclass(frozen=True)
class Pushed:
    """The result of `push`.

    Parameters
    ----------
    project : int
    url : str
        The project's page.
    sent : int
        Tasks that are new in the project.
    known : int
        Tasks that were there before, as their items were.
    notes : list of str
    """

    project: int
    url: str
    sent: int
    known: int
    notes: list[str]


def push(
    run: Path,
    server: LabelStudio,
    suggestions: pd.DataFrame,
    *,
    project: int | None = None,
    form: TaskForm | None = None,
    say: Callable[[str], None] = lambda line: None,
    progress: bool = False,
) -> Pushed:
    """Send questions as tasks to a project; items that it has already are not sent again.

    Parameters
    ----------
    run : Path
    server : LabelStudio
    suggestions : DataFrame
        Columns `item` and `annotator`, best first.
    project : int, optional
        By default the project that an earlier push of this run has used, else a new one.
    form : TaskForm, optional
        Names of the project; those that are not given follow the project's configuration.
    say : callable
        Called with lines about what happens.
    progress : bool
    """
    RunFolder(run).require()
    if suggestions.empty:
        raise ValueError(
            "There is nothing to ask: the annotators have labelled all items. Name further ones in a table, "
            "such as a reviewer: --annotators FILE."
        )
    busy = f"Another annotmix push is sending questions of {str(run)!r}"
    with hold(run / ".push.lock", 0, busy, "Wait for it."):
        state = _State(run, server.url)
        number = state.saved.number if project is None and state.saved else project
        if number is not None:
            form, choices = _fitting(server.project(number), form or TaskForm(), number)
            tasks = make_tasks(run, suggestions, form, progress)
            _require_choices(tasks.classes, choices, number)
        else:
            tasks = make_tasks(run, suggestions, form, progress)
            title = (
                state.saved.title if state.saved else f"annotmix {run.resolve().name} {secrets.token_hex(4)}"
            )
            state.save(
                SavedProject(title[-50:])
            )  # before the request, so that a kill makes no second project
            # an annotator who sees the label found gives no independent label
            number = server.create_project(title[-50:], tasks.config(), tasks.most_asked, tasks.form.votes)
            say(f"Project {number} is new: {title[-50:]}")
        saved = state.saved
        if saved is None or saved.number != number:
            saved = SavedProject(saved.title if saved and saved.number is None else "", number)
            state.save(saved)
        sent, known = _send(server, state, saved, number, tasks, progress)
    return Pushed(number, f"{server.url}/projects/{number}/data", sent, known, tasks.notes)


def pull(
    server: LabelStudio, project: int, out: Path, emails: bool = False, progress: bool = False
) -> tuple[int, int]:
    """Write a project's annotated tasks as a JSON export; returns the numbers of tasks and annotations.

    Parameters
    ----------
    server : LabelStudio
    project : int
    out : Path
    emails : bool
        Name annotators by their e-mail addresses in place of their numbers.
    progress : bool
    """
    server.project(project)
    annotated = [
        task["id"] for task in server.tasks(project) if task.get("total_annotations", 1) and "id" in task
    ]
    names = server.emails() if emails else {}
    tasks = list[Record]()
    with Progress("fetching labels", len(annotated), show=progress) as bar:
        for start in range(0, len(annotated), PAGE):
            batch = annotated[start : start + PAGE]
            tasks += server.export(project, batch)
            bar.advance(steps=len(batch))
    annotations = [own for task in tasks for own in task.get("annotations") or [] if isinstance(own, dict)]
    if not annotations:
        raise ValueError(f"Project {project} has no annotations yet.")
    for own in annotations:
        by = own.get("completed_by")
        if isinstance(by, int) and by in names:
            own["completed_by"] = {"id": by, "email": names[by]}
    write_text(out, as_text(tasks))
    return len(tasks), len(annotations)


class _State:
    """The state file of a run, for one server."""

    def __init__(self, run: Path, url: str):
        self._path, self._url = run / STATE, url
        self._state = read_json(self._path, SavedState) if self._path.exists() else SavedState()

    @property
    def saved(self) -> SavedProject | None:
        """The project on this server."""
        return self._state.projects.get(self._url)

    def save(self, project: SavedProject) -> None:
        """Keep the project; it is on the disk afterwards."""
        self._state.projects[self._url] = project
        write_json(self._path, msgspec.to_builtins(self._state))


def _send(
    server: LabelStudio, state: _State, saved: SavedProject, number: int, tasks: Tasks, progress: bool
) -> tuple[int, int]:
    """Send the tasks whose items are not in the project; returns the numbers of new and of known tasks."""
    there = _items(server, number)
    if not there.issuperset(saved.sending):
        server.wait(SETTLED)  # a request of a killed process may still be under way
        there = _items(server, number)
    todo = {task["data"][ITEM_FIELD]: task for task in tasks.tasks if task["data"][ITEM_FIELD] not in there}
    items = list(todo)
    with Progress("sending questions", len(items), show=progress) as bar:
        for start in range(0, len(items), BATCH):
            batch = items[start : start + BATCH]
            state.save(SavedProject(saved.title, number, batch))
            _send_batch(server, number, {item: todo[item] for item in batch})
            bar.advance(steps=len(batch))
    state.save(SavedProject(saved.title, number))
    return len(items), len(tasks.tasks) - len(items)


def _send_batch(server: LabelStudio, number: int, batch: Mapping[str, Record]) -> None:
    """Send tasks; where an answer is lost, those that have not arrived are sent again."""
    left = dict(batch)
    for attempt in range(ATTEMPTS):
        try:
            server.import_tasks(number, list(left.values()))
            return
        except UncertainError:
            if attempt == ATTEMPTS - 1:
                raise
            server.wait(SETTLED)
            there = _items(server, number)
            left = {item: task for item, task in left.items() if item not in there}
            if not left:
                return


def _items(server: LabelStudio, number: int) -> set[str]:
    """The items that tasks of a project are about."""
    data = (task.get("data") for task in server.tasks(number))
    return {str(own[ITEM_FIELD]) for own in data if isinstance(own, dict) and ITEM_FIELD in own}


def _fitting(project: Record, form: TaskForm, number: int) -> tuple[TaskForm, list[str]]:
    """The names of tasks as a project's configuration has them, and its choices."""
    config = project.get("parsed_label_config")
    tags: dict[str, Any] = config if isinstance(config, dict) else {}
    questions = {
        name: own for name, own in tags.items() if isinstance(own, dict) and own.get("type") == "Choices"
    }
    name = form.question if form.question is not None or len(questions) != 1 else next(iter(questions))
    if name is None or name not in questions:
        wanted = "" if name is None else f" none called {name!r},{did_you_mean(name, questions)}"
        raise ValueError(
            f"Project {number} has{wanted or ' no single question:'} its questions with choices are "
            f"{some(list(questions)) if questions else 'none'}. Choose one with --question NAME."
        )
    own = questions[name]
    shown, inputs = own.get("to_name"), own.get("inputs")
    if not (isinstance(shown, list) and shown and isinstance(inputs, list) and inputs):
        raise ValueError(f"The question {name!r} of project {number} is about no item (toName).")
    field = inputs[0].get("value") if isinstance(inputs[0], dict) else None
    named = replace(form, question=name, shown=form.shown or str(shown[0]), field=form.field or field)
    labels = own.get("labels")
    return named, [str(label) for label in labels] if isinstance(labels, list) else []


def _require_choices(classes: Sequence[str], choices: Sequence[str], number: int) -> None:
    if lost := [name for name in classes if name not in choices]:
        raise ValueError(
            f"Project {number} lacks the choices {some(lost)}; it has {some(list(choices))}. Add them to its "
            "labelling configuration, or leave out --project for a new project."
        )
