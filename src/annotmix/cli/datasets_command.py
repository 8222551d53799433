"""`annotmix datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annotmix.cli.errors import one_line


def datasets(
    name: Annotated[str, typer.Argument(help="One dataset; without it all are listed.")] = "",
    every: Annotated[bool, typer.Option("--all", help="Table 1 for every dataset.")] = False,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the files; else ANNOTMIX_DATA, else the cache.")
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch missing files of NAME first.")] = False,
    published: Annotated[
        bool, typer.Option("--published", help="Simulate annotators as the published experiments did.")
    ] = False,
) -> None:
    """List the paper's datasets; show their figures beside the paper's.

    Without a name: all datasets, and which of their files are here. With a name or --all: Table 1 of the
    paper beside the figures of the files that are here.

    Example: annotmix datasets mgc --data my-data
    """
    from annotmix.datasets import fetch, loading, overview

    with one_line(OSError, ValueError):
        if name:
            spec = loading.get_spec(name)
            if download:
                fetch.obtain({**spec.files, **spec.item_files}, data)
            typer.echo(overview.describe(name, data, published))
        elif every:
            typer.echo(overview.table(None, data, published))
        else:
            typer.echo(overview.listing(data))
