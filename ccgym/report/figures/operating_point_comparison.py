"""ccperf's comparison of schemes: the joint operating points of all, and the distributions of what all flows had.

Distributions are of the summed throughput of all flows, and of their smoothed round-trip times.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccgym.report.operating_figures import OPTIMUM, QUANTITIES, STAR, Runs, ecdf, folded, mark, operating_figure
from ccgym.report.style import blank_figure, legible


@operating_figure(
    "operating_point_comparison", "joint operating points of all schemes, and the distributions of throughput and sRTT"
)
def comparison_figure(runs: Runs) -> Figure:
    """Draw the first run of every scheme."""
    drawn = blank_figure(12.4, 4.3)
    plane, rates, times = drawn.subplots(1, 3)
    handles = []
    for one in runs.shown:
        color, style = legible(one.style.color), one.style
        mark(plane, one.points.joint, "srtt_ms", "throughput_mbps", style.marker, color, 10)
        total = np.sum([np.nan_to_num(one.run.over_time(place, "throughput_mbps")) for place in one.flows], axis=0)
        ecdf(rates, total, color)
        ecdf(times, np.concatenate([one.finite(place, "srtt_ms") for place in one.flows]), color)
        handles.append(Line2D([], [], color=color, marker=style.marker, linewidth=1.8, label=style.label))
    if runs.shown:
        mark(plane, runs.shown[0].points.optimum, "srtt_ms", "throughput_mbps", "*", OPTIMUM, 15)
    rate, srtt = (QUANTITIES[name].replace(" (", " of all flows (") for name in ("throughput_mbps", "srtt_ms"))
    plane.set_xlabel(f"mean {srtt}")
    plane.set_ylabel(folded(f"mean {rate}"))
    for axes, label in ((rates, rate), (times, srtt)):
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(label)
        axes.set_ylabel("eCDF")
    return runs.finish(drawn, [*handles, STAR])
