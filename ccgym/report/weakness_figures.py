"""The figures of the weakness tests, by the test's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from matplotlib.figure import Figure

from ccgym.evaluation.weaknesses import (
    bandwidth_sweep,
    cubic_friendliness,
    intra_rtt_fairness,
    self_inflicted_loss,
)
from ccgym.evaluation.weaknesses.base import Weakness
from ccgym.evaluation.weaknesses.results import WeaknessResults
from ccgym.evaluation.weaknesses.rig import BUFFERS_BDP
from ccgym.report.weakness_series import responsiveness_figure, stale_figure
from ccgym.report.weakness_starts import starts_figure
from ccgym.report.weakness_sweeps import Line, Panel, sweep_figure

DELAY: Final = "one-way delay (ms)"
RATE: Final = "rate (Mbit/s)"


def fairness_figure(results: WeaknessResults, test: Weakness) -> Figure:
    """Goodput ratio over the delay, a panel per buffer."""
    return sweep_figure(
        results,
        test,
        [
            [
                Panel(
                    f"buffer {buffer:g} BDP",
                    "one_way_ms",
                    DELAY,
                    "ratio",
                    [Line({"buffer_bdp": buffer})],
                    (intra_rtt_fairness.INSIDE, 1.03),
                )
                for buffer in BUFFERS_BDP
            ]
        ],
    )


def bandwidth_figure(results: WeaknessResults, test: Weakness) -> Figure:
    """Goodput ratio and utilization over the rate, a column per buffer."""
    marks = {"ratio": bandwidth_sweep.FAIR, "utilization": bandwidth_sweep.USED}
    return sweep_figure(
        results,
        test,
        [
            [
                Panel(
                    f"buffer {buffer:g} BDP" if measure == "ratio" else "",
                    "rate_mbps",
                    RATE,
                    measure,
                    [Line({"buffer_bdp": buffer})],
                    (mark, 1.0 if measure == "utilization" else 1.03),
                    y_limits=None if measure == "utilization" else (0.0, 1.03),
                    percent=measure == "utilization",
                )
                for buffer in BUFFERS_BDP
            ]
            for measure, mark in marks.items()
        ],
    )


def cubic_figure(results: WeaknessResults, test: Weakness) -> Figure:
    """Cubic's share over delay and rate, a column per buffer, lines for both orders."""
    sweeps = {"delay": ("one_way_ms", DELAY), "rate": ("rate_mbps", RATE)}
    return sweep_figure(
        results,
        test,
        [
            [
                Panel(
                    f"buffer {buffer:g} BDP" if sweep == "delay" else "",
                    x,
                    label,
                    "cubic_share",
                    [
                        Line({"sweep": sweep, "buffer_bdp": buffer, "cubic": "first"}, "-", "Cubic came first"),
                        Line({"sweep": sweep, "buffer_bdp": buffer, "cubic": "second"}, "--", "Cubic joined"),
                    ],
                    cubic_friendliness.SHARE,
                )
                for buffer in BUFFERS_BDP
            ]
            for sweep, (x, label) in sweeps.items()
        ],
    )


def loss_figure(results: WeaknessResults, test: Weakness) -> Figure:
    """Loss rate over the buffer, a panel per rate; delays together."""
    names = {buffer: f"{buffer:g}" for buffer in self_inflicted_loss.BUFFERS_BDP}
    return sweep_figure(
        results,
        test,
        [
            [
                Panel(
                    f"{rate} Mbit/s",
                    "buffer_bdp",
                    "buffer (BDP)",
                    "loss",
                    [Line({"rate_mbps": rate})],
                    (0.0, self_inflicted_loss.MOST),
                    y_limits=(0.0, 1.0),
                    percent=True,
                    log=True,
                    names=names,
                    passes_at={min(names): (0.0, self_inflicted_loss.MOST_SHALLOW)},
                )
                for rate in self_inflicted_loss.RATES_MBPS
            ]
        ],
    )


FIGURES: Final[Mapping[str, Callable[[WeaknessResults, Weakness], Figure]]] = {
    "intra_rtt_fairness": fairness_figure,
    "bandwidth_sweep": bandwidth_figure,
    "cubic_friendliness": cubic_figure,
    "responsiveness": responsiveness_figure,
    "self_inflicted_loss": loss_figure,
    "startup_recovery": starts_figure,
    "stale_estimates": stale_figure,
}
"""What draws the figure of a test. Call within ``house_style``."""
