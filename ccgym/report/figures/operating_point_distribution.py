"""ccperf's distribution of the operating point: eCDFs of throughput and smoothed round-trip time, a curve per flow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.figures import figure
from ccgym.report.operating_figures import QUANTITIES, OperatingOptions, Runs, Shown, ecdf
from ccgym.report.style import flow_color

SHOWN: Final = ("throughput_mbps", "srtt_ms")


@figure(
    "operating_point_distribution",
    "distributions of throughput and sRTT, a curve per flow",
    page="test",
    options=OperatingOptions,
)
def distribution_figure(results: ExperimentResults, test: Test, options: OperatingOptions) -> Figure:
    """Draw the first run of every scheme."""
    runs = Runs.of(results, test, options)

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, SHOWN, strict=True):
            for place in one.flows:
                ecdf(axes, one.finite(place, name), flow_color(place))
            axes.set_ylim(0, 1.02)
            axes.set_xlabel(QUANTITIES[name])

    return runs.grid(["eCDF"] * len(SHOWN), column, runs.flow_handles(linewidth=1.8), sharex="row", sharey=True)
