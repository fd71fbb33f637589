"""A metric of every scheme under every condition as a heat map: a row per scheme, a column per condition.

With ``middle``, values below and above it have different hues: for example, half of the link is a fair share.
Conditions that the columns do not distinguish are averaged; a marked corner means that they differ a lot.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from pydantic import Field

from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.cells import DIVERGING, MARGIN_IN, MIDDLE, cell_axes, draw_cell, draw_corner, draw_head
from ccgym.report.coordinates import coordinate_label, coordinate_text, metric_label, metric_scale
from ccgym.report.figures import Options, figure
from ccgym.report.layout import text_widths
from ccgym.report.style import INK, MUTED, blank_figure

RISING: Final = LinearSegmentedColormap.from_list(
    "ccgym-rising", ["#f7f4ee", "#f3d9b8", "#e59a6f", "#c9583c", "#8f2a1f"]
)
"""Colors without a middle."""
SPREAD: Final = 0.25
"""Averaged conditions that differ by at least this fraction of the scale are marked."""

CELL_W_IN: Final = 0.38
CELL_H_IN: Final = 0.24
NAMES_IN: Final = 1.75
"""Min room for the schemes' names, inches."""
LEVEL_IN: Final = 0.26
"""Height of a level of the columns' heads, inches."""
TOP_IN: Final = 0.95
"""Room for title and scale, inches."""
GAPS: Final = (0.5, 0.14)
"""Space between the values of the outermost coordinate, and of the second coordinate; unit: columns."""

At = tuple[float | str, ...]


class MatrixOptions(Options):
    """Options of the figure ``matrix``."""

    metric: str = ""
    """Metric that is drawn; by default the test's first metric."""
    columns: tuple[str, ...] = Field(default=(), max_length=3)
    """At most three coordinates of the columns, the outermost first; other coordinates are averaged."""
    middle: float | None = None
    """Value where two hues meet; by default there is one hue."""
    low: float = 0.0
    """Value with the first color."""
    high: float = 1.0
    """Value with the last color."""


@figure("matrix", "a metric of every scheme under every condition, colored", page="test", options=MatrixOptions)
def matrix_figure(results: ExperimentResults, test: Test, options: MatrixOptions) -> Figure:
    """Draw the heat map. Call within :func:`~ccgym.report.style.house_style`."""
    metric = test.by_key(options.metric) if options.metric else test.metrics[0]
    columns = _columns(test, options.columns)
    places = _places(columns)
    width = (places[-1] + 1) * CELL_W_IN
    head = TOP_IN + LEVEL_IN * len(options.columns)
    height = len(results.styles) * CELL_H_IN
    colors, scale = RISING if options.middle is None else DIVERGING, metric_scale(metric)
    apart = scale * SPREAD * (options.high - options.low)
    title = f"{test.title}: {metric_label(metric)}"
    note = f"means; marked corner: averaged conditions differ by at least {apart:g}"
    names = max([NAMES_IN, *(0.2 + one for one in text_widths([style.label for style in results.styles], 9.5))])
    least = max(*text_widths([title], 13, "bold"), 2.1 + text_widths([note], 8.5)[0])
    drawn = blank_figure(2 * MARGIN_IN + max(names + width, least), head + height + MARGIN_IN)
    axes = cell_axes(drawn, MARGIN_IN + names, places[-1] + 1, len(results.styles), (CELL_W_IN, CELL_H_IN))
    # The positions of these values on the color scale; the middle is at one half.
    knots = [options.low, options.high] if options.middle is None else [options.low, options.middle, options.high]
    marks = np.linspace(0.0, 1.0, len(knots))
    for row, (style, outcome) in enumerate(results.of_test(test)):
        axes.text(-0.2, row + 0.52, style.label, ha="right", va="center", fontsize=9.5, color=INK)
        for column, left in zip(columns, places, strict=True):
            own = dict(zip(options.columns, column, strict=True))
            known = [
                spread.mean
                for one in outcome.conditions
                if own.items() <= one.at.items()
                and (spread := one.metrics.get(metric.key)) is not None
                and np.isfinite(spread.mean)
            ]
            if not known:
                axes.text(left + 0.5, row + 0.52, "–", fontsize=8.5, color=MUTED, **MIDDLE)
                continue
            value = float(np.mean(known))
            text = f"{scale * value:.0f}" if scale > 1 else f"{value:.2g}"
            ink = draw_cell(axes, left, row, colors(float(np.interp(value, knots, marks))), text)
            if max(known) - min(known) >= SPREAD * (options.high - options.low):
                draw_corner(axes, left + 0.98, row + 0.03, (0.26, 0.37), ink)
    _heads(axes, options.columns, columns, places)
    ticks = {float(mark): f"{scale * knot:g}" for mark, knot in zip(marks, knots, strict=True)}
    draw_head(drawn, title, colors, ticks, note)
    return drawn


def _columns(test: Test, names: Sequence[str]) -> list[At]:
    """Return the coordinates of the columns, the innermost varying fastest, each in the order of the YAML file."""
    known: dict[str, dict[float | str, None]] = {}
    for one in test.conditions:
        for name, value in one.at.items():
            known.setdefault(name, {})[value] = None
    for name in names:
        if name not in known:
            raise ConfigError(
                "unknown-name",
                shown(name),
                where="matrix.columns",
                expected=", ".join(known),
                hint=did_you_mean(name, known),
            )
    there = {tuple(one.at[name] for name in names): None for one in test.conditions if set(names) <= set(one.at)}
    orders = [list(known[name]) for name in names]
    return sorted(there, key=lambda at: [order.index(value) for order, value in zip(orders, at, strict=True)])


def _places(columns: Sequence[At]) -> list[float]:
    """Return the left edges of the columns, with space where an outer coordinate changes."""
    places = [0.0]
    for before, after in itertools.pairwise(columns):
        changed = next(level for level in range(len(after)) if before[level] != after[level])
        inner = changed == len(after) - 1
        places.append(places[-1] + 1 + (0.0 if inner else GAPS[changed]))
    return places


def _heads(axes: Axes, names: Sequence[str], columns: Sequence[At], places: Sequence[float]) -> None:
    """Draw the coordinates above their columns; each value of an outer level appears once, with a line."""
    level_rows = LEVEL_IN / CELL_H_IN
    for level, name in enumerate(names):
        bottom = -(len(names) - 1 - level) * level_rows
        groups: dict[At, list[float]] = {}
        for column, place in zip(columns, places, strict=True):
            groups.setdefault(column[: level + 1], []).append(place)
        for at, own in groups.items():
            inner = level == len(names) - 1
            text = f"{at[-1]:g}" if inner and not isinstance(at[-1], str) else coordinate_text(name, at[-1])
            middle = (own[0] + own[-1] + 1) / 2
            axes.text(
                middle, bottom - 0.42 * level_rows, text, clip_on=False, **MIDDLE,
                fontsize=10 if level == 0 else 8.5, color=INK if level == 0 else MUTED,
                weight="bold" if level == 0 and len(names) > 1 else "normal",
            )  # fmt: skip
            if not inner:
                axes.plot(
                    [own[0] + 0.06, own[-1] + 0.94], [bottom - 0.02, bottom - 0.02],
                    color="#cccccc", linewidth=0.8, clip_on=False,
                )  # fmt: skip
    if names:
        axes.text(
            -0.2, -0.42 * level_rows, coordinate_label(names[-1]), ha="right", va="center",
            fontsize=8.5, color=MUTED, clip_on=False,
        )  # fmt: skip
