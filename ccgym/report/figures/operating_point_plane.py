"""ccperf's plane of mean operating points: mean throughput against mean smoothed round-trip time, a mark per flow."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ccgym.report.operating_figures import DOTS, QUANTITIES, STAR, Runs, Shown, mark_flows, operating_figure


@operating_figure("operating_point_plane", "mean throughput against mean sRTT, a mark per flow, with the optimum")
def plane_figure(runs: Runs) -> Figure:
    """Draw the first run of every scheme."""

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        mark_flows(rows[0], one.points, "srtt_ms", "throughput_mbps")
        rows[0].set_xlabel(f"mean {QUANTITIES['srtt_ms']}")

    handles = [*runs.flow_handles(**DOTS), STAR]
    return runs.grid([f"mean {QUANTITIES['throughput_mbps']}"], column, handles, sharex=True, sharey=True)
