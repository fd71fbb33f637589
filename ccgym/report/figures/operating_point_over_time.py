"""ccperf's time series of the operating point: throughput, smoothed round-trip time and packets in flight over time.

A column per scheme, a row per quantity, a line per flow; the dotted line is the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.figures import figure
from ccgym.report.operating_figures import QUANTITIES, OperatingOptions, Runs, Shown, reference_line
from ccgym.report.style import flow_color


@figure(
    "operating_point_over_time",
    "throughput, sRTT and packets in flight over time, a line per flow",
    page="test",
    options=OperatingOptions,
)
def over_time_figure(results: ExperimentResults, test: Test, options: OperatingOptions) -> Figure:
    """Draw the first run of every scheme."""
    runs = Runs.of(results, test, options)

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, QUANTITIES, strict=True):
            for place in one.flows:
                color = flow_color(place)
                axes.plot(one.run.ends_s, one.run.over_time(place, name), color=color, linewidth=1.1)
            if one.points.optimum is not None:
                reference_line(axes, getattr(one.points.optimum, name))
            axes.set_xlim(0, one.run.numbers["duration_s"])
        rows[-1].set_xlabel("time (s)")

    handles = runs.flow_handles(linewidth=1.8)
    return runs.grid(list(QUANTITIES.values()), column, handles, sharex=True, sharey="row")
