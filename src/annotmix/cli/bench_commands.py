"""`annotmix bench`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from annotmix.cli.errors import one_line

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run studies; show their results.\n\nExample: annotmix bench run quick",
)

StudyName = Annotated[str, typer.Argument(help="benchmark, ablation, noise, curves, quick, or a YAML file.")]
StoreFile = Annotated[Path, typer.Option(help="The result store.")]
Datasets = Annotated[str, typer.Option(help="Only these datasets of the study, with commas between them.")]
Approaches = Annotated[str, typer.Option(help="Only these approaches of the study, by name or label.")]
Seeds = Annotated[int | None, typer.Option(min=1, help="Only this many first seeds of the study.")]
Modules = Annotated[
    list[str] | None, typer.Option("--import", help="A module to import, with approaches of your own.")
]
DEFAULT_STORE = Path("annotmix-bench.sqlite")


class Epoch(StrEnum):
    """After which epoch."""

    last = "last"
    best = "best"
    both = "both"

    @property
    def chosen(self) -> tuple[str, ...]:
        """The chosen epochs."""
        return ("last", "best") if self is Epoch.both else (self.value,)


class Form(StrEnum):
    """How tables are written."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"
    latex = "latex"


AfterEpoch = Annotated[Epoch, typer.Option(help="After which epoch.")]
Format = Annotated[Form, typer.Option("--format", help="How the result is written.")]
OutFile = Annotated[Path | None, typer.Option(help="Write it to this file.")]


@bench.command()
def run(
    study: StudyName,
    datasets: Datasets = "",
    approaches: Approaches = "",
    seeds: Seeds = None,
    store: StoreFile = DEFAULT_STORE,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files; else ANNOTMIX_DATA, else the cache.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Local processes, one thread each; by default one per core.")
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, tcp://…")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Do failed runs again.")] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Do runs again that another version of the code did.")
    ] = False,
    modules: Modules = None,
) -> None:
    """Do the missing runs of a study.

    A run that is in the store is not done again: a study that was stopped or killed resumes where it was.

    Example: annotmix bench run quick
    """
    with one_line(OSError, ValueError, ImportError):
        from annotmix.bench import driver

        chosen = _study(study, datasets, approaches, seeds, modules)
        try:
            outcome = driver.run_study(
                chosen,
                store,
                data_dir=data,
                workers=workers,
                scheduler=scheduler,
                retry=retry,
                again=again,
                modules=modules or [],
            )
        except KeyboardInterrupt:
            typer.echo("Stopped. The same command resumes from here.", err=True)
            raise typer.Exit(130) from None
    typer.echo(str(outcome))
    if outcome.failed or outcome.failed_before:
        raise typer.Exit(1)


def _study(study: str, datasets: str, approaches: str, seeds: int | None, modules: list[str] | None) -> Any:
    from annotmix.bench import driver, study_files

    driver.import_modules(modules or [])
    return study_files.read_study(study).narrowed(_names(datasets), _names(approaches), seeds)


def _results(
    study: str, datasets: str, approaches: str, seeds: int | None, modules: list[str] | None, store: Path
) -> Any:
    from annotmix.bench.results import collect
    from annotmix.bench.store import Store

    chosen = _study(study, datasets, approaches, seeds, modules)
    with Store(store) as opened:
        return collect(chosen, opened)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


@bench.command()
def tables(
    study: StudyName,
    score: Annotated[
        str,
        typer.Option(help="clf-acc, perf-auroc, annot-acc, consensus-acc, or with its set: train/clf-acc."),
    ] = "clf-acc",
    epoch: AfterEpoch = Epoch.both,
    paper: Annotated[bool, typer.Option("--paper", help="The paper's figures beside ours.")] = False,
    form: Format = Form.terminal,
    out: OutFile = None,
    datasets: Datasets = "",
    approaches: Approaches = "",
    seeds: Seeds = None,
    store: StoreFile = DEFAULT_STORE,
    modules: Modules = None,
) -> None:
    """Print the paper's tables from the store: mean ± std over the seeds.

    Example: annotmix bench tables benchmark --score perf-auroc --paper --format markdown
    """
    with one_line(OSError, ValueError, ImportError):
        from annotmix.bench import score_tables, sheets

        collected = _results(study, datasets, approaches, seeds, modules, store)
        made = score_tables.make_tables(collected, score, epoch.chosen, paper)
        _write(sheets.render(made, form.value), out)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
        return
    from annotmix._common.files import write_atomically

    write_atomically(out, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    typer.echo(f"Written: {out}")


@bench.command()
def stats(
    source: Annotated[
        str, typer.Argument(help="A study, as for run, or a CSV: columns approach, dataset, a score, epoch.")
    ],
    score: Annotated[str, typer.Option(help="The score, or its column in the CSV.")] = "",
    against: Annotated[
        str, typer.Option(help="The approach that all others are compared with.")
    ] = "annot-mix",
    exclude: Annotated[str, typer.Option(help="Approaches to leave out, with commas.")] = "true-base",
    epoch: AfterEpoch = Epoch.both,
    form: Format = Form.terminal,
    out: OutFile = None,
    datasets: Datasets = "",
    approaches: Approaches = "",
    seeds: Seeds = None,
    store: StoreFile = DEFAULT_STORE,
    modules: Modules = None,
) -> None:
    """Mean ranks, Friedman test, and Holm-corrected comparisons with one approach.

    Example: annotmix bench stats my-results.csv --against annot-mix
    """
    with one_line(OSError, ValueError, ImportError):
        from annotmix.bench import ranking, sheets

        if source.lower().endswith(".csv"):
            parts = ranking.from_csv(source, score or None)
        else:
            collected = _results(source, datasets, approaches, seeds, modules, store)
            parts = ranking.from_results(collected, score or "clf-acc", epoch.chosen)
        made = [ranking.rank_sheet(part, against, _names(exclude))[0] for part in parts]
        _write(sheets.render(made, form.value), out)


@bench.command()
def status(
    study: Annotated[str, typer.Argument(help="A study by name; by default the one started last.")] = "",
    errors: Annotated[bool, typer.Option("--errors", help="Tracebacks of failed runs.")] = False,
    store: StoreFile = DEFAULT_STORE,
) -> None:
    """Show finished, running and failed runs, and the time left."""
    with one_line(OSError, ValueError, ImportError):
        from annotmix.bench import sheets, status

        if errors:
            typer.echo(status.tracebacks(store, study or None), nl=False)
        else:
            typer.echo(sheets.terminal(status.status(store, study or None)), nl=False)


@bench.command()
def compare(
    a: Annotated[str, typer.Argument(help="An approach of the study, or a version of the code: a commit.")],
    b: Annotated[str, typer.Argument(help="The same, to compare with.")],
    study: Annotated[str, typer.Option(help="The study whose runs are compared.")] = "benchmark",
    score: Annotated[str, typer.Option(help="As for tables.")] = "clf-acc",
    epoch: AfterEpoch = Epoch.both,
    form: Format = Form.terminal,
    out: OutFile = None,
    datasets: Datasets = "",
    approaches: Approaches = "",
    seeds: Seeds = None,
    store: StoreFile = DEFAULT_STORE,
    modules: Modules = None,
) -> None:
    """Compare two approaches, or two versions of the code, seed by seed.

    Example: annotmix bench compare alpha=1 alpha=0 --study ablation
    """
    with one_line(OSError, ValueError, ImportError):
        from annotmix.bench import comparing, sheets
        from annotmix.bench.store import Store

        chosen = _study(study, datasets, approaches, seeds, modules)
        with Store(store) as opened:
            made = [comparing.compare_two(chosen, opened, a, b, score, e) for e in epoch.chosen]
        _write(sheets.render(made, form.value), out)


@bench.command()
def figures(
    source: Annotated[str, typer.Argument(help="A study, as for run, or a CSV, as for stats.")],
    out: Annotated[Path, typer.Option(help="Folder for the PNG, SVG and PDF files.")] = Path("figures"),
    against: Annotated[
        str, typer.Option(help="The approach in the rank map that others are compared with.")
    ] = "annot-mix",
    exclude: Annotated[
        str, typer.Option(help="Approaches to leave out of ranks, with commas.")
    ] = "true-base",
    datasets: Datasets = "",
    approaches: Approaches = "",
    seeds: Seeds = None,
    store: StoreFile = DEFAULT_STORE,
    modules: Modules = None,
) -> None:
    """Draw the paper's figures: learning curves, α sweep, noise, rank map.

    Example: annotmix bench figures ablation --out figures
    """
    with one_line(OSError, ValueError, ImportError):
        from annotmix.bench import drawing, ranking
        from annotmix.bench.store import Store

        if source.lower().endswith(".csv"):
            parts = ranking.from_csv(source, None)
            for line in drawing.draw_ranks(parts, out, Path(source).stem, against, _names(exclude)):
                typer.echo(line)
            return
        chosen = _study(source, datasets, approaches, seeds, modules)
        with Store(store) as opened:
            for line in drawing.draw_study(chosen, opened, out, against, _names(exclude)):
                typer.echo(line)
