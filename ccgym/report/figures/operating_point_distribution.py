"""ccperf's distribution of the operating point: eCDFs of throughput and smoothed round-trip time, a curve per flow."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.report.operating_figures import QUANTITIES, Runs, Shown, ecdf, operating_figure
from ccgym.report.style import flow_color


@operating_figure("operating_point_distribution", "distributions of throughput and sRTT, a curve per flow")
def distribution_figure(runs: Runs) -> Figure:
    """Draw the first run of every scheme."""

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, QUANTITIES, strict=False):
            for place in one.flows:
                ecdf(axes, one.finite(place, name), flow_color(place))
            axes.set_ylim(0, 1.02)
            axes.set_xlabel(QUANTITIES[name])

    return runs.grid(["eCDF"] * 2, column, runs.flow_handles(linewidth=1.8), sharex="row", sharey=True)
