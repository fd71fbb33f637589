"""ccperf's figures of operating points, of the first run of every scheme: mean throughput and mean smoothed round-trip
time, over time, as distributions, against packets in flight, in their plane, and of all schemes together.

The star is the optimum, the diamond all flows together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pydantic import Field

from ccgym.errors import ConfigError, shown
from ccgym.experiments.detail import KeptRun
from ccgym.experiments.expand import coordinate
from ccgym.experiments.operating_points import OperatingPoints, operating_points
from ccgym.experiments.outcome import Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import coordinates_text
from ccgym.report.figures import Options, figure
from ccgym.report.style import INK, blank_figure, finish, flow_color, legible, scheme_handles
from ccgym.schemes.style import SchemeStyle

COLUMN_IN: Final = 2.9
ROW_IN: Final = 1.95
EDGES_IN: Final = (0.7, 1.25)
"""Room left of the panels and above them, inches."""
OPTIMUM: Final = "#d411b5"
"""Color of the optimum: ccperf's magenta."""
MOST_FLOWS: Final = 6
"""Flows that a legend names; further ones have the same colors again."""

QUANTITIES: Final[Mapping[str, str]] = {
    "throughput_mbps": "throughput (Mbit/s)", "srtt_ms": "sRTT (ms)", "in_flight": "in flight (packets)",
}  # fmt: skip
"""Labels of what an operating point is made of."""

DOTS: Final[Mapping[str, Any]] = {"marker": "o", "linestyle": "", "markersize": 8}
"""Flows in the legend of a plane."""
STAR: Final = Line2D([], [], linestyle="", marker="*", color=OPTIMUM, markersize=13, label="optimum")
"""The optimum in a legend."""
JOINT: Final = Line2D([], [], linestyle="", marker="D", color=INK, markersize=7, label="joint")
"""All flows together in a legend."""


class OperatingOptions(Options):
    """Options of figures of operating points."""

    where: dict[str, float | str] = Field(default_factory=dict)
    """Coordinates of the condition that is shown; by default it is the first."""


@dataclass(frozen=True)
class Shown:
    """A scheme's run."""

    style: SchemeStyle
    run: KeptRun
    points: OperatingPoints

    @property
    def flows(self) -> range:
        """Positions of its flows."""
        return range(len(self.points.flows))

    def finite(self, place: int, name: str) -> npt.NDArray[np.float64]:
        """The values over time that are known, while the flow was there."""
        flow, times = self.run.numbers["flows"][place], self.run.ends_s
        there = (times > flow["start_s"]) & (times <= flow["stop_s"] + 1e-6)
        values = self.run.over_time(place, name)[there].astype(np.float64)
        return np.asarray(values[np.isfinite(values)])


Draw = Callable[[Shown, Sequence[Axes]], None]
"""Draws a scheme into its column of panels."""


@dataclass(frozen=True)
class Runs:
    """The first runs of all schemes in a condition."""

    title: str
    condition: str
    """In words; empty for the only one."""
    shown: Sequence[Shown]

    @classmethod
    def of(cls, results: ExperimentResults, test: Test, options: OperatingOptions) -> Runs:
        """Read them.

        Raises:
            ConfigError: No condition has these coordinates.
            ResultsError: The file of a run is damaged.
        """
        wanted = {name: coordinate(name, value)[1] for name, value in options.where.items()}
        chosen = next((one for one in test.conditions if wanted.items() <= one.at.items()), None)
        if chosen is None:
            expected = "; ".join(coordinates_text(one.at) for one in test.conditions[:6])
            where = f"figures of {test.name}: where"
            raise ConfigError("unknown-name", shown(options.where), where=where, expected=expected)
        found = [
            Shown(style, run, operating_points(run.numbers))
            for style in results.styles
            if (run := results.kept(test, style.key, chosen.key)) is not None
        ]
        return cls(test.title, coordinates_text(chosen.at) if len(test.conditions) > 1 else "", found)

    @property
    def most_flows(self) -> int:
        """Flows of the run that has the most."""
        return max((len(one.flows) for one in self.shown), default=0)

    def flow_handles(self, **line: Any) -> list[Line2D]:
        """Legend entries of the flows, with the scheme's name where it is the same for all tested schemes."""
        handles = []
        for place in range(min(self.most_flows, MOST_FLOWS)):
            names = {one.run.numbers["flows"][place]["scheme"] for one in self.shown if place in one.flows}
            fixed = f": {names.pop()}" if len(names) == 1 and len(self.shown) > 1 else ""
            handles.append(Line2D([], [], color=flow_color(place), label=f"flow {place + 1}{fixed}", **line))
        return handles

    def grid(self, rows: Sequence[str], draw: Draw, handles: Sequence[Line2D], **axes: Any) -> Figure:
        """A figure with a column per scheme.

        Args:
            rows: Labels of the vertical axes.
            draw: Draws a scheme into its column.
            handles: The legend.
            axes: How panels share their axes.
        """
        columns = max(1, len(self.shown))
        drawn = blank_figure(COLUMN_IN * columns + EDGES_IN[0], ROW_IN * len(rows) + EDGES_IN[1])
        panels = drawn.subplots(len(rows), columns, squeeze=False, **axes)
        for one, column in zip(self.shown, panels.T, strict=False):
            draw(one, list(column))
            column[0].set_title(one.style.label, fontsize=11, color=legible(one.style.color), weight="bold")
        for label, row in zip(rows, panels, strict=True):
            row[0].set_ylabel(_folded(label))
        return self.finish(drawn, handles)

    def finish(self, drawn: Figure, handles: Sequence[Line2D]) -> Figure:
        """Let axes begin at zero, write title and legend, and arrange the rest below them."""
        for axes in drawn.axes:  # when all is drawn: panels share their limits
            axes.set_ylim(bottom=0)
            if axes.get_xlim()[0] < 0:
                axes.set_xlim(left=0)
        return finish(drawn, f"{self.title}: {self.condition}" if self.condition else self.title, handles)


def _figure(name: str, title: str) -> Callable[[Callable[[Runs], Figure]], Callable[[Runs], Figure]]:
    """Registers a function of runs as a figure that tests name."""

    def register(draw: Callable[[Runs], Figure]) -> Callable[[Runs], Figure]:
        def of_test(results: ExperimentResults, test: Test, options: OperatingOptions) -> Figure:
            return draw(Runs.of(results, test, options))

        figure(name, title, page="test", options=OperatingOptions)(of_test)
        return draw

    return register


def _folded(label: str) -> str:
    """A label with its unit in a line of its own."""
    return label.replace(" (", "\n(")


def mark(axes: Axes, point: Any, x: str, y: str, marker: str, color: str, size: float = 9) -> None:
    """A point's quantities, if they are known; with the axes down to zero, and room for it."""
    values: tuple[Any, Any] = getattr(point, x, None), getattr(point, y, None)
    if None not in values:
        axes.plot(*values, marker, color=color, markersize=size, clip_on=False, zorder=4, markeredgewidth=0)
        axes.plot(0, 0, alpha=0)
        axes.margins(0.12)


def mark_flows(axes: Axes, points: OperatingPoints, x: str, y: str, *, joint: bool = False) -> None:
    """The star of the optimum, the diamond of all flows, and the flows: later ones are smaller, so that equal ones
    show."""
    mark(axes, points.optimum, x, y, "*", OPTIMUM, 15)
    if joint and len(points.flows) > 1:
        mark(axes, points.joint, x, y, "D", INK, 7)
    for place, point in enumerate(points.flows):
        mark(axes, point, x, y, "o", flow_color(place), max(5.0, 11.0 - 2.5 * place))


def ecdf(axes: Axes, values: npt.NDArray[np.float64], color: str) -> None:
    """An empirical distribution."""
    if values.size:
        axes.ecdf(values, color=color, linewidth=1.6)


@_figure("operating_point_over_time", "throughput, sRTT and packets in flight over time, a line per flow")
def _over_time(runs: Runs) -> Figure:
    """A column per scheme, a row per quantity; the dotted line is the optimum."""

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, QUANTITIES, strict=True):
            for place in one.flows:
                axes.plot(one.run.ends_s, one.run.over_time(place, name), color=flow_color(place), linewidth=1.1)
            if (best := getattr(one.points.optimum, name, None)) is not None:
                axes.axhline(best, color=OPTIMUM, linewidth=0.9, linestyle=":", zorder=1)
            axes.set_xlim(0, one.run.numbers["duration_s"])
        rows[-1].set_xlabel("time (s)")

    return runs.grid(list(QUANTITIES.values()), column, runs.flow_handles(linewidth=1.8), sharex=True, sharey="row")


@_figure("operating_point_distribution", "distributions of throughput and sRTT, a curve per flow")
def _distribution(runs: Runs) -> Figure:
    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, QUANTITIES, strict=False):
            for place in one.flows:
                ecdf(axes, one.finite(place, name), flow_color(place))
            axes.set_ylim(0, 1.02)
            axes.set_xlabel(QUANTITIES[name])

    return runs.grid(["eCDF"] * 2, column, runs.flow_handles(linewidth=1.8), sharex="row", sharey=True)


@_figure(
    "in_flight", "packets in flight against mean throughput and mean sRTT, with the optimum and all flows together"
)
def _in_flight(runs: Runs) -> Figure:
    upward = ("throughput_mbps", "srtt_ms")

    def column(one: Shown, rows: Sequence[Axes]) -> None:
        for axes, name in zip(rows, upward, strict=True):
            mark_flows(axes, one.points, "in_flight", name, joint=True)
            axes.set_xlim(left=0)
        rows[-1].set_xlabel(f"mean {QUANTITIES['in_flight']}")

    handles = [*runs.flow_handles(**DOTS), *([JOINT] if runs.most_flows > 1 else []), STAR]
    return runs.grid([f"mean {QUANTITIES[name]}" for name in upward], column, handles, sharex=True, sharey="row")


@_figure("operating_point_plane", "mean throughput against mean sRTT, a mark per flow, with the optimum")
def _plane(runs: Runs) -> Figure:
    def column(one: Shown, rows: Sequence[Axes]) -> None:
        mark_flows(rows[0], one.points, "srtt_ms", "throughput_mbps")
        rows[0].set_xlabel(f"mean {QUANTITIES['srtt_ms']}")

    handles = [*runs.flow_handles(**DOTS), STAR]
    return runs.grid([f"mean {QUANTITIES['throughput_mbps']}"], column, handles, sharex=True, sharey=True)


@_figure(
    "operating_point_comparison", "joint operating points of all schemes, and the distributions of throughput and sRTT"
)
def _comparison(runs: Runs) -> Figure:
    """Distributions are of the summed throughput of all flows, and of their smoothed round-trip times."""
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
    plane.set_ylabel(_folded(f"mean {rate}"))
    for axes, label in ((rates, rate), (times, srtt)):
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(label)
        axes.set_ylabel("eCDF")
    return runs.finish(drawn, [*scheme_handles(one.style for one in runs.shown), STAR])
