"""Charts as inline SVG.

They are written by hand, because a page must need no further package, stay small, and follow the colours of
the page: shapes carry classes, and `style.css` colours them for light, dark and print.

Charts are as wide as the page. Across, places are percentages; down, pixels. So text keeps its size on a
telephone, where a scaled drawing would shrink it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from annotmix.report.markup import Markup, element

#: Longest name beside a row; longer ones are cut, and whole in the tooltip.
NAME_LENGTH = 18


def line_chart(series: Mapping[str, Sequence[float]], label: str, x_name: str, height: int = 280) -> Markup:
    """Shares over steps 1, 2, …; every line is named at its end.

    Parameters
    ----------
    series : mapping of name to sequence of float
        The lines. The i-th has the class `line-i`, in the order given.
    label : str
        What the chart shows, for those who cannot see it.
    x_name : str
        What the steps are.
    height : int
        Height of the drawing area in pixels.
    """
    left, right, top = 11.0, 68.0, 14
    values = np.array(list(series.values()), dtype=float)  # (lines, steps)
    low = float(min(np.floor(np.quantile(values, 0.05) * 10) / 10, 0.9))
    n_steps = values.shape[1]

    def y(share: float) -> float:
        return top + height * (1 - (share - low) / (1 - low))

    parts = []
    for tick in np.linspace(low, 1, 5 if low >= 0.8 else round(10 * (1 - low)) + 1):
        parts.append(_line(f"{left}%", y(tick), f"{right}%", y(tick), "grid"))
        parts.append(_label(f"{left}%", y(tick), f"{tick:.0%}", "tick", "end", dx=-8))
    for step in sorted({1, *range(10, n_steps + 1, 10), n_steps}):
        across = left + (right - left) * (step - 1) / max(n_steps - 1, 1)
        parts.append(_label(f"{across:.2f}%", y(low) + 20, str(step), "tick", "middle"))
    parts.append(_label(f"{(left + right) / 2}%", y(low) + 42, x_name, "tick", "middle"))

    drawn = []
    for i, line in enumerate(values):
        across = np.linspace(0, 1000, n_steps)
        down = 1000 * (1 - (line - low) / (1 - low))
        points = " ".join(f"{a:.0f},{d:.1f}" for a, d in zip(across, down, strict=True))
        drawn.append(
            element("polyline", points=points, class_=f"line line-{i}", vector_effect="non-scaling-stroke")
        )
    parts.append(
        element(
            "svg",
            *drawn,
            x=f"{left}%",
            y=top,
            width=f"{right - left}%",
            height=height,
            viewBox="0 0 1000 1000",
            preserveAspectRatio="none",
        )
    )
    ends = _apart([y(line[-1]) for line in values], 20)
    for i, (name, end) in enumerate(zip(series, ends, strict=True)):
        parts.append(_label(f"{right}%", end, f"{name} {values[i, -1]:.1%}", f"name name-{i}", "start", dx=8))
    return _chart(label, top + height + 52, parts)


def dumbbells(
    names: Sequence[object],
    estimated: Sequence[float],
    real: Sequence[float],
    label: str,
    chance: float | None = None,
) -> Markup:
    """A row a name with two dots, estimated (full) and real (a ring), on a scale from 0 to 100%.

    Parameters
    ----------
    names, estimated, real : sequences of one length
    label : str
        What the chart shows, for those who cannot see it.
    chance : float, optional
        A share to mark with a line.
    """
    left, right, top, step = 36.0, 97.0, 30, 30
    bottom = top + step * len(names)

    def x(share: float) -> str:
        return f"{left + (right - left) * share:.2f}%"

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_line(x(tick), top, x(tick), bottom, "grid"))
        parts.append(_label(x(tick), top - 14, f"{tick:.0%}", "tick", "middle"))
    if chance is not None:
        parts.append(_line(x(chance), top, x(chance), bottom, "chance"))
        parts.append(_label(x(chance), bottom + 14, "guessing", "tick", "middle"))
    for i, (name, guess, truth) in enumerate(zip(names, estimated, real, strict=True)):
        y = top + step * (i + 0.5)
        tip = element("title", f"{name}: estimated {guess:.1%}, real {truth:.1%}")
        parts.append(
            element(
                "g",
                tip,
                element("rect", x=0, y=y - step / 2, width="100%", height=step, class_="row"),
                _label("0", y, _short(str(name)), "row-name", "start"),
                _line(x(guess), y, x(truth), y, "bar"),
                element("circle", cx=x(truth), cy=y, r=6, class_="real"),
                element("circle", cx=x(guess), cy=y, r=4.5, class_="estimated"),
            )
        )
    return _chart(label, bottom + (28 if chance is not None else 8), parts)


def heat_map(matrix: ArrayLike, classes: Sequence[object], label: str) -> Markup:
    """A confusion matrix, a row a true class, a column a given label; rows of nan stay empty.

    Parameters
    ----------
    matrix : array-like, shape (C, C)
    classes : sequence, length C
    label : str
    """
    values, cell, margin = np.asarray(matrix, dtype=float), 16, 18
    n = len(values)
    parts = [element("rect", x=margin, y=margin, width=n * cell, height=n * cell, class_="field")]
    for i, name in enumerate(classes):
        middle = margin + cell * (i + 0.5)
        parts.append(_label(middle, margin - 8, _short(str(name)), "tick", "middle"))
        parts.append(_label(margin - 8, middle, _short(str(name)), "tick", "middle"))
    for row, column in np.argwhere(values >= 0.01):
        share = float(values[row, column])
        parts.append(
            element(
                "rect",
                element("title", f"{classes[row]} called {classes[column]}: {share:.0%}"),
                x=margin + cell * column + 0.5,
                y=margin + cell * row + 0.5,
                width=cell - 1,
                height=cell - 1,
                fill_opacity=share,
                class_="heat",
            )
        )
    side = margin + n * cell
    return element(
        "svg", *parts, role="img", aria_label=label, viewBox=f"0 0 {side} {side}", class_="heat-map"
    )


def picture(grey: ArrayLike, label: str) -> Markup:
    """A small grey picture, a square a pixel; 0 is the page, 1 is ink. Shape (height, width)."""
    values = np.asarray(grey, dtype=float)
    paths = []
    for level in np.unique(values[values > 0]):
        squares = "".join(f"M{x} {y}h1v1h-1z" for y, x in np.argwhere(values == level))
        paths.append(element("path", d=squares, fill_opacity=float(level)))
    height, width = values.shape
    return element(
        "svg", *paths, role="img", aria_label=label, viewBox=f"0 0 {width} {height}", class_="picture"
    )


def _chart(label: str, height: int, parts: Sequence[Markup]) -> Markup:
    return element("svg", *parts, role="img", aria_label=label, width="100%", height=height, class_="chart")


def _line(x1: object, y1: object, x2: object, y2: object, kind: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def _label(x: object, y: float, text: str, kind: str, anchor: str, dx: int = 0) -> Markup:
    return element("text", text, x=x, y=y, dx=dx, dy="0.35em", text_anchor=anchor, class_=kind)


def _short(name: str) -> str:
    return name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """Places moved as little as needed so that neighbours are `gap` apart, from the lowest up."""
    order = np.argsort(places)[::-1]
    moved = list(places)
    for below, above in pairwise(order):
        moved[above] = min(moved[above], moved[below] - gap)
    return moved
