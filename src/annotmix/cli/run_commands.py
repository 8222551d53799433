"""Commands about a finished run: predict, evaluate, suggest, report, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from annotmix.cli import options
from annotmix.cli.errors import MISTAKES, Output, interruptible, one_line

_NOTHING = "The run is as it was."


def predict(
    run: options.Run,
    file: Annotated[Path, typer.Argument(help="New items, in the form the run was made with.")],
    out: options.Csv = None,
    ids: options.Ids = None,
    item_column: options.ItemColumn = None,
    text_column: options.TextColumn = None,
    soft: options.Soft = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Classes of new items, by the classifier of a run.

    Example: annotmix predict my-run new-items.csv --out predictions.csv
    """
    output = Output(quiet, as_json or out is None)
    with one_line(*MISTAKES), interruptible(lambda: _NOTHING):
        from annotmix.runs.predict import predict as predict_items

        table, notes = predict_items(run, file, ids, item_column, text_column, not quiet, soft)
        for note in notes:
            output.say(note)
        output.table(table, out, as_json)


def evaluate(
    run: options.Run,
    truth: Annotated[Path, typer.Option(help="Table with the true labels of some or all items.")],
    item: Annotated[str | None, typer.Option(help="Its column that names the item.")] = None,
    label: Annotated[str | None, typer.Option(help="Its column with the true label.")] = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Score a run on true labels; the report shows the scores from then on.

    Example: annotmix evaluate my-run --truth truth.csv
    """
    output = Output(quiet, as_json)
    with one_line(*MISTAKES), interruptible(lambda: _NOTHING):
        from annotmix.reading import Columns
        from annotmix.runs.evaluate import evaluate as evaluate_run
        from annotmix.runs.summary import score_lines

        findings = evaluate_run(run, truth, Columns(item=item, label=label))
        for line in score_lines(findings):
            output.say(line)
        output.document({"run": str(run), "scores": findings.scores})


def suggest(
    run: options.Run,
    budget: options.Budget = 200,
    out: Annotated[
        Path | None, typer.Option(help="CSV file, or the file of Label Studio's tasks; without it, stdout.")
    ] = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", help="csv, with an empty column for the label, or label-studio, for its tasks."
        ),
    ] = "csv",
    annotator: options.Available = None,
    annotators: options.AvailableTable = None,
    per_item: options.PerItem = 1,
    per_annotator: options.PerAnnotator = None,
    question: options.Question = None,
    to_name: options.ToName = None,
    image_url: options.ImageUrl = None,
    votes: options.Votes = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Suggest the items to label next, and the annotators to label them.

    Example: annotmix suggest my-run --budget 200 --out ask.csv
    """
    if form not in ("csv", "label-studio"):
        raise typer.BadParameter(f"{form!r}; expected csv or label-studio.", param_hint="--format")
    tasks_wanted = form == "label-studio"
    if not tasks_wanted and (question or to_name or image_url or votes):
        raise typer.BadParameter(
            "these are for --format label-studio.", param_hint="--question, --to-name, --image-url, --votes"
        )
    output = Output(quiet, as_json or out is None)
    with one_line(*MISTAKES), interruptible(lambda: _NOTHING):
        from annotmix.runs.suggest import suggest as suggest_labels

        table, notes = suggest_labels(
            run,
            budget,
            available=annotators,
            annotators=annotator or None,
            per_item=per_item,
            per_annotator=per_annotator,
        )
        for note in notes:
            output.say(note)
        if not tasks_wanted:
            output.table(table if out is None else table.assign(label=""), out, as_json)
            return
        from annotmix._common.files import write_text
        from annotmix.runs.label_studio import TaskForm, as_text, make_tasks

        tasks = make_tasks(
            run,
            table,
            TaskForm(question, to_name, image_url=image_url, votes=votes),
            progress=not quiet,
        )
        for note in tasks.notes:
            output.say(note)
        if out is None:
            typer.echo(as_text(tasks.tasks), nl=False)
            return
        write_text(out, as_text(tasks.tasks))
        output.say(f"{len(tasks.tasks)} tasks: {out}")
        output.say("A labelling configuration that fits them:")
        output.say(tasks.config())
        output.document({"tasks": len(tasks.tasks), "out": str(out), "config": tasks.config()})


def report(
    run: options.Run,
    out: Annotated[Path | None, typer.Option(help="HTML file; by default report.html in the run.")] = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Write the report of a run again.

    Example: annotmix report my-run --out page.html
    """
    output = Output(quiet, as_json)
    with one_line(*MISTAKES), interruptible(lambda: _NOTHING):
        from annotmix.runs.report_again import write_report_again

        path = write_report_again(run, out)
        output.say(f"Report: {path}  ({path.resolve().as_uri()})")
        output.document({"run": str(run), "report": str(path)})


def export(
    run: options.Run,
    onnx: Annotated[
        Path | None,
        typer.Option("--onnx", help="ONNX file of the classifier; FILE.json describes its input."),
    ] = None,
    soft: Annotated[
        Path | None,
        typer.Option(
            "--soft", help="CSV file of the labels that the crowd would give every item of the run."
        ),
    ] = None,
    with_encoder: Annotated[
        bool, typer.Option("--with-encoder", help="Include the encoder of images: the input is then pixels.")
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Write the classifier of a run as ONNX, checked against the original, or the crowd's soft labels.

    A classifier of texts or images takes the features of its encoder; --with-encoder includes the encoder
    image:efficientnet-lite0.

    Example: annotmix export my-run --onnx classifier.onnx
    """
    output = Output(quiet, as_json)
    with one_line(*MISTAKES), interruptible(lambda: _NOTHING):
        if onnx is None and soft is None:
            raise ValueError(
                "Say what to export: --onnx FILE for the classifier, --soft FILE for soft labels."
            )
        facts: dict[str, Any] = {}
        if onnx is not None:
            from annotmix.runs.exportable import require_exportable

            require_exportable(run, with_encoder)  # before the soft labels are computed
        if soft is not None:
            from annotmix._common.words import count
            from annotmix.runs.conclusions import disagreement
            from annotmix.runs.crowd_labels import write_soft_labels

            n_items, crowd = write_soft_labels(run, soft)
            output.say(disagreement(crowd.rise))
            output.say(f"{count(n_items, 'row')}: {soft}")
            facts |= {"soft": str(soft), "items": n_items, "rise": crowd.rise}
        if onnx is None:
            output.document(facts)
            return
        from annotmix.runs.export import export_onnx

        facts |= export_onnx(run, onnx, with_encoder)
        checked = facts["checked"]
        output.say(facts["input"]["meaning"])
        output.say(
            f"Classifier: {onnx}, described in {onnx}.json. On {checked['items']} items of the run no "
            f"probability differs from the original by more than {checked['largest difference']:.1e}."
        )
        output.document(facts)
