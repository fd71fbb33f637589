"""ccperf's plane of mean operating points: mean throughput against mean smoothed round-trip time, a mark per flow."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.figures import figure
from ccgym.report.operating_figures import (
    QUANTITIES,
    OperatingOptions,
    Runs,
    Shown,
    mark_flow,
    mark_optimum,
    optimum_handle,
)


@figure(
    "operating_point_plane",
    "mean throughput against mean sRTT, a mark per flow, with the optimum",
    page="test",
    options=OperatingOptions,
)
def plane_figure(results: ExperimentResults, test: Test, options: OperatingOptions) -> Figure:
    """Draw the first run of every scheme."""
    runs = Runs.of(results, test, options)

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        (axes,) = rows
        mark_optimum(axes, one.points, "srtt_ms", "throughput_mbps")
        for place, point in enumerate(one.points.flows):
            mark_flow(axes, place, point.srtt_ms, point.throughput_mbps)
        axes.set_xlabel(f"mean {QUANTITIES['srtt_ms']}")

    handles = [*runs.flow_handles(marker="o", linestyle="", markersize=8), optimum_handle()]
    return runs.grid([f"mean {QUANTITIES['throughput_mbps']}"], column, handles, sharex=True, sharey=True)
