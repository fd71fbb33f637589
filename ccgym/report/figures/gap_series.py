"""Time series of every backend, one panel per scheme: throughput on the left, one-way delay on the right.

The first run of a backend is drawn bold, the other runs thin. Simulated runs differ only by their seeds, real runs also
by the timing of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.experiments.views.gap import Gap, counterpart
from ccgym.report.figures import figure
from ccgym.report.figures.throughput import total_egress
from ccgym.report.style import INK, MUTED, blank_figure, draw_capacity, text_at
from ccgym.report.table import counted

Floats = npt.NDArray[np.float64]

COLORS: Final[Mapping[str, str]] = {"sim": "#1f5fbf", "emulated": "#2a8f4f", "mahimahi": "#c8372d"}

WIDTH_IN: Final = 13.0
ROW_IN: Final = 2.6
EDGES_IN: Final = 1.2
"""Room above and below the panels, inches."""
DELAY_BIN_S: Final = 0.1
"""Width of the bins over which delays are averaged, seconds: this shows the queue, not single packets."""


@figure("gap_series", "Throughput and one-way delay over time, one row per scheme, one color per backend", page="gap")
def gap_figure(gap: Gap) -> Figure:
    """Draw the panels of all schemes. Call within ``house_style``."""
    height = ROW_IN * len(gap.schemes) + EDGES_IN
    drawn = blank_figure(WIDTH_IN, height)
    panels = drawn.subplots(len(gap.schemes), 2, sharex=True, squeeze=False)
    longest_s = max((float(results.parameters["runtime_s"]) for results in gap.results.values()), default=1.0)
    for row, scheme in enumerate(gap.schemes):
        throughput, delay = panels[row]
        throughput.set_title(scheme.label, loc="left", color=INK, weight="bold")
        throughput.set_ylabel("Throughput\n(Mbit/s)")
        delay.set_ylabel("One-way delay\n(ms)")
        capacity_drawn = False
        for name, results in gap.results.items():
            stands_for = counterpart(scheme, name)
            cells = [] if stands_for is None else [c for c in results.cells if c.scheme == stands_for.key]
            # The first run is drawn last, so that it is on top.
            for place, cell in reversed(list(enumerate(cells))):
                curves = RunCurves.load(gap.directories[name] / cell.curves)
                if not capacity_drawn and curves.capacity_mbps.size:
                    draw_capacity(throughput, curves.capacity_mbps, curves.bin_s)
                    capacity_drawn = True
                _draw(throughput, delay, curves, COLORS[name], bold=place == 0)
        throughput.set_ylim(bottom=0)
        # The axis begins at the smallest delay: an empty band below would leave little room for the queue.
        low, high = delay.get_ylim()
        delay.set_ylim(max(0.0, low - 0.05 * (high - low)), high)
        for axes in (throughput, delay):
            axes.set_xlim(0, longest_s)
    for axes in panels[-1]:
        axes.set_xlabel("Time (s)")
    _legend(drawn, gap, height)
    drawn.subplots_adjust(left=0.065, right=0.985, top=1 - 0.62 / height, bottom=0.55 / height, hspace=0.28, wspace=0.2)
    return drawn


def _draw(throughput: Axes, delay: Axes, curves: RunCurves, color: str, *, bold: bool) -> None:
    width, alpha = (1.9, 1.0) if bold else (0.7, 0.4)
    rates = total_egress(curves.flows)
    throughput.plot(
        np.arange(rates.size + 1) * curves.bin_s,
        np.concatenate(([0.0], rates)),
        color=color,
        linewidth=width,
        alpha=alpha,
    )
    times, delays = delay_line(curves.flows)
    delay.plot(times, delays, color=color, linewidth=0.75 * width, alpha=alpha)


def delay_line(flows: Sequence[FlowCurves], width_s: float = DELAY_BIN_S) -> tuple[Floats, Floats]:
    """Return the mean delay over time (s, ms) of all flows' packets.

    Curves contain the occupied cells of a grid of times and delays. Cells of one time are averaged first, then the
    times of a bin: so every instant has the same weight, however many cells it has.

    Args:
        flows: The flows of a run.
        width_s: Width of a bin, seconds.
    """
    times = np.concatenate([flow.delay_time_s for flow in flows] or [np.empty(0)])
    delays = np.concatenate([flow.delay_ms for flow in flows] or [np.empty(0)])
    if not times.size:
        return np.empty(0), np.empty(0)
    instants, which = np.unique(times, return_inverse=True)
    per_instant = np.asarray(np.bincount(which, weights=delays) / np.bincount(which), dtype=np.float64)
    bins = (instants / width_s).astype(np.int64)
    filled, which = np.unique(bins, return_inverse=True)
    means = np.bincount(which, weights=per_instant) / np.bincount(which)
    return np.asarray((filled + 0.5) * width_s, dtype=np.float64), np.asarray(means, dtype=np.float64)


def _legend(figure: Figure, gap: Gap, height: float) -> None:
    runs = {name: counted(int(results.parameters["runs"]), "run") for name, results in gap.results.items()}
    handles = [
        Line2D([], [], color=COLORS[name], linewidth=2.2, label=f"{name} ({count})") for name, count in runs.items()
    ]
    figure.legend(handles=handles, loc="upper left", ncols=max(1, len(handles)), bbox_to_anchor=(0.058, 1.0))
    note = f"{gap.path.name or 'path'}: run 1 bold, others thin"
    text_at(figure, 0.985 * WIDTH_IN, height - 0.2, note, ha="right", color=MUTED, fontsize=10)
