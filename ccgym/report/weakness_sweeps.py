"""Figures of the weakness tests that sweep over delays, rates or buffers: a measure over the sweep, a line per scheme.

Marks are means over the repetitions, whiskers go from the least to the greatest; what passes is shaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from ccgym.evaluation.weaknesses.base import Weakness
from ccgym.evaluation.weaknesses.results import ConditionResult, WeaknessResults
from ccgym.report.style import DPI, INK, MUTED, legible
from ccgym.schemes.style import SchemeStyle

PASS_COLOR: Final = "#e4f1e6"
"""Fill of what passes."""

PANEL_IN: Final = (4.1, 2.75)
"""Width and height of a panel, inches."""
EDGES_IN: Final = (0.5, 1.15)
"""Room beside and above the panels, inches."""


@dataclass(frozen=True)
class Line:
    """Which conditions a line is made of, and how it looks."""

    at: Mapping[str, float | str]
    """Coordinates that its conditions share."""
    style: Literal["-", "--"] = "-"
    """Matplotlib line style."""
    label: str = ""
    """What tells it from the other lines of a scheme; empty where there is one."""


@dataclass(frozen=True)
class Panel:
    """One axes of such a figure."""

    title: str
    """Above it."""
    x: str
    """Coordinate along it."""
    x_label: str
    """Its name."""
    measure: str
    """Key of the measure."""
    lines: Sequence[Line] = (Line({}),)
    """The lines of each scheme."""
    passes: tuple[float, float] | None = None
    """What is shaded: from, to."""
    y_limits: tuple[float, float] | None = (0.0, 1.03)
    """Limits of the axis; None: as the numbers want."""
    percent: bool = False
    """Whether fractions are shown as percent."""
    log: bool = False
    """Whether the axis is logarithmic above a hundredth of a percent."""
    names: Mapping[float, str] = field(default_factory=dict)
    """Texts for values of ``x``, which then stand at equal distances."""
    passes_at: Mapping[float, tuple[float, float]] = field(default_factory=dict)
    """Where ``names`` are given: what is shaded at some of these values instead."""


def sweep_figure(results: WeaknessResults, test: Weakness, panels: Sequence[Sequence[Panel]]) -> Figure:
    """Draw the panels, row by row. Call within ``house_style``."""
    rows, columns = len(panels), len(panels[0])
    height = PANEL_IN[1] * rows + EDGES_IN[1]
    figure = Figure(figsize=(PANEL_IN[0] * columns + EDGES_IN[0], height), dpi=DPI)
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False)
    for row, axes_row in zip(panels, grid, strict=True):
        for panel, axes in zip(row, axes_row, strict=True):
            _draw_panel(axes, panel, results, test)
            if axes is axes_row[0]:
                measure = test.by_key(panel.measure)
                unit = " (%)" if panel.percent else f" ({measure.unit})" if measure.unit not in ("", "%") else ""
                axes.set_ylabel(f"{measure.label}{unit}")
    extra = [line for line in panels[0][0].lines if line.label]
    add_legend(figure, results.styles, extra)
    figure.suptitle(test.title, x=0.012, y=1 - 0.12 / height, ha="left", va="top", color=INK, weight="bold")
    lay_out(figure, 1 - 0.82 / height)
    return figure


def lay_out(figure: Figure, top: float) -> None:
    """Arrange the axes below ``top``, a share of the height: once, not again for every format."""
    figure.set_layout_engine("constrained", rect=(0, 0, 1, top))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def add_legend(figure: Figure, styles: Sequence[SchemeStyle], extra: Sequence[Line] = ()) -> None:
    """The schemes, and what else tells lines apart, in a row below the title."""
    height = figure.get_size_inches()[1]
    handles = [
        Line2D([], [], color=legible(style.color), marker=style.marker, linewidth=1.8, markersize=6, label=style.label)
        for style in styles
    ]
    handles += [Line2D([], [], color=MUTED, linestyle=line.style, linewidth=1.6, label=line.label) for line in extra]
    figure.legend(
        handles=handles,
        loc="upper left",
        ncols=max(1, len(handles)),
        bbox_to_anchor=(0.005, 1 - 0.36 / height),
        fontsize=10,
        columnspacing=1.4,
        handletextpad=0.5,
    )


def _draw_panel(axes: Axes, panel: Panel, results: WeaknessResults, test: Weakness) -> None:
    axes.set_title(panel.title, fontsize=11, color=INK)
    scale = 100.0 if panel.percent else 1.0
    if panel.log:
        axes.set_yscale("symlog", linthresh=0.01, linscale=0.4)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if panel.y_limits is not None:
        axes.set_ylim(scale * panel.y_limits[0], scale * panel.y_limits[1])
    if panel.passes is not None:
        axes.axhspan(scale * panel.passes[0], scale * panel.passes[1], color=PASS_COLOR, zorder=0, linewidth=0)
    for x, (low, high) in panel.passes_at.items():
        place = list(panel.names).index(x)
        axes.fill_between(
            (place - 0.5, place + 0.5), scale * low, scale * high, color=PASS_COLOR, zorder=0, linewidth=0
        )
    for style, outcome in results.of_test(test):
        for line in panel.lines:
            chosen = [one for one in outcome.conditions if line.at.items() <= one.at.items() and one.measures]
            _draw_line(axes, panel, style, line, chosen, scale)
    if panel.names:
        axes.set_xticks(range(len(panel.names)), list(panel.names.values()))
        axes.set_xlim(-0.25, len(panel.names) - 0.75)
    axes.set_xlabel(panel.x_label)


def _draw_line(
    axes: Axes, panel: Panel, style: SchemeStyle, line: Line, chosen: Sequence[ConditionResult], scale: float
) -> None:
    by_x: dict[float, list[tuple[float, float, float]]] = {}
    for one in chosen:
        spread = one.measures[panel.measure]
        by_x.setdefault(float(one.at[panel.x]), []).append((spread.mean, spread.low, spread.high))
    if not by_x:
        return
    values = sorted(by_x)
    places = [list(panel.names).index(x) for x in values] if panel.names else values
    # Conditions that a panel does not tell apart are averaged; whiskers span them all.
    means = [scale * sum(mean for mean, _, _ in by_x[x]) / len(by_x[x]) for x in values]
    lows = [scale * min(low for _, low, _ in by_x[x]) for x in values]
    highs = [scale * max(high for _, _, high in by_x[x]) for x in values]
    axes.vlines(places, lows, highs, color=legible(style.color), linewidth=1.0, alpha=0.45)
    axes.plot(
        places,
        means,
        color=legible(style.color),
        marker=style.marker,
        markersize=5,
        linewidth=1.6,
        linestyle=line.style,
        clip_on=False,
        zorder=3,
    )
