"""Figures of the weakness tests over paths that change: rate against capacity over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ccgym.evaluation.weaknesses import stale_estimates
from ccgym.evaluation.weaknesses.base import Series, Weakness
from ccgym.evaluation.weaknesses.results import WeaknessResults
from ccgym.report.style import CAPACITY_COLOR, CAPACITY_EDGE, DPI, INK, MUTED, legible
from ccgym.report.weakness_sweeps import PASS_COLOR, add_legend, lay_out

ROW_IN: Final = 1.25
"""Height of a scheme's row, inches."""
HEAD_IN: Final = 0.85
"""Room for the title, inches."""


def responsiveness_figure(results: WeaknessResults, test: Weakness) -> Figure:
    """On the left a row per scheme, the first path drawn; on the right utilization and queue of every path."""
    rows = max(3, len(results.styles))
    height = ROW_IN * rows + HEAD_IN + 0.5
    figure = Figure(figsize=(13.0, height), dpi=DPI)
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(
        len(results.styles), 2, width_ratios=(1.75, 1), left=0.055, right=0.985,
        top=1 - HEAD_IN / height, bottom=0.52 / height, hspace=0.18, wspace=0.15,
    )  # fmt: skip
    first: Axes | None = None
    for row, (style, outcome) in enumerate(results.of_test(test)):
        axes = figure.add_subplot(grid[row, 0], sharex=first, sharey=first)
        first = first or axes
        for series in outcome.series().values():
            _capacity(axes, series)
            axes.step(series["t_s"], series["rate_mbps"], where="pre", color=legible(style.color), linewidth=1.2)
        axes.text(
            0.995, 0.93, style.label, transform=axes.transAxes, ha="right", va="top", color=legible(style.color),
            weight="bold", fontsize=10, bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
        axes.tick_params(labelbottom=row == len(results.styles) - 1)
        axes.margins(x=0)
    if first is not None:
        first.set_ylim(0, 104)
        figure.axes[-1].set_xlabel("time (s), first of the paths drawn")
        figure.text(0.008, 0.5, "rate on the wire (Mbit/s)", rotation=90, va="center", color=INK, fontsize=12)
    _all_paths(figure.add_subplot(grid[:, 1]), results, test)
    figure.suptitle(test.title, x=0.012, y=1 - 0.12 / height, ha="left", va="top", color=INK, weight="bold")
    add_legend(figure, results.styles)
    return figure


def _all_paths(axes: Axes, results: WeaknessResults, test: Weakness) -> None:
    """Utilization over queueing delay: small marks are paths, large ones means."""
    for style, outcome in results.of_test(test):
        if not outcome.runs:
            continue
        delay = np.array([run.values["queue_delay_ms"] for run in outcome.runs])
        used = 100 * np.array([run.values["utilization"] for run in outcome.runs])
        axes.plot(delay, used, style.marker, color=legible(style.color), markersize=3.5, alpha=0.3, markeredgewidth=0)
        axes.plot(
            delay.mean(), used.mean(), style.marker, color=legible(style.color), markersize=11,
            markeredgecolor="white", markeredgewidth=1.2, zorder=4,
        )  # fmt: skip
    mark = next((one for _, outcome in results.of_test(test) for one in outcome.criteria if one.low is not None), None)
    queue = next(
        (one for _, outcome in results.of_test(test) for one in outcome.criteria if one.high is not None), None
    )
    if mark is not None and queue is not None and mark.low is not None and queue.high is not None:
        # From here to the upper left is what passes.
        axes.axhline(100 * mark.low, color=MUTED, linewidth=1.0, linestyle="--")
        axes.axvline(queue.high, color=MUTED, linewidth=1.0, linestyle="--")
        axes.annotate(
            "passes", (queue.high, 100 * mark.low), (-5, 5), textcoords="offset points", ha="right", va="bottom",
            fontsize=9.5, color=MUTED,
        )  # fmt: skip
    axes.set_xlim(left=0)
    axes.set_ylim(0, 103)
    axes.set_xlabel("mean queueing delay (ms)")
    axes.set_ylabel("utilization (%)")
    axes.set_title("every path; large: mean; dashed: Cubic's means", fontsize=10.5, color=INK)


def stale_figure(results: WeaknessResults, test: Weakness) -> Figure:
    """A panel per path and buffer: share of the capacity in the first run of every scheme."""
    conditions = next(iter(results.of_test(test)))[1].conditions if results.styles else ()
    height = 6.9
    figure = Figure(figsize=(13.0, height), dpi=DPI)
    FigureCanvasAgg(figure)
    columns = len(stale_estimates.BUFFERS)
    rows = max(1, -(-len(conditions) // columns))
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for place, condition in enumerate(conditions):
        axes = grid[place // columns][place % columns]
        rate, delay = float(condition.at["rate_mbps"]), float(condition.at["one_way_ms"])
        axes.set_title(
            f"{rate:g} → {stale_estimates.RATE_FACTOR * rate:g} Mbit/s, RTT {2 * delay:g} → "
            f"{2 * stale_estimates.RTT_FACTOR * delay:g} ms, buffer 1 BDP of the {condition.at['buffer']} path",
            fontsize=11,
        )
        axes.axhspan(100 * stale_estimates.SHARE, 110, color=PASS_COLOR, linewidth=0, zorder=0)
        for style, outcome in results.of_test(test):
            series = outcome.series().get(condition.key)
            if series is None:
                continue
            share = 100 * np.array(series["rate_mbps"]) / np.maximum(series["capacity_mbps"], 1e-9)
            axes.plot(
                series["t_s"], share, color=legible(style.color), marker=style.marker, markevery=(3, 12),
                markersize=4.5, linewidth=1.3,
            )  # fmt: skip
        for at, what in ((stale_estimates.RTT_CHANGE_S, "RTT ×2"), (stale_estimates.RATE_CHANGE_S, "rate ×8")):
            axes.axvline(at, color=MUTED, linewidth=0.9, linestyle=":")
            axes.text(
                at - 0.25, 0.04, what, transform=axes.get_xaxis_transform(), ha="right", va="bottom", fontsize=9.5,
                color=MUTED,
            )  # fmt: skip
        axes.set_xlim(0, stale_estimates.DURATION_S)
        axes.set_ylim(0, 110)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    for row_axes in grid:
        row_axes[0].set_ylabel("rate / capacity (%)")
    figure.suptitle(test.title, x=0.012, y=1 - 0.12 / height, ha="left", va="top", color=INK, weight="bold")
    add_legend(figure, results.styles)
    lay_out(figure, 1 - 0.82 / height)
    return figure


def _capacity(axes: Axes, series: Series) -> None:
    times, capacity = _from_the_start(series["t_s"], series["capacity_mbps"])
    axes.fill_between(times, 0, capacity, step="pre", facecolor=CAPACITY_COLOR, edgecolor=CAPACITY_EDGE, linewidth=0.8)


def _from_the_start(times: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Values of bins by their ends, with the first bin's beginning in front."""
    return [0.0, *times], [values[0] if values else 0.0, *values]
