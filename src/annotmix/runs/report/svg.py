"""Charts as inline SVG.

They are written here without a plotting package, because a page must stay small and follow the colours of the
page: shapes carry classes, and `style.css` colours them for light, dark and print.

Charts are as wide as the page. Across, places are percentages; down, pixels. So text keeps its size on a
telephone, where a scaled drawing would shrink it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from annotmix._common import words
from annotmix._common.words import shorten
from annotmix.runs.report.markup import Markup, element

#: Longest name beside a row; longer ones are cut, and whole in the tooltip.
NAME_LENGTH = 18


def line_chart(
    series: Mapping[str, Sequence[float]], label: str, x_name: str, height: int = 280, *, form: str = ".1%"
) -> Markup:
    """Values over steps 1, 2, …; every line is named at its end.

    Parameters
    ----------
    series : mapping of name to sequence of float
        The lines. The i-th has the class `line-i`, in the order given. Steps that are nan are left out.
    label : str
        Description of the chart, for screen readers.
    x_name : str
        Name of the steps.
    height : int
        Height of the drawing area in pixels.
    form : str, default=".1%"
        How values are written; shares, written with a percent sign, have an axis that ends at 100%.
    """
    left, right, top = 11.0, 68.0, 14
    values = np.array(list(series.values()), dtype=float)  # (lines, steps)
    ticks = _share_ticks(values) if form.endswith("%") else _round_ticks(values)
    low, high = float(ticks[0]), float(ticks[-1])
    n_steps = values.shape[1]

    def y(value: float) -> float:
        return top + height * (1 - (value - low) / (high - low))

    parts = []
    for tick in ticks:
        parts.append(_line(f"{left}%", y(tick), f"{right}%", y(tick), "grid"))
        text = f"{tick:.0%}" if form.endswith("%") else f"{tick:.4g}"
        parts.append(_label(f"{left}%", y(tick), text, "tick", "end", dx=-8))
    every = max(int(round_up(n_steps / 8)), 1)  # at most some eight numbers fit
    inner = (step for step in range(every, n_steps, every) if step > 1 and n_steps - step > every / 2)
    for step in sorted({1, *inner, n_steps}):
        across = left + (right - left) * (step - 1) / max(n_steps - 1, 1)
        parts.append(_label(f"{across:.2f}%", y(low) + 20, str(step), "tick", "middle"))
    parts.append(_label(f"{(left + right) / 2}%", y(low) + 42, x_name, "tick", "middle"))

    drawn, last = [], []
    for i, line in enumerate(values):
        known = np.isfinite(line)
        across = np.linspace(0, 1000, n_steps)[known]
        down = 1000 * (1 - (line[known] - low) / (high - low))
        points = " ".join(f"{a:.0f},{d:.1f}" for a, d in zip(across, down, strict=True))
        last.append(float(line[known][-1]))
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
    ends = _apart([y(value) for value in last], 20)
    for i, (name, end) in enumerate(zip(series, ends, strict=True)):
        text = f"{shorten(name, NAME_LENGTH)} {last[i]:{form}}"
        parts.append(_label(f"{right}%", end, text, f"name name-{i}", "start", dx=8))
    return _chart(label, top + height + 52, parts)


def dumbbells(
    names: Sequence[object],
    full: Sequence[float],
    ring: Sequence[float],
    label: str,
    chance: float | None = None,
    *,
    called: tuple[str, str] = ("estimated", "real"),
    high: float = 1.0,
    bars: Sequence[tuple[float, float]] | None = None,
) -> Markup:
    """One row per name with two dots, one full and one a ring, on a scale from 0 to `high`.

    Parameters
    ----------
    names, full, ring : sequences of one length
    label : str
        Description of the chart, for screen readers.
    chance : float, optional
        A share to mark with a line.
    called : pair of str
        Names of the full dots and the rings, for the tooltip.
    high : float, default=1.0
        Share at the right end.
    bars : sequence of pairs, optional
        Ends of the bar in each row, such as an interval; by default the two dots.
    """
    bars = list(zip(full, ring, strict=True)) if bars is None else bars
    left, right, top, step = 36.0, 97.0, 30, 30
    bottom = top + step * len(names)

    def x(share: float) -> str:
        return f"{left + (right - left) * share / high:.2f}%"

    parts = []
    for tick in np.linspace(0, high, 5):
        parts.append(_line(x(tick), top, x(tick), bottom, "grid"))
        parts.append(_label(x(tick), top - 14, f"{100 * tick:.3g}%", "tick", "middle"))
    if chance is not None:
        parts.append(_line(x(chance), top, x(chance), bottom, "chance"))
        parts.append(_label(x(chance), bottom + 14, "guessing", "tick", "middle"))
    for i, (name, first, second) in enumerate(zip(names, full, ring, strict=True)):
        y = top + step * (i + 0.5)
        tip = element("title", f"{name}: {called[0]} {first:.1%}, {called[1]} {second:.1%}")
        parts.append(
            element(
                "g",
                tip,
                element("rect", x=0, y=y - step / 2, width="100%", height=step, class_="row"),
                _label("0", y, shorten(name, NAME_LENGTH), "row-name", "start"),
                _line(x(bars[i][0]), y, x(bars[i][1]), y, "bar"),
                element("circle", cx=x(second), cy=y, r=6, class_="ring"),
                element("circle", cx=x(first), cy=y, r=4.5, class_="full"),
            )
        )
    return _chart(label, bottom + (28 if chance is not None else 8), parts)


def reliability(
    confidence: Sequence[float], accuracy: Sequence[float], count: Sequence[int], label: str
) -> Markup:
    """How often a confidence is right: one dot per bin, its area the number of items, beside the diagonal.

    Parameters
    ----------
    confidence, accuracy, count : sequences of one length, one entry per bin
    label : str
        Description of the chart, for screen readers.
    """
    left, top, side = 44, 10, 300

    def place(share: float) -> float:
        return side * share

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        across, down = left + place(tick), top + side - place(tick)
        parts.append(_line(left, down, left + side, down, "grid"))
        parts.append(_label(left, down, f"{tick:.0%}", "tick", "end", dx=-8))
        parts.append(_label(across, top + side + 18, f"{tick:.0%}", "tick", "middle"))
    parts.append(_line(left, top + side, left + side, top, "chance"))
    parts.append(_label(left + side / 2, top + side + 40, "confidence", "tick", "middle"))
    most = max([*count, 1])
    for sure, right, number in zip(confidence, accuracy, count, strict=True):
        if number:
            tip = element("title", f"{words.count(int(number), 'item')}, {sure:.0%} sure: {right:.0%} right")
            place_y = top + side - place(right)
            radius = 3 + 11 * float(np.sqrt(number / most))
            parts.append(
                element("circle", tip, cx=left + place(sure), cy=place_y, r=radius, class_="full bin")
            )
    width, height = left + side + 20, top + side + 50
    return element(
        "svg", *parts, role="img", aria_label=label, viewBox=f"0 0 {width} {height}", class_="square"
    )


def round_up(value: float) -> float:
    """The next number of the form 1, 2 or 5 times a power of ten."""
    unit = float(10 ** np.floor(np.log10(value)))
    return next(unit * m for m in (1, 2, 5, 10) if unit * m >= value)


def _share_ticks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low = float(min(np.floor(np.nanquantile(values, 0.05) * 10) / 10, 0.9))
    if low < 0.4:
        low = float(np.floor(low * 5 + 1e-9) / 5)  # every 20%
        return np.linspace(low, 1, round(5 * (1 - low)) + 1)
    return np.linspace(low, 1, 5 if low >= 0.8 else round(10 * (1 - low)) + 1)


def _round_ticks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Some five round numbers from below the smallest value to above the largest."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    step = round_up(max((high - low) / 4, 1e-9 * max(abs(high), 1e-3)))
    first, last = np.floor(low / step), np.floor(high / step) + 1
    return np.arange(first, last + 0.5) * step


def _chart(label: str, height: int, parts: Sequence[Markup]) -> Markup:
    return element("svg", *parts, role="img", aria_label=label, width="100%", height=height, class_="chart")


def _line(x1: object, y1: object, x2: object, y2: object, kind: str) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def _label(x: object, y: float, text: str, kind: str, anchor: str, dx: int = 0) -> Markup:
    return element("text", text, x=x, y=y, dx=dx, dy="0.35em", text_anchor=anchor, class_=kind)


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """Positions, moved as little as needed so that neighbours are `gap` apart, from the lowest up."""
    order = np.argsort(places)[::-1]
    moved = list(places)
    for below, above in pairwise(order):
        moved[above] = min(moved[above], moved[below] - gap)
    return moved
