"""The figures of a study, and their files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from annotmix.bench import figures, ranking
from annotmix.bench.results import EPOCHS, collect
from annotmix.bench.store import Store
from annotmix.bench.study import Study

CURVES = ("test/clf-acc", "train/annot-acc")


def draw_study(
    study: Study, store: Store, folder: Path, against: str, exclude: Sequence[str]
) -> Iterator[str]:
    """Draw all figures that fit a study; yields a line about every file written and every figure left out.

    Learning curves of a study with history; the α sweep of one that varies α; accuracy against false labels
    of one on variants of one dataset (name-10, name-20, …); the rank map where there are enough datasets.
    """
    results = collect(study, store)
    if results.runs.empty:
        raise ValueError(f"The store has no finished run of the study {study.name!r}.")
    if study.history:
        detailed = collect(study, store, lambda runs: runs["every_epoch"] == 1)
        history = store.history(detailed.runs.index, CURVES)
        names = detailed.runs[["dataset", "approach", "seed"]]
        history = history.merge(names, left_on="run", right_index=True)
        yield from _save(figures.learning_curves(detailed, history), folder, f"{study.name}-curves")
        return
    if _varies_alpha(study):
        yield from _save(figures.alpha_sweep(results), folder, f"{study.name}-alpha")
        return
    if _are_variants(study):
        yield from _save(figures.noise_curves(results), folder, f"{study.name}-noise")
        return
    yield from draw_ranks(
        ranking.from_results(results, "clf-acc", EPOCHS), folder, study.name, against, exclude
    )


def draw_ranks(
    scores: Iterable[ranking.Scores], folder: Path, name: str, against: str, exclude: Sequence[str]
) -> Iterator[str]:
    """Draw the rank map of scores, one row per epoch."""
    try:
        comparisons = {part[0]: ranking.rank_sheet(part, against, exclude)[1] for part in scores}
    except ValueError as error:
        yield f"No rank map: {error}"
        return
    yield from _save(figures.rank_map(comparisons), folder, f"{name}-ranks")


def _save(figure: Any, folder: Path, name: str) -> Iterator[str]:
    yield f"Written: {', '.join(str(path) for path in figures.save(figure, folder, name))}"


def _varies_alpha(study: Study) -> bool:
    return len({entry.parameters.get("alpha") for entry in study.approaches} - {None}) > 1 and all(
        "alpha" in entry.parameters for entry in study.approaches
    )


def _are_variants(study: Study) -> bool:
    stems = {re.sub(r"-\d+$", "", entry.name) for entry in study.datasets}
    return len(study.datasets) > 1 and len(stems) == 1
