"""ccperf's comparison of schemes: the joint operating points of all, and the distributions of what all flows had.

Distributions are of the summed throughput of all flows, and of their smoothed round-trip times.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.figures import figure
from ccgym.report.operating_figures import (
    QUANTITIES,
    OperatingOptions,
    Runs,
    ecdf,
    folded,
    mark,
    mark_optimum,
    optimum_handle,
)
from ccgym.report.style import blank_figure, legible

SIZE_IN: Final = (12.4, 4.3)


def of_all(name: str, before: str = "") -> str:
    """``mean throughput of all flows (Mbit/s)``."""
    return f"{before}{QUANTITIES[name]}".replace(" (", " of all flows (")


@figure(
    "operating_point_comparison",
    "joint operating points of all schemes, and the distributions of throughput and sRTT",
    page="test",
    options=OperatingOptions,
)
def comparison_figure(results: ExperimentResults, test: Test, options: OperatingOptions) -> Figure:
    """Draw the first run of every scheme."""
    runs = Runs.of(results, test, options)
    drawn = blank_figure(*SIZE_IN)
    plane, rates, times = drawn.subplots(1, 3)
    handles = []
    for one in runs.shown:
        color, style = legible(one.style.color), one.style
        joint = one.points.joint
        mark(plane, joint.srtt_ms, joint.throughput_mbps, style.marker, color, 10)
        total = np.sum([np.nan_to_num(one.run.over_time(place, "throughput_mbps")) for place in one.flows], axis=0)
        ecdf(rates, total, color)
        ecdf(times, np.concatenate([one.finite(place, "srtt_ms") for place in one.flows]), color)
        handles.append(Line2D([], [], color=color, marker=style.marker, linewidth=1.8, label=style.label))
    if runs.shown:
        mark_optimum(plane, runs.shown[0].points, "srtt_ms", "throughput_mbps")
    plane.set_xlabel(of_all("srtt_ms", "mean "))
    plane.set_ylabel(folded(of_all("throughput_mbps", "mean ")))
    for axes, name in ((rates, "throughput_mbps"), (times, "srtt_ms")):
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(of_all(name))
        axes.set_ylabel("eCDF")
    runs.finish(drawn, [*handles, optimum_handle()])
    return drawn
