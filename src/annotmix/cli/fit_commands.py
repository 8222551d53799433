"""Commands that start from labels: fit, aggregate, agreement, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annotmix.cli import options
from annotmix.cli.errors import MISTAKES, Output, interruptible, one_line
from annotmix.runs.request import DEFAULT_APPROACH, EPOCHS, Request, split_names


def fit(
    labels: options.Labels,
    features: Annotated[
        Path | None, typer.Option(help="Features of the items: CSV, TSV, Excel, Parquet, JSON Lines or NPY.")
    ] = None,
    text: Annotated[
        Path | None, typer.Option(help="Texts of the items: a table with a column of texts.")
    ] = None,
    images: Annotated[Path | None, typer.Option(help="Folder with images of the items.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the run.")] = Path("annotmix-run"),
    model: Annotated[
        str,
        typer.Option(
            help="network; logistic or boosting, which take seconds; or auto: the one that predicts held-out "
            "labels best."
        ),
    ] = "network",
    approach: Annotated[
        str, typer.Option(help="How a network learns; see annotmix.list_approaches().")
    ] = DEFAULT_APPROACH,
    epochs: Annotated[int, typer.Option(min=1, help="Times that all labels are seen.")] = EPOCHS,
    seed: options.Seed = 0,
    devices: Annotated[
        int, typer.Option(min=1, help="Processes that train together, one thread or GPU each.")
    ] = 1,
    valid: Annotated[
        Path | None,
        typer.Option(
            help="True labels of some items that only choose the epoch and give scores; never learnt."
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            help="True labels of some items that are learnt and fixed: the items keep them, and annotators "
            "are judged by them. In the same formats as --valid."
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="For texts and images, such as text:minilm or image:efficientnet-lite0."),
    ] = None,
    text_column: options.TextColumn = None,
    ids: options.Ids = None,
    item_column: options.ItemColumn = None,
    include: Annotated[
        list[str] | None, typer.Option(help="A column that is a feature although it is called like a label.")
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="Columns that are no features, and no annotators in a table with one column per annotator; "
            "separated by commas.",
        ),
    ] = None,
    form: options.Format = None,
    item: options.Item = None,
    annotator: options.Annotator = None,
    label: options.Label = None,
    weight: options.Weight = None,
    annotators: options.Annotators = None,
    missing: options.Missing = None,
    fold_case: options.FoldCase = False,
    rename_classes: options.RenameClasses = None,
    multi_label: options.MultiLabel = False,
    delimiter: options.Delimiter = None,
    no_class: options.NoClass = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an unfinished run.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Learn from labels and items: right labels, reliable annotators, items to label next.

    The items are features, texts or images in another file, or texts in a column of the labels' own table.
    Notes say how the files were read, and which option reads them otherwise.

    Example: annotmix fit labels.csv --features items.csv --out my-run
    """
    output = Output(quiet, as_json)
    request = Request(
        labels=tuple(labels), out=out, features=features, ids=ids, text=text, text_column=text_column,
        images=images, format=form, item=item, annotator=annotator, label=label, weight=weight,
        item_column=item_column, missing=tuple(missing or ()), annotators=split_names(annotators or ()),
        fold_case=fold_case, rename_classes=rename_classes, include=tuple(include or ()),
        exclude=split_names(exclude or ()), encoder=encoder, model=model, approach=approach, epochs=epochs,
        valid=valid, gold=gold, seed=seed, devices=devices, resume=resume, overwrite=overwrite,
        multi_label=multi_label, delimiter=delimiter, no_class=tuple(no_class or ()),
    )  # fmt: skip
    with one_line(*MISTAKES), interruptible(lambda: _continue(request)):
        from annotmix.runs.fit import fit as run_fit
        from annotmix.runs.summary import summary, summary_lines

        findings = run_fit(request, output.say, progress=not quiet)
        for line in summary_lines(findings, out):
            output.say(line)
        output.document(summary(findings, out))


def aggregate(
    labels: options.Labels,
    method: Annotated[
        str,
        typer.Option(
            help="posterior (as annotmix fit does it, without a classifier), ds (Dawid–Skene), mv (majority "
            "vote) or crowd-kit:NAME, such as crowd-kit:GLAD."
        ),
    ] = "posterior",
    out: options.Csv = None,
    out_annotators: Annotated[
        Path | None, typer.Option(help="CSV file for the accuracy of every annotator.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processes for Parquet files that do not fit into memory; --out is then a folder."
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, in place of --workers.")
    ] = None,
    seed: options.Seed = 0,
    form: options.Format = None,
    item: options.Item = None,
    annotator: options.Annotator = None,
    label: options.Label = None,
    weight: options.Weight = None,
    annotators: options.Annotators = None,
    exclude: options.Exclude = None,
    missing: options.Missing = None,
    fold_case: options.FoldCase = False,
    rename_classes: options.RenameClasses = None,
    multi_label: options.MultiLabel = False,
    delimiter: options.Delimiter = None,
    no_class: options.NoClass = None,
    soft: options.Soft = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """One label per item with its probability, and the accuracy of annotators, from labels alone.

    Example: annotmix aggregate labels.csv --out consensus.csv --out-annotators annotators.csv
    """
    output = Output(quiet, as_json or out is None)
    with one_line(*MISTAKES), interruptible(lambda: "Nothing was written."):
        from annotmix.reading import Columns
        from annotmix.runs.aggregate import aggregate_file

        columns = Columns(
            item, annotator, label, tuple(missing or ()), weight,
            split_names(annotators or ()), split_names(exclude or ()), fold_case=fold_case,
            several=multi_label, delimiter=delimiter, no_class=tuple(no_class or ()),
        )  # fmt: skip
        if multi_label and (workers is not None or scheduler is not None):
            raise ValueError("--multi-label works in one process; leave out --workers and --scheduler.")
        if workers is not None or scheduler is not None:
            from annotmix.runs.aggregate_parts import aggregate_parts_command

            facts = aggregate_parts_command(
                labels, out, method, columns, workers, scheduler, seed, output.say
            )
            output.document(facts)
            return
        result = aggregate_file(labels, method, seed, form, columns, rename_classes, soft, output.say)
        if out_annotators is not None:
            output.table(result.annotators, out_annotators, as_json=False)
        output.table(result.items, out, as_json, annotators=result.annotators)


def agreement(
    labels: options.Labels,
    level: Annotated[
        str,
        typer.Option(
            help="nominal: classes differ or they do not; ordinal: they have an order; interval: they are "
            "numbers."
        ),
    ] = "nominal",
    order: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            help="The classes from the least to the greatest, separated by commas; by default they are "
            "numbers.",
        ),
    ] = None,
    out_annotators: Annotated[
        Path | None, typer.Option(help="CSV file for the agreement of every annotator with the rest.")
    ] = None,
    out_classes: Annotated[
        Path | None, typer.Option(help="CSV file for the agreement on every class.")
    ] = None,
    out_pairs: Annotated[
        Path | None,
        typer.Option(
            help="CSV file for the agreement of every two annotators, of the 50 with the most labels."
        ),
    ] = None,
    seed: options.Seed = 0,
    form: options.Format = None,
    item: options.Item = None,
    annotator: options.Annotator = None,
    label: options.Label = None,
    weight: options.Weight = None,
    annotators: options.Annotators = None,
    exclude: options.Exclude = None,
    missing: options.Missing = None,
    fold_case: options.FoldCase = False,
    rename_classes: options.RenameClasses = None,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """How far annotators agree: Krippendorff's α, Fleiss' κ, percent; by class, annotator and pair.

    Example: annotmix agreement labels.csv --out-pairs pairs.csv
    """
    output = Output(quiet, as_json)
    with one_line(*MISTAKES), interruptible(lambda: "Nothing was written."):
        from annotmix.reading import Columns
        from annotmix.runs.agreement import agreement_document, agreement_file, agreement_lines

        columns = Columns(
            item, annotator, label, tuple(missing or ()), weight,
            split_names(annotators or ()), split_names(exclude or ()), fold_case=fold_case,
        )  # fmt: skip
        names = split_names(order) if order else None
        result = agreement_file(labels, level, names, seed, form, columns, rename_classes, output.say)
        for line in agreement_lines(result):
            output.say(line)
        for table, path in (
            (result.annotators.reset_index, out_annotators),
            (result.classes.reset_index, out_classes),
            (result.pairs, out_pairs),
        ):
            if path is not None:
                output.table(table(), path, as_json=False)
        if as_json:
            output.document(agreement_document(result))


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files and the run.")] = Path("annotmix-demo"),
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
) -> None:
    """Run fit on digits that a simulated crowd has labelled, and check it against the truth.

    Writes labels, features and true classes of handwritten digits as CSV files, runs annotmix fit and
    annotmix evaluate on them, and says where the report is. Needs no data and no network.

    Example: annotmix demo --out my-folder
    """
    with one_line(*MISTAKES), interruptible(lambda: "Run annotmix demo again to start anew."):
        from annotmix.runs.demo import run_demo

        run_demo(out, Output(quiet, as_json=False).say, seed, progress=not quiet)


def _continue(request: Request) -> str:
    if any(request.out.glob("checkpoint/*/*.safetensors")):
        flags = ("--overwrite", "--resume") if request.overwrite else ("--resume",)
        return f"The training so far is kept. Continue with:\n  {request.command(*flags)}"
    if (request.out / "run.json").is_file():
        return f"No training is left to continue; {request.out} holds a whole run."
    return "Training had not begun; the run left no files."
