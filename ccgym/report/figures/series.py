"""Rates, losses or round-trip times over time: a row per scheme with the capacity, or a panel per condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pydantic import Field

from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import coordinates_text
from ccgym.report.figures import Options, figure
from ccgym.report.layout import finish, scheme_handles, wrapped
from ccgym.report.style import CAPACITY_COLOR, CAPACITY_EDGE, INK, MUTED, PASS_COLOR, blank_figure, legible

WIDTH_IN: Final = 13.0
ROW_IN: Final = {"scheme": 1.25, "condition": 3.0}
EDGES_IN: Final = 1.1
"""Room above and below the rows, inches."""
MIN_IN: Final = 3.6


_LABELS: Final = {"rate": "rate / capacity (%)", "loss": "packets dropped (%)", "rtt": "round-trip time (ms)"}


class SeriesOptions(Options):
    """Options of the figure ``series``."""

    by: Literal["scheme", "condition"] = "scheme"
    """Whether each scheme or each condition has its own panel."""
    of: Literal["rate", "loss", "rtt"] = "rate"
    """For ``by: condition``: rate / capacity, packets dropped per packet sent, or the mean round-trip time."""
    threshold: float | None = None
    """For ``by: condition``: the min fraction of the capacity that passes, shaded."""
    events: dict[float, str] = Field(default_factory=dict)
    """Marked instants, seconds, with the text of each event."""


@figure("series", "rates over time", page="test", options=SeriesOptions)
def series_figure(results: ExperimentResults, test: Test, options: SeriesOptions) -> Figure:
    """Draw the panels: for each condition, the run whose series was kept."""
    conditions = results.of_test(test)[0][1].conditions if results.styles else ()
    columns = 1 if options.by == "scheme" else min(2, max(1, len(conditions)))
    panels = len(results.styles) if options.by == "scheme" else len(conditions)
    rows = max(1, -(-panels // columns))
    drawn = blank_figure(WIDTH_IN, max(MIN_IN, ROW_IN[options.by] * rows + EDGES_IN))
    grid = drawn.subplots(rows, columns, sharex=True, sharey=options.of == "rate", squeeze=False)
    if options.by == "scheme":
        _by_scheme([row[0] for row in grid], results, test)
    else:
        for place, condition in enumerate(conditions):
            axes = grid[place // columns][place % columns]
            axes.set_title(wrapped(coordinates_text(condition.at), WIDTH_IN / columns - 1, 11), fontsize=11)
            _condition(axes, results, test, condition.key, options)
    for axes in grid.flat:
        for at, what in options.events.items():
            axes.axvline(at, color=MUTED, linewidth=0.9, linestyle=":")
            axes.annotate(
                what, (at, 0.04), (-4, 0), xycoords=axes.get_xaxis_transform(), textcoords="offset points",
                ha="right", va="bottom", fontsize=9.5, color=MUTED,
            )  # fmt: skip
        axes.margins(x=0)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    label = "rate (Mbit/s)" if options.by == "scheme" else _LABELS[options.of]
    drawn.supylabel(label, color=INK, fontsize=12)
    handles = scheme_handles(results.styles) if options.by == "condition" else []
    return finish(drawn, f"{test.title}: {label.partition(' (')[0]} over time", handles)


def _by_scheme(panels: Sequence[Axes], results: ExperimentResults, test: Test) -> None:
    for axes, (style, outcome) in zip(panels, results.of_test(test), strict=False):
        color = legible(style.color)
        for series in outcome.series().values():
            times, capacity = _from_zero(series["t_s"], series["capacity_mbps"])
            axes.fill_between(
                times, 0, capacity, step="pre", facecolor=CAPACITY_COLOR, edgecolor=CAPACITY_EDGE, linewidth=0.8
            )
            axes.step(series["t_s"], series["rate_mbps"], where="pre", color=color, linewidth=1.2)
        axes.text(
            0.995, 0.93, style.label, transform=axes.transAxes, ha="right", va="top", color=color, weight="bold",
            fontsize=10, bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 1.5},
        )  # fmt: skip
        axes.set_ylim(bottom=0)


def _condition(axes: Axes, results: ExperimentResults, test: Test, key: str, options: SeriesOptions) -> None:
    """Draw the series of all schemes in a condition."""
    if options.threshold is not None:
        axes.axhspan(100 * options.threshold, 110, color=PASS_COLOR, linewidth=0, zorder=0)
    for style, outcome in results.of_test(test):
        series = outcome.series().get(key)
        if series is not None:
            axes.plot(
                series["t_s"], _values(series, options.of), color=legible(style.color), marker=style.marker,
                markevery=(3, 12), markersize=4.5, linewidth=1.3,
            )  # fmt: skip
    if options.of == "rate":
        axes.set_ylim(0, 110)
    else:
        # Round-trip times of two conditions may differ by a factor of 100.
        axes.tick_params(labelleft=True)
        axes.set_ylim(bottom=0)


def _values(series: Mapping[str, Sequence[float]], of: str) -> npt.NDArray[np.float64]:
    if of == "rate":
        return 100 * np.array(series["rate_mbps"]) / np.maximum(series["capacity_mbps"], 1e-9)
    return 100 * np.array(series["loss"]) if of == "loss" else np.array(series["rtt_ms"])


def _from_zero(times: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return ends and values of bins, with the start of the first bin in front."""
    return [0.0, *times], [values[0] if values else 0.0, *values]
