"""Throughput over time of one run: what entered the path, what left it, and what it could carry.

Layout and binning are Pantheon's (``src/analysis/tunnel_graph.py`` @23e738c): ingress dashed, egress solid, capacity
shaded; ingress and capacity stand at the start of their 500 ms bin, egress at its end with a leading 0.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccgym.evaluation.curves import FloatArray, RunCurves
from ccgym.evaluation.metrics import RunMetrics
from ccgym.report.figures import figure
from ccgym.report.style import draw_capacity, flow_color, medium, new_figure, set_margins


@figure("throughput", "throughput over time", page="run", order=1)
def throughput_figure(curves: RunCurves, metrics: RunMetrics) -> Figure:
    """Draw the figure ``<scheme>_datalink_throughput_run<k>.png``. Call within ``house_style``."""
    column = medium().column
    drawn, axes = new_figure(12, 6)
    lines = draw_throughput(axes, curves, metrics)
    # A column has no room for two entries side by side.
    rows = max(1, len(curves.flows)) * (2 if column else 1)
    set_margins(drawn, left=5.0, right=2.0, top=1.0 if column else 2.7, bottom=4.9 + 1.5 * rows)
    # Columns are filled one after the other: ingress left, egress right, one row per flow.
    axes.legend(
        handles=lines,
        loc="lower center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=drawn.transFigure,
        ncol=1 if column else 2,
        handlelength=2.6,
    )
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


def _first_bin(values: FloatArray) -> int:
    """Index of the first bin with traffic: a flow that starts later is not drawn before it starts."""
    return int(np.argmax(values > 0)) if values.size else 0
