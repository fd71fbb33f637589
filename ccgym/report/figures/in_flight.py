"""ccperf's packets in flight against the mean operating point: mean throughput and mean sRTT, a mark per flow.

The star is the optimum, the diamond all flows together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
    joint_handle,
    mark,
    mark_flow,
    mark_optimum,
    optimum_handle,
)
from ccgym.report.style import INK

UPWARD: Final = ("throughput_mbps", "srtt_ms")


@figure(
    "in_flight",
    "packets in flight against mean throughput and mean sRTT, with the optimum and all flows together",
    page="test",
    options=OperatingOptions,
)
def in_flight_figure(results: ExperimentResults, test: Test, options: OperatingOptions) -> Figure:
    """Draw the first run of every scheme."""
    runs = Runs.of(results, test, options)

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, UPWARD, strict=True):
            mark_optimum(axes, one.points, "in_flight", name)
            if len(one.flows) > 1:
                mark(axes, one.points.joint.in_flight, getattr(one.points.joint, name), "D", INK, 7)
            for place, point in enumerate(one.points.flows):
                mark_flow(axes, place, point.in_flight, getattr(point, name))
            axes.set_xlim(left=0)
        rows[-1].set_xlabel(f"mean {QUANTITIES['in_flight']}")

    several = [joint_handle()] if runs.most_flows > 1 else []
    handles = [*runs.flow_handles(marker="o", linestyle="", markersize=8), *several, optimum_handle()]
    return runs.grid([f"mean {QUANTITIES[name]}" for name in UPWARD], column, handles, sharex=True, sharey="row")
