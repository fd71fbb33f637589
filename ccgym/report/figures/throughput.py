"""Throughput over time of one run: rate into the path, rate out of the path, and capacity.

Layout and binning are Pantheon's (``src/analysis/tunnel_graph.py`` @23e738c): ingress dashed, egress solid, capacity
shaded; ingress and capacity are at the start of their 500 ms bin, egress at its end with a leading 0.
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
from ccgym.report.layout import set_margins
from ccgym.report.style import draw_capacity, flow_color, medium, new_figure


@figure("throughput", "throughput over time", page="run", order=1)
def throughput_figure(curves: RunCurves, metrics: RunMetrics) -> Figure:
    """Draw the figure ``<scheme>_datalink_throughput_run<k>.png``. Call within ``house_style``."""
    drawn, axes = new_figure(12, 6)
    lines = draw_throughput(axes, curves, metrics)
    # A column of a paper has no room for two entries side by side. matplotlib fills a legend column by column: ingress
    # left, egress right, one row per flow.
    columns = 1 if medium().column else 2
    rows = max(1, len(curves.flows)) * 2 // columns
    return legend_below(drawn, axes, lines, columns, rows, 2.7, handlelength=2.6)


def legend_below(
    drawn: Figure, axes: Axes, handles: Sequence[Line2D], columns: int, rows: int, top: float, **style: Any
) -> Figure:
    """Write the legend below the axes, and leave room for it; ``top`` is the room above, as in ``set_margins``."""
    set_margins(drawn, left=5.0, right=2.0, top=1.0 if medium().column else top, bottom=4.9 + 1.5 * rows)
    axes.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 0.0), bbox_transform=drawn.transFigure, ncol=columns,
        **style,
    )  # fmt: skip
    return drawn


def draw_throughput(axes: Axes, curves: RunCurves, metrics: RunMetrics, *, ingress: bool = True) -> list[Line2D]:
    """Draw the curves into axes; return the lines for a legend, first the lines of the ingress."""
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
            np.arange(first, flow.ingress_mbps.size) * step, flow.ingress_mbps[first:], linestyle="--", color=color,
            linewidth=1.4 * medium().line, label=f"Flow {number} ingress (mean {numbers.ingress_mbps:.2f} Mbit/s)",
        ) if ingress else []  # fmt: skip
        first = _first_bin(flow.egress_mbps)
        egress_lines += axes.plot(
            np.arange(first, flow.egress_mbps.size + 1) * step, np.concatenate(([0.0], flow.egress_mbps[first:])),
            linewidth=1.8 * medium().line, color=color,
            label=f"Flow {number} egress (mean {numbers.throughput_mbps:.2f} Mbit/s)",
        )  # fmt: skip
        end = max(end, flow.ingress_mbps.size * step - step, flow.egress_mbps.size * step)
    axes.set_xlim(0, math.ceil(end))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Throughput (Mbit/s)")
    return [*ingress_lines, *egress_lines, *left_out(curves, metrics)]


def left_out(curves: RunCurves, metrics: RunMetrics) -> list[Line2D]:
    """Return a legend entry with the number of flows that the figure does not show."""
    more = len(metrics.flows) - len(curves.flows)
    return [Line2D([], [], linestyle="", label=f"{more} more flows are not drawn")] if more > 0 else []


def total_egress(flows: Sequence[FlowCurves]) -> FloatArray:
    """Return the rate of all flows together per bin, Mbit/s."""
    total = np.zeros(max((flow.egress_mbps.size for flow in flows), default=0))
    for flow in flows:
        total[: flow.egress_mbps.size] += flow.egress_mbps
    return total


def _first_bin(values: FloatArray) -> int:
    """Return the index of the first bin with traffic: a flow is not drawn before its start."""
    return int(np.argmax(values > 0)) if values.size else 0
