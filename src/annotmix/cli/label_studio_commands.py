"""Commands that exchange questions and labels with a server of Label Studio: push, pull."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from annotmix.cli import options
from annotmix.cli.errors import MISTAKES, Output, interruptible, one_line


def push(
    run: options.Run,
    url: options.Url,
    project: Annotated[
        int | None,
        typer.Option(help="Number of the project; by default the one that the run has used, else a new one."),
    ] = None,
    budget: options.Budget = 200,
    annotator: options.Available = None,
    annotators: options.AvailableTable = None,
    per_item: options.PerItem = 1,
    per_annotator: options.PerAnnotator = None,
    question: options.Question = None,
    to_name: options.ToName = None,
    image_url: options.ImageUrl = None,
    votes: options.Votes = False,
    insecure: options.Insecure = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Send the items to label next to Label Studio, as tasks with the label found as a prediction.

    The environment variable LABEL_STUDIO_API_KEY holds the token. Items that the project has already are not
    sent again, so that the same command continues after an interruption.

    Example: annotmix push my-run --url https://labels.example.org --project 7
    """
    output = Output(quiet, as_json)
    with one_line(*MISTAKES), interruptible(lambda: "The same command continues; no task is sent twice."):
        from annotmix.runs.label_studio import TaskForm
        from annotmix.runs.label_studio_api import connect
        from annotmix.runs.label_studio_exchange import push as push_tasks
        from annotmix.runs.suggest import suggest as suggest_labels

        server = connect(url, insecure)
        table, notes = suggest_labels(
            run,
            budget,
            available=annotators,
            annotators=annotator or None,
            per_item=per_item,
            per_annotator=per_annotator,
        )
        form = TaskForm(question, to_name, image_url=image_url, votes=votes)
        pushed = push_tasks(
            run, server, table, project=project, form=form, say=output.say, progress=not quiet
        )
        for note in (*notes, *pushed.notes):
            output.say(note)
        there = f"; {pushed.known} were in the project already" if pushed.known else ""
        output.say(f"{pushed.sent} tasks sent{there}: {pushed.url}")
        output.document(asdict(pushed))


def pull(
    url: options.Url,
    project: Annotated[int, typer.Option(help="Number of the project.")],
    out: Annotated[Path, typer.Option(help="JSON file, which annotmix fit reads.")],
    emails: Annotated[
        bool, typer.Option("--emails", help="Name annotators by their e-mail addresses, not their numbers.")
    ] = False,
    insecure: options.Insecure = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Fetch the labels of a project of Label Studio.

    The environment variable LABEL_STUDIO_API_KEY holds the token.

    Example: annotmix pull --url https://labels.example.org --project 7 --out labels.json
    """
    output = Output(quiet, as_json)
    with one_line(*MISTAKES), interruptible(lambda: f"{out} is as it was."):
        from annotmix.runs.label_studio_api import connect
        from annotmix.runs.label_studio_exchange import pull as pull_labels

        tasks, annotations = pull_labels(connect(url, insecure), project, out, emails, not quiet)
        output.say(f"{annotations} annotations of {tasks} tasks: {out}")
        output.document({"project": project, "tasks": tasks, "annotations": annotations, "out": str(out)})
