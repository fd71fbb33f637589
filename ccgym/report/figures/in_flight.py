"""ccperf's packets in flight against the mean operating point: mean throughput and mean sRTT, a mark per flow.

The star is the optimum, the diamond shows all flows together.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.report.operating_figures import DOTS, JOINT, QUANTITIES, STAR, Runs, Shown, mark_flows, operating_figure


@operating_figure(
    "in_flight", "packets in flight against mean throughput and mean sRTT, with the optimum and all flows together"
)
def in_flight_figure(runs: Runs) -> Figure:
    """Draw the first run of every scheme."""
    upward = ("throughput_mbps", "srtt_ms")

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, upward, strict=True):
            mark_flows(axes, one.points, "in_flight", name, joint=True)
            axes.set_xlim(left=0)
        rows[-1].set_xlabel(f"mean {QUANTITIES['in_flight']}")

    handles = [*runs.flow_handles(**DOTS), *([JOINT] if runs.most_flows > 1 else []), STAR]
    return runs.grid([f"mean {QUANTITIES[name]}" for name in upward], column, handles, sharex=True, sharey="row")
