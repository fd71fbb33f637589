"""ccperf's comparison of schemes: the joint operating points of all schemes, and two distributions.

Distributions are of the summed throughput of all flows, and of their smoothed round-trip times.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from ccgym.report.layout import scheme_handles
from ccgym.report.operating_figures import OPTIMUM, QUANTITIES, STAR, Runs, ecdf, folded, mark, operating_figure
from ccgym.report.style import blank_figure, legible


@operating_figure(
    "operating_point_comparison", "joint operating points of all schemes, and the distributions of throughput and sRTT"
)
def comparison_figure(runs: Runs) -> Figure:
    """Draw joint operating points, and the distributions of the flows' summed throughput and of their sRTT."""
    drawn = blank_figure(12.4, 4.3)
    plane, rates, times = drawn.subplots(1, 3)
    for one in runs.shown:
        color = legible(one.style.color)
        mark(plane, one.points.joint, "srtt_ms", "throughput_mbps", one.style.marker, color, 10)
        total = np.sum([np.nan_to_num(one.run.over_time(place, "throughput_mbps")) for place in one.flows], axis=0)
        ecdf(rates, total, color)
        ecdf(times, np.concatenate([one.finite(place, "srtt_ms") for place in one.flows]), color)
    if runs.shown:
        mark(plane, runs.shown[0].points.optimum, "srtt_ms", "throughput_mbps", "*", OPTIMUM, 15)
    rate, srtt = (QUANTITIES[name].replace(" (", " of all flows (") for name in ("throughput_mbps", "srtt_ms"))
    plane.set_xlabel(f"mean {srtt}")
    plane.set_ylabel(folded(f"mean {rate}"))
    for axes, label in ((rates, rate), (times, srtt)):
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(label)
        axes.set_ylabel("eCDF")
    return runs.finish(drawn, [*scheme_handles(one.style for one in runs.shown), STAR])
