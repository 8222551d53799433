"""The paper's figures from results, as PNG, SVG and PDF.

Colours are those of Okabe and Ito, which the colour-blind can tell apart; every line also has a marker and a
style of its own, so that a print in grey is enough. Files are the same bytes for the same results.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from annotmix._common.files import write_atomically
from annotmix.bench import require
from annotmix.bench.results import EPOCHS, Results
from annotmix.bench.stats import Comparison

KINDS = ("png", "svg", "pdf")
#: Okabe–Ito without yellow, which is too light for a line on white.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = "osD^vP*Xph<>"
STYLES = ("-", "--", "-.", ":")
_RC = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "svg.hashsalt": "annotmix",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
}


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG, SVG and PDF, without dates, so that the same figure is the same files."""
    folder.mkdir(parents=True, exist_ok=True)
    undated: dict[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    }
    paths = [folder / f"{name}.{kind}" for kind in KINDS]
    with _style():
        for path, kind in zip(paths, KINDS, strict=True):
            options = {"format": kind, "metadata": undated[kind], "bbox_inches": "tight"}
            write_atomically(path, partial(figure.savefig, **options))
    return paths


def learning_curves(results: Results, history: pd.DataFrame) -> Any:
    """clf-acc on test and annot-acc on training labels after every epoch, one panel per dataset.

    Parameters
    ----------
    results : Results
    history : DataFrame
        `dataset`, `approach`, `seed`, `epoch`, `score`, `value` of the two scores.
    """
    scores = {"test/clf-acc": "clf-acc, test", "train/annot-acc": "annot-acc, training"}
    labels = [entry.label for entry in results.study.approaches]
    with _style():
        figure, panels = _panels(results.datasets, 3.2, 2.6)
        for dataset, axes in zip(results.datasets, panels, strict=True):
            for colour, (score, shown) in zip(COLOURS[1:3], scores.items(), strict=True):
                for style, label in zip(STYLES * len(labels), labels, strict=False):
                    _curve(axes, history, (dataset, label, score), f"{shown}, {label}", colour, style)
            axes.set_title(dataset)
            axes.set_xlabel("epoch")
        panels[0].set_ylabel("score [%]")
        _legend_below(figure, panels[0], 2)
    return figure


def _curve(
    axes: Any, history: pd.DataFrame, which: tuple[str, str, str], label: str, colour: str, style: str
) -> None:
    """Mean over the seeds, with a band of one standard deviation."""
    dataset, approach, score = which
    wanted = (history["dataset"] == dataset) & (history["approach"] == approach) & (history["score"] == score)
    groups = 100 * history[wanted].groupby("epoch")["value"].agg(["mean", "std"]).fillna(0.0)
    if groups.empty:
        return
    epochs = groups.index.to_numpy()
    axes.plot(epochs, groups["mean"], style, color=colour, label=label, linewidth=1.4)
    low, high = groups["mean"] - groups["std"], groups["mean"] + groups["std"]
    axes.fill_between(epochs, low, high, color=colour, alpha=0.18, linewidth=0)


def rank_map(comparisons: dict[str, Comparison]) -> Any:
    """Mean ranks as a heat map, epochs × approaches, with a star where the chosen approach is better.

    Parameters
    ----------
    comparisons : dict
        By epoch.
    """
    first = next(iter(comparisons.values()))
    # a row's order is that of the first epoch, worst first, the chosen approach last
    names = [name for name in first.table.index[::-1] if name != first.against] + [first.against]
    ranks = np.array([[c.table.loc[name, "rank"] for name in names] for c in comparisons.values()])
    with _style(), _plt().rc_context({"axes.grid": False}):
        figure, axes = _plt().subplots(figsize=(0.62 * len(names) + 1.6, 0.55 * len(comparisons) + 1.5))
        image = axes.imshow(ranks, cmap="Blues_r", vmin=1, vmax=len(names), aspect="auto")
        for (row, column), value in np.ndenumerate(ranks):
            test = list(comparisons.values())[row].table.loc[names[column]]
            star = "\n★" if test["significant"] and test["z"] > 0 else ""
            dark = np.dot(image.to_rgba(value)[:3], (0.299, 0.587, 0.114)) < 0.5
            axes.text(
                column,
                row,
                f"{value:.2f}{star}",
                ha="center",
                va="center",
                color="white" if dark else "black",
            )
        axes.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(comparisons)), [_epoch_title(epoch) for epoch in comparisons])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_title(
            f"mean rank over {len(first.datasets)} datasets; ★ {first.against} is significantly better"
        )
        figure.colorbar(image, ax=axes, label="mean rank", pad=0.02)
    return figure


def noise_curves(results: Results, epochs: Sequence[str] = EPOCHS) -> Any:
    """clf-acc against the share of false labels, one panel per epoch, one line per approach."""
    share = {name: results.facts[name]["percent_false"] for name in results.datasets if name in results.facts}
    order = sorted(share, key=share.__getitem__)
    with _style():
        figure, panels = _panels(epochs, 3.6, 3.0)
        for epoch, axes in zip(epochs, panels, strict=True):
            groups = _means(results, epoch)
            # annot-mix first: the black line
            entries = sorted(results.study.approaches, key=lambda e: e.name != "annot-mix")
            for number, entry in enumerate(entries):
                points = [(share[d], *groups[d, entry.label]) for d in order if (d, entry.label) in groups]
                _errorbars(axes, points, number, entry.label)
            axes.set_title(_epoch_title(epoch))
            axes.set_xlabel("false labels [%]")
        panels[0].set_ylabel("clf-acc [%]")
        _legend_below(figure, panels[0], 4)
    return figure


def alpha_sweep(results: Results, epochs: Sequence[str] = EPOCHS) -> Any:
    """clf-acc of annot-mix against α, one panel per dataset; mixing within items stands apart."""
    entries = [e for e in results.study.approaches if "alpha" in e.parameters]
    across = [e for e in entries if e.parameters.get("pairing", "across") == "across"]
    within = [e for e in entries if e not in across]
    across = sorted(across, key=lambda e: float(e.parameters["alpha"]))
    ticks = [f"{e.parameters['alpha']:g}" for e in across] + [
        f"{e.parameters['alpha']:g}\nwithin" for e in within
    ]
    with _style():
        figure, panels = _panels(results.datasets, 2.6, 2.4)
        for dataset, axes in zip(results.datasets, panels, strict=True):
            for number, epoch in enumerate(epochs):
                groups, shift = _means(results, epoch), 0.12 * (number - (len(epochs) - 1) / 2)
                for line, first in ((across, 0), (within, len(across))):
                    points = [
                        (first + i + shift, *groups[dataset, e.label])
                        for i, e in enumerate(line)
                        if (dataset, e.label) in groups
                    ]
                    _errorbars(axes, points, number + 1, _epoch_title(epoch) if line is across else None)
            axes.set_title(dataset)
            axes.set_xticks(range(len(ticks)), ticks)
            axes.set_xlabel("α")
        panels[0].set_ylabel("clf-acc [%]")
        _legend_below(figure, panels[0], 2)
    return figure


def _means(results: Results, epoch: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Mean and std of clf-acc in percent by dataset and approach."""
    values = results.values("test/clf-acc", epoch)
    groups = 100 * values.groupby(["dataset", "approach"])["value"].agg(["mean", "std"]).fillna(0.0)
    return {(str(d), str(a)): (row["mean"], row["std"]) for (d, a), row in groups.iterrows()}


def _errorbars(
    axes: Any, points: Sequence[tuple[float, float, float]], number: int, label: str | None
) -> None:
    """A line through points (x, mean, std)."""
    if points:
        x, mean, std = zip(*points, strict=True)
        axes.errorbar(x, mean, std, label=label, **_line(number), capsize=2, elinewidth=0.8)


def _line(number: int) -> dict[str, Any]:
    """Colour, marker and style of a line; no two of them are alike."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": STYLES[number // len(COLOURS) % len(STYLES)],
        "markersize": 4,
        "linewidth": 1.2,
    }


def _panels(names: Sequence[str], width: float, height: float) -> tuple[Any, list[Any]]:
    """A figure with one panel per name, at most four in a row."""
    columns = min(4, len(names))
    lines = -(-len(names) // columns)
    figure, grid = _plt().subplots(
        lines, columns, figsize=(width * columns, height * lines + 0.6), squeeze=False, layout="constrained"
    )
    panels = list(grid.flat)
    for axes in panels[len(names) :]:
        axes.set_visible(False)
    return figure, panels[: len(names)]


def _legend_below(figure: Any, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=3)


def _epoch_title(epoch: str) -> str:
    return f"{epoch} epoch" if epoch in EPOCHS else epoch or "all"


def _plt() -> Any:
    matplotlib = require("matplotlib")
    matplotlib.use("Agg")
    return require("matplotlib.pyplot")


def _style() -> Any:
    return _plt().rc_context(_RC)
