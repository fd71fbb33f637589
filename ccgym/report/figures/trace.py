"""A delivery trace: rate over time, and the cumulative data that the link could have delivered."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure

from ccgym.report.figures import figure
from ccgym.report.style import CAPACITY_COLOR, blank_figure
from ccgym.schemes.style import FLOW_COLORS
from ccgym.tracetools.inspect import TraceLike, binned_rates, opportunities_before, summarize, times_of
from ccgym.units import PACKET_BYTES

BINS_MS: Final = (100, 500)
"""Widths of the bins of the thin line and of the thick one, which is Pantheon's."""


@figure("trace", "rate and capacity of a delivery trace over time", page="command")
def trace_figure(trace: TraceLike, title: str = "") -> Figure:
    """Draw one period of a trace. Call within :func:`~ccgym.report.style.house_style`.

    The upper half shows the rate in bins of 100 ms (thin) and 500 ms (thick); the mean is dashed. The lower half shows
    the data that could have been delivered. Outages of more than 100 ms are shaded in both halves.
    """
    times = times_of(trace)
    summary = summarize(times)
    color, mean_color = FLOW_COLORS[0], FLOW_COLORS[2]
    drawn = blank_figure(12, 6)
    drawn.set_layout_engine("constrained")
    rates, total = drawn.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    shortest = max(1, summary.period_ms // 40)
    widths = sorted({min(width, shortest) for width in BINS_MS})
    for width in widths:
        edges, mbps = binned_rates(times, width)
        rates.stairs(mbps, edges / 1e3, label=f"per {width} ms", color=color, lw=1.6 if width == widths[-1] else 0.5)
    mean = summary.mean_rate_mbps
    rates.axhline(mean, color=mean_color, lw=1.0, ls="--", label=f"mean {mean:.4g} Mbit/s")
    rates.set_ylabel("Rate (Mbit/s)")
    grid = np.linspace(0, summary.period_ms, min(2000, summary.period_ms + 1)).astype(np.int64)
    delivered = opportunities_before(times, grid + 1) * PACKET_BYTES / 1e6
    total.plot(grid / 1e3, delivered, color=color, lw=1.4, drawstyle="steps-post")
    total.plot([0, summary.period_ms / 1e3], [0, delivered[-1]], color=mean_color, lw=1.0, ls="--")
    total.set_ylabel("Delivered (MB)")
    total.set_xlabel("Time (s)")
    total.set_xlim(0, summary.period_ms / 1e3)
    ends = times.astype(np.int64) / 1e3
    gaps = np.diff(ends, prepend=0)
    for place, index in enumerate(np.flatnonzero(gaps > 0.1)[:500]):
        for axes in (rates, total):
            label = "no delivery for over 100 ms" if axes is rates and place == 0 else ""
            axes.axvspan(ends[index] - gaps[index], ends[index], color=CAPACITY_COLOR, label=label, zorder=0)
    for axes in (rates, total):
        axes.set_ylim(bottom=0)
    rates.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.2)
    rates.set_title(title, loc="left")
    return drawn
