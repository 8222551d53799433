"""The command `replace`: may a model replace people?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annotmix.cli import options
from annotmix.cli.errors import MISTAKES, Output, interruptible, one_line
from annotmix.runs.request import split_names


def replace(
    labels: options.Labels,
    annotators: options.Annotators = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="A model; can be repeated. By default those of --annotators FILE."),
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.99,
            help="How much worse than a person a model may be, as it costs less: 0.2 where people are "
            "experts, 0.15 where they are skilled, 0.1 for crowd workers.",
        ),
    ] = 0.2,
    out: options.Csv = None,
    out_people: Annotated[
        Path | None, typer.Option(help="CSV file for the comparison with every single person.")
    ] = None,
    form: options.Format = None,
    item: options.Item = None,
    annotator: options.Annotator = None,
    label: options.Label = None,
    missing: options.Missing = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """May a model replace people? The alternative annotator test (Calderon et al., ACL 2025) of every model.

    A model passes where its winning rate is 1/2 or more: it represents the people at least as well as half of
    them do. Among models that pass, take the one with the greatest advantage.

    Example: annotmix replace labels.csv --annotators who.csv --epsilon 0.15
    """
    output = Output(quiet, as_json or out is None)
    with one_line(*MISTAKES), interruptible(lambda: "Nothing was written."):
        from annotmix.reading import Columns
        from annotmix.runs.replace import replace_file

        columns = Columns(
            item, annotator, label, tuple(missing or ()), annotators=split_names(annotators or ())
        )
        result = replace_file(labels, form, columns, model or (), epsilon)
        for note in result.notes:
            output.say(note)
        if out_people is not None:
            output.table(result.people, out_people, as_json=False)
        output.table(result.models, out, as_json, people=result.people)
