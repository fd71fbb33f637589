"""One run over time: throughput that entered the path and left it, its capacity, and the one-way delay of packets.

Layout and binning are Pantheon's (``src/analysis/tunnel_graph.py`` @23e738c). Of throughput ingress is dashed, egress
solid, capacity shaded; ingress and capacity stand at the start of their 500 ms bin, egress at its end with a leading 0.
Of delay there is a scatter of small points, one color per flow. Unlike there its axis begins below the smallest delay
where it would otherwise be mostly empty: the figure is about what queues add, and propagation is a constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccgym.evaluation.curves import FloatArray, FlowCurves, RunCurves
from ccgym.evaluation.metrics import RunMetrics
from ccgym.report.figures import figure
from ccgym.report.style import draw_capacity, flow_color, medium, new_figure, set_margins

DOT_SIZES = ((3_000, 4.0), (25_000, 2.2))
"""Up to how many dots are drawn at which diameter, in points. More are single pixels."""


@figure("throughput", "throughput over time", page="run", order=1)
def throughput_figure(curves: RunCurves, metrics: RunMetrics) -> Figure:
    """Draw the figure ``<scheme>_datalink_throughput_run<k>.png``. Call within ``house_style``."""
    drawn, axes = new_figure(12, 6)
    lines = draw_throughput(axes, curves, metrics)
    # A column of a paper has no room for two entries side by side. The legend's columns are filled one after the other:
    # ingress left, egress right, one row per flow.
    columns = 1 if medium().column else 2
    rows = max(1, len(curves.flows)) * 2 // columns
    return legend_below(drawn, axes, lines, columns, rows, 2.7, handlelength=2.6)


def legend_below(
    drawn: Figure, axes: Axes, handles: Sequence[Line2D], columns: int, rows: int, top: float, **style: Any
) -> Figure:
    """Write the legend below the axes, and leave room for it; above them ``top``, as in ``set_margins``."""
    set_margins(drawn, left=5.0, right=2.0, top=1.0 if medium().column else top, bottom=4.9 + 1.5 * rows)
    axes.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.0), bbox_transform=drawn.transFigure, ncol=columns,
        **style,
    )  # fmt: skip
    return drawn


def draw_throughput(axes: Axes, curves: RunCurves, metrics: RunMetrics) -> list[Line2D]:
    """Draw the curves into axes; the lines for a legend, those of the ingress first."""
    step = curves.bin_s
    end = step
    if curves.capacity_mbps.size:
        end = max(end, draw_capacity(axes, curves.capacity_mbps, step))
        if not medium().column:
            axes.set_title(f"Average capacity {metrics.capacity_mbps or 0.0:.2f} Mbit/s (shaded region)")
    ingress_lines, egress_lines = [], []
    for index, (flow, (number, numbers)) in enumerate(zip(curves.flows, metrics.flows.items(), strict=False)):
        color = flow_color(index)
        first = _first_bin(flow.ingress_mbps)
        ingress_lines += axes.plot(
            np.arange(first, flow.ingress_mbps.size) * step,
            flow.ingress_mbps[first:],
            linestyle="--",
            linewidth=1.4 * medium().line,
            color=color,
            label=f"Flow {number} ingress (mean {numbers.ingress_mbps:.2f} Mbit/s)",
        )
        first = _first_bin(flow.egress_mbps)
        egress_lines += axes.plot(
            np.arange(first, flow.egress_mbps.size + 1) * step,
            np.concatenate(([0.0], flow.egress_mbps[first:])),
            linewidth=1.8 * medium().line,
            color=color,
            label=f"Flow {number} egress (mean {numbers.throughput_mbps:.2f} Mbit/s)",
        )
        end = max(end, flow.ingress_mbps.size * step - step, flow.egress_mbps.size * step)
    axes.set_xlim(0, math.ceil(end))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Throughput (Mbit/s)")
    return [*ingress_lines, *egress_lines, *left_out(curves, metrics)]


def left_out(curves: RunCurves, metrics: RunMetrics) -> list[Line2D]:
    """An entry of the legend that says how many flows of the run the figure does not show."""
    more = len(metrics.flows) - len(curves.flows)
    return [Line2D([], [], linestyle="", label=f"{more} more flows are not drawn")] if more > 0 else []


def total_egress(flows: Sequence[FlowCurves]) -> FloatArray:
    """Mbit/s of all flows together, per bin."""
    total = np.zeros(max((flow.egress_mbps.size for flow in flows), default=0))
    for flow in flows:
        total[: flow.egress_mbps.size] += flow.egress_mbps
    return total


def _first_bin(values: FloatArray) -> int:
    """Index of the first bin with traffic: a flow that starts later is not drawn before it starts."""
    return int(np.argmax(values > 0)) if values.size else 0


def _dots(points: int) -> dict[str, Any]:
    """Style of the dots: few have to be seen, many must not merge."""
    for limit, size in DOT_SIZES:
        if points <= limit:
            return {"marker": ".", "markersize": size * medium().line, "markeredgewidth": 0}
    return {"marker": ","}


def delay_limits(low: float, high: float) -> tuple[float, float]:
    """Limits of an axis of delays: from 0, or from below the smallest where the lower half would be empty."""
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
    """Draw the delays into axes; the dots for a legend."""
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
    # In turns, a few points of each flow at a time: drawn whole, the last flow would cover the others.
    points = sum(flow.delay_ms.size for flow in curves.flows)
    turns = 1 if len(curves.flows) == 1 else 12
    for turn in range(turns):
        for index, flow in enumerate(curves.flows):
            axes.plot(
                flow.delay_time_s[turn::turns],
                flow.delay_ms[turn::turns],
                linestyle="",
                **_dots(points),
                color=flow_color(index),
                rasterized=True,
            )
    axes.set_xlim(0, math.ceil(latest))
    axes.set_ylim(*delay_limits(low, top))
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("One-way delay (ms)" if medium().column else "Per-packet one-way delay (ms)")
    return [*handles, *left_out(curves, metrics)]
