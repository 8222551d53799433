"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annotmix.reading.formats import FORMATS

Labels = Annotated[
    list[Path],
    typer.Argument(
        help="Files with labels, or a folder of them (CSV, TSV, Excel, Parquet, JSON, JSON Lines; also .gz "
        f"and .zip): {'; '.join(entry.title for entry in FORMATS.values())}. Several tables without a column "
        "of annotators are one per annotator, named after the file."
    ),
]
Run = Annotated[Path, typer.Argument(help="The folder of a run, made by annotmix fit.")]
Format = Annotated[
    str | None,
    typer.Option("--format", help=f"{', '.join(FORMATS)}; by default the content decides."),
]
Item = Annotated[
    str | None, typer.Option("--item", help="Column (or field) of the labels that names the item.")
]
Annotator = Annotated[str | None, typer.Option("--annotator", help="Column that names the annotator.")]
Label = Annotated[
    str | None, typer.Option("--label", help="Column of the label; in Label Studio, the question.")
]
Weight = Annotated[
    str | None,
    typer.Option("--weight", help="Column by which labels count, such as a confidence from 0 to 1."),
]
Missing = Annotated[
    list[str] | None, typer.Option("--missing", help="A label that stands for no label; can be repeated.")
]
Annotators = Annotated[
    list[str] | None,
    typer.Option(
        "--annotators",
        metavar="NAMES|FILE",
        help="Who the annotators are: a table with annotator, kind (people, models or rules) and whatever "
        "else is known (model, prompt, group, cost of a label); or the columns of the annotators in a table "
        "with one column per annotator, separated by commas. By default they are recognised.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES", help="Columns that are no annotators, in a table with one column per annotator."
    ),
]
FoldCase = Annotated[
    bool, typer.Option("--fold-case", help="Cat, cat and CAT are one class, spelt as most labels spell it.")
]
RenameClasses = Annotated[
    Path | None,
    typer.Option(
        "--rename-classes", help="Table with the columns old and new; an empty new makes no label of it."
    ),
]
MultiLabel = Annotated[
    bool,
    typer.Option(
        "--multi-label", help="Answers name any number of classes: every item gets the set of its classes."
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter", help="With --multi-label: separates classes in a cell; by default it is recognised."
    ),
]
NoClass = Annotated[
    list[str] | None,
    typer.Option(
        "--no-class",
        help="With --multi-label: a word for an answer without a class, besides [] and (none); can be "
        'repeated; "" is an empty cell.',
    ),
]
Soft = Annotated[
    bool,
    typer.Option(
        "--soft",
        help="Probabilities of the labels that the crowd would give, not of one right class: for opinions.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 1, help="The same seed gives the same result.")]
Csv = Annotated[Path | None, typer.Option(help="CSV file; without it, stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
ItemColumn = Annotated[
    str | None, typer.Option("--item-column", help="Column of the features or texts that names the item.")
]
TextColumn = Annotated[str | None, typer.Option("--text-column", help="Column of the texts.")]
Ids = Annotated[Path | None, typer.Option("--ids", help="Ids of the rows of an NPY array, one per line.")]
Budget = Annotated[float, typer.Option(min=1, help="Number of labels; with costs, the amount of money.")]
Available = Annotated[
    list[str] | None,
    typer.Option("--annotator", help="An available annotator; can be repeated; by default all annotators."),
]
AvailableTable = Annotated[
    Path | None,
    typer.Option(
        "--annotators",
        help="Table of available annotators, also new ones: annotator and, where wanted, cost (of a "
        "label) and load (maximum number of labels). By default the table that the run was made with.",
    ),
]
PerItem = Annotated[int, typer.Option(min=1, help="Most suggestions for one item.")]
PerAnnotator = Annotated[
    int | None,
    typer.Option(
        min=1, help="Most suggestions for one annotator; by default twice an equal share of the budget."
    ),
]
Question = Annotated[
    str | None, typer.Option("--question", help="Name of the choices in Label Studio; by default label.")
]
ToName = Annotated[
    str | None,
    typer.Option(
        "--to-name",
        help="Name of the tag that shows the item in Label Studio; by default text, image or features.",
    ),
]
ImageUrl = Annotated[
    str | None,
    typer.Option("--image-url", help="Where images lie, for Label Studio: the beginning of their addresses."),
]
Votes = Annotated[
    bool, typer.Option("--votes", help="Show the votes so far in Label Studio, as for a review.")
]
Url = Annotated[str, typer.Option("--url", help="Address of Label Studio: https://labels.example.org")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Send the token over plain http to another machine.")
]
