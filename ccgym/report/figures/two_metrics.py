"""Two metrics of a test: every run and the schemes' means, every scheme under every condition, or one as bars and the
other as a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.typing import FillStyleType

from ccgym.experiments.metrics import Metric
from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import coordinates_text, metric_label, metric_scale
from ccgym.report.figures import Options, figure
from ccgym.report.style import INK, MUTED, PLAIN, blank_figure, finish, legible, scheme_handles

SIZE_IN: Final = (9.0, 5.2)
PLANE_IN: Final = (9.0, 5.4)
LOG_FACTOR: Final = 10.0
FILLS: Final[tuple[FillStyleType, ...]] = ("full", "none", "left", "right", "top", "bottom")
"""How the marks of the conditions are filled, in order."""
PANEL_IN: Final = (4.3, 3.6)
ACROSS: Final = 3


class PlaneOptions(Options):
    """Options of the figures ``scatter`` and ``plane``."""

    x: str = ""
    """Metric along the horizontal axis, of ``plane`` less is better; by default the test's second."""
    y: str = ""
    """Metric along the vertical axis, of ``plane`` more is better; by default the test's first."""


class BarsOptions(Options):
    """Options of the figure ``bars``."""

    bars: str = ""
    """Metric of the bars; by default the test's first."""
    line: str = ""
    """Metric of the line; by default the test's second."""


def _chosen(test: Test, *names: str) -> list[Metric]:
    """The metrics of these names; by default the test's first and second, or its only one."""
    return [
        test.by_key(name) if name else test.metrics[min(at, len(test.metrics) - 1)] for at, name in enumerate(names)
    ]


@figure("scatter", "two metrics of every run", page="test", options=PlaneOptions)
def scatter_figure(results: ExperimentResults, test: Test, options: PlaneOptions) -> Figure:
    """Draw the marks, and dashed lines at the thresholds."""
    y, x = _chosen(test, options.y, options.x)
    averaged = not (test.ranks(x) or test.ranks(y))  # different links have no common mean
    drawn = blank_figure(*SIZE_IN)
    axes = drawn.add_subplot()
    for style, outcome in results.of_test(test):
        runs = [run.values for run in outcome.runs if None not in (run.values[x.key], run.values[y.key])]
        if not runs:
            continue
        across = metric_scale(x) * np.array([values[x.key] for values in runs], dtype=float)
        up = metric_scale(y) * np.array([values[y.key] for values in runs], dtype=float)
        color = legible(style.color)
        axes.plot(across, up, style.marker, color=color, markersize=5, alpha=0.45, markeredgewidth=0)
        if averaged:
            axes.plot(
                across.mean(), up.mean(), style.marker, color=color, markersize=13, markeredgecolor="white",
                markeredgewidth=1.2, zorder=4,
            )  # fmt: skip
    criteria = {one.metric: one for _, outcome in results.of_test(test) for one in outcome.criteria}
    for metric, draw in ((y, axes.axhline), (x, axes.axvline)):
        for bound in (criteria[metric.key].min, criteria[metric.key].max) if metric.key in criteria else ():
            if bound is not None:
                draw(metric_scale(metric) * bound, color=MUTED, linewidth=1.0, linestyle="--")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0, top=103 if y.unit == "%" else None)
    axes.set_xlabel(metric_label(x))
    axes.set_ylabel(metric_label(y))
    marks = "small: every run; large: means" if averaged else "every run"
    axes.set_title(f"{marks}; dashed: thresholds", fontsize=10.5, color=MUTED, loc="left")
    return finish(drawn, test.title, scheme_handles(results.styles))


@figure("plane", "two metrics of every scheme under every condition", page="test", options=PlaneOptions)
def plane_figure(results: ExperimentResults, test: Test, options: PlaneOptions) -> Figure:
    """Draw means over the runs, the best at the top right: the horizontal axis is inverted, as in Pantheon's summary.
    Both axes are logarithmic where the conditions' values differ by more than :data:`LOG_FACTOR`."""
    y, x = _chosen(test, options.y, options.x)
    drawn = blank_figure(*PLANE_IN)
    axes = drawn.add_subplot()
    found = results.of_test(test)
    conditions = found[0][1].conditions if found else ()
    across, up = [], []
    for style, outcome in found:
        for condition, fill in zip(outcome.conditions, FILLS, strict=False):
            delay, rate = condition.metrics.get(x.key), condition.metrics.get(y.key)
            if delay is None or rate is None:
                continue
            across.append(metric_scale(x) * delay.mean)
            up.append(metric_scale(y) * rate.mean)
            color = legible(style.color)
            axes.plot(
                across[-1], up[-1], style.marker, color=color, markersize=12, fillstyle=fill, markeredgecolor=color,
                markeredgewidth=1.4, markerfacecoloralt="white", clip_on=False,
            )  # fmt: skip
    _scale(axes, "x", across)
    _scale(axes, "y", up)
    axes.invert_xaxis()
    axes.set_xlabel(metric_label(x))
    axes.set_ylabel(metric_label(y))
    axes.annotate("better ↗", (0.995, 0.985), xycoords="axes fraction", ha="right", va="top", color=MUTED)
    extra = [
        Line2D([], [], linestyle="", marker="o", color=MUTED, fillstyle=fill, markerfacecoloralt="white", markersize=8,
               label=coordinates_text(one.at))
        for one, fill in zip(conditions, FILLS, strict=False)
    ]  # fmt: skip
    return finish(drawn, test.title, [*scheme_handles(results.styles), *extra])


def _scale(axes: Axes, which: str, values: Sequence[float]) -> None:
    positive = [value for value in values if value > 0]
    if positive and len(positive) == len(values) and max(positive) > LOG_FACTOR * min(positive):
        getattr(axes, f"set_{which}scale")("log")
        getattr(axes, f"set_{which}lim")(0.7 * min(positive), 1.4 * max(positive))
        getattr(axes, f"{which}axis").set_major_formatter(PLAIN)
    else:
        getattr(axes, f"set_{which}lim")(0, 1.1 * max(values, default=1.0))


@figure("bars", "a metric as bars with another as a line, by condition", page="test", options=BarsOptions)
def bars_figure(results: ExperimentResults, test: Test, options: BarsOptions) -> Figure:
    """Draw means over the runs; both axes begin at 0."""
    bars, line = _chosen(test, options.bars, options.line)
    found = results.of_test(test)
    conditions = found[0][1].conditions if found else ()
    across = max(1, min(ACROSS, len(conditions)))
    down = max(1, -(-len(conditions) // across))
    drawn = blank_figure(PANEL_IN[0] * across + 0.6, PANEL_IN[1] * down + 0.9)
    grid = list(drawn.subplots(down, across, squeeze=False).flat)
    for axes, condition in zip(grid, conditions, strict=False):
        own = [next(one for one in outcome.conditions if one.key == condition.key) for _, outcome in found]
        places = range(len(found))
        heights = [metric_scale(bars) * one.metrics[bars.key].mean if one.metrics.get(bars.key) else 0 for one in own]
        axes.bar(places, heights, color=[legible(style.color) for style, _ in found], width=0.62, alpha=0.85)
        above = axes.twinx()
        points = [
            (place, metric_scale(line) * spread.mean)
            for place, one in enumerate(own)
            if (spread := one.metrics.get(line.key)) is not None
        ]
        above.plot(
            *zip(*points, strict=True) if points else ((), ()), color=INK, marker="o", markersize=5, linewidth=1.3
        )
        above.grid(visible=False)
        above.set_ylim(bottom=0)
        above.set_ylabel(metric_label(line), color=INK)
        axes.set_xticks(list(places), [style.label for style, _ in found], rotation=0 if len(found) <= 4 else 45)
        axes.set_axisbelow(True)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(metric_label(bars))
        axes.set_title(coordinates_text(condition.at), fontsize=11)
    for axes in grid[len(conditions) :]:
        axes.set_visible(False)
    return finish(drawn, test.title)
