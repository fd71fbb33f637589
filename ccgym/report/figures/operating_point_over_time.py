"""ccperf's time series of the operating point: throughput, smoothed round-trip time and packets in flight over time.

A column per scheme, a row per quantity, a line per flow; the dotted line is the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.report.operating_figures import OPTIMUM, QUANTITIES, Runs, Shown, operating_figure
from ccgym.report.style import flow_color


@operating_figure("operating_point_over_time", "throughput, sRTT and packets in flight over time, a line per flow")
def over_time_figure(runs: Runs) -> Figure:
    """Draw a column per scheme and a row per quantity; the dotted line is the optimum."""

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, QUANTITIES, strict=True):
            for place in one.flows:
                axes.plot(one.run.ends_s, one.run.over_time(place, name), color=flow_color(place), linewidth=1.1)
            if (best := getattr(one.points.optimum, name, None)) is not None:
                axes.axhline(best, color=OPTIMUM, linewidth=0.9, linestyle=":", zorder=1)
            axes.set_xlim(0, one.run.numbers["duration_s"])
        rows[-1].set_xlabel("time (s)")

    return runs.grid(list(QUANTITIES.values()), column, runs.flow_handles(linewidth=1.8), sharex=True, sharey="row")
