"""Per-packet one-way delay of one run, over the time at which the packets left the path.

The layout is Pantheon's (``src/analysis/tunnel_graph.py`` @23e738c): a scatter of small points, one color per flow.
Unlike in Pantheon, the axis begins below the smallest delay if it would otherwise be mostly empty: the figure shows the
queueing delay, and propagation is a constant.
"""

from __future__ import annotations

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccgym.evaluation.curves import RunCurves
from ccgym.evaluation.metrics import RunMetrics
from ccgym.report.figures import figure
from ccgym.report.figures.throughput import left_out, legend_below
from ccgym.report.style import flow_color, medium, new_figure

DOT_SIZES = ((3_000, 4.0), (25_000, 2.2))
"""Pairs of a max number of dots and their diameter in points. With more dots, each is a single pixel."""


def _dots(points: int) -> dict[str, Any]:
    """Return the style of the dots: a few dots must be visible, many dots must not merge."""
    for limit, size in DOT_SIZES:
        if points <= limit:
            return {"marker": ".", "markersize": size * medium().line, "markeredgewidth": 0}
    return {"marker": ","}


def delay_limits(low: float, high: float) -> tuple[float, float]:
    """Return the limits of a delay axis: from 0, or from below the smallest delay if the lower half would be empty."""
    if low <= 0.5 * high:
        return 0.0, 1.05 * high
    margin = max(0.06 * (high - low), 0.02 * high)
    return (low - margin, high + margin) if math.isfinite(low) else (0.0, 1.0)


@figure("delay", "one-way delay of each packet", page="run", order=2)
def delay_figure(curves: RunCurves, metrics: RunMetrics) -> Figure:
    """Draw the figure ``<scheme>_datalink_delay_run<k>.png``. Call within ``house_style``."""
    drawn, axes = new_figure(12, 6)
    handles = draw_delay(axes, curves, metrics)
    columns = 1 if medium().column else 3
    rows = math.ceil(max(1, len(curves.flows)) / columns)
    return legend_below(drawn, axes, handles, columns, rows, 1.4, handletextpad=0.2)


def draw_delay(axes: Axes, curves: RunCurves, metrics: RunMetrics) -> list[Line2D]:
    """Draw the delays into axes; return the dots for a legend."""
    latest = 1.0
    low, top = math.inf, 0.0
    handles = []
    for index, (flow, (number, numbers)) in enumerate(zip(curves.flows, metrics.flows.items(), strict=False)):
        color = flow_color(index)
        delay = "no packet left" if numbers.delay_p95_ms is None else f"95th percentile {numbers.delay_p95_ms:.2f} ms"
        handles.append(
            Line2D([], [], linestyle="", marker="o", markersize=6, color=color, label=f"Flow {number} ({delay})")
        )
        if flow.delay_time_s.size:
            latest = max(latest, float(flow.delay_time_s.max()))
            low, top = min(low, float(flow.delay_ms.min())), max(top, float(flow.delay_ms.max()))
    # A few points of each flow in turn: otherwise, the last flow would cover the other flows.
    points = sum(flow.delay_ms.size for flow in curves.flows)
    turns = 1 if len(curves.flows) == 1 else 12
    for turn in range(turns):
        for index, flow in enumerate(curves.flows):
            axes.plot(
                flow.delay_time_s[turn::turns], flow.delay_ms[turn::turns], linestyle="", **_dots(points),
                color=flow_color(index), rasterized=True,
            )  # fmt: skip
    axes.set_xlim(0, math.ceil(latest))
    axes.set_ylim(*delay_limits(low, top))
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("One-way delay (ms)" if medium().column else "Per-packet one-way delay (ms)")
    return [*handles, *left_out(curves, metrics)]
