"""Throughput over time, one panel per scheme (``pantheon_throughput_time``).

Pantheon's ``plot_over_time.py`` draws all schemes into the same axes: too many curves with two dozen schemes. Here each
scheme has its own panel, with the same scales: the rate out of the path in bins of 500 ms, all flows together, for each
run and, bold, the mean. The capacity is shaded.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.evaluation.curves import FloatArray, RunCurves
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.scheme_summary import SchemeSummary
from ccgym.report.figures import figure
from ccgym.report.figures.throughput import total_egress
from ccgym.report.layout import finish, hide_unused
from ccgym.report.pantheon_words import figure_title
from ccgym.report.style import INK, blank_figure, draw_capacity, legible, medium

PANELS: int = 3
"""Number of panels side by side."""

ROW_IN: float = 1.75


@figure("pantheon_throughput_time", "Throughput over time, one panel per scheme", page="evaluation", order=3)
def throughput_time_figure(results: ResultSet) -> Figure:
    """Draw every run that has curves. Call within ``house_style``."""
    column = medium().column
    across = 2 if column else PANELS
    down = max(1, -(-len(results.styles) // across))
    width = 3.5 if column else 10.0
    drawn = blank_figure(width, (1.1 if column else ROW_IN) * down + (0.3 if column else 1.0))
    grid = drawn.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes, summary in zip(grid.flat, results.schemes, strict=False):
        _panel(axes, results, summary)
    hide_unused(grid, len(results.styles), "Time (s)")
    grid.flat[0].set_ylim(bottom=0)
    grid.flat[0].set_xlim(left=0)
    for axes in grid[:, 0]:
        axes.set_ylabel("Mbit/s")
    if column:
        return finish(drawn, top_in=0.05)
    return finish(drawn, figure_title(results, "Throughput over time: each run; bold: the mean"), top_in=0.5)


def _panel(axes: Axes, results: ResultSet, summary: SchemeSummary) -> None:
    color = legible(summary.style.color)
    runs = [] if results.directory is None else [
        RunCurves.load(results.directory / cell.curves) for cell in summary.runs if cell.curves
    ]  # fmt: skip
    shown = [(curves, total_egress(curves.flows)) for curves in runs]
    if shown:
        curves, longest = max(shown, key=lambda one: one[1].size)
        if curves.capacity_mbps.size:
            draw_capacity(axes, curves.capacity_mbps, curves.bin_s)
        for _, rates in shown:
            axes.plot(_times(curves, rates), rates, color=color, linewidth=0.8 * medium().line, alpha=0.45)
        mean = np.mean([np.pad(rates, (0, longest.size - rates.size)) for _, rates in shown], axis=0)
        axes.plot(_times(curves, mean), mean, color=color, linewidth=1.8 * medium().line)
    axes.set_title(summary.style.label, loc="left", fontsize=7 if medium().column else 10, color=INK)


def _times(curves: RunCurves, rates: FloatArray) -> FloatArray:
    """Return the ends of the bins, seconds."""
    return np.asarray((np.arange(rates.size) + 1) * curves.bin_s)
