"""Parts of all figures of operating points: the runs that they show, marks, and a grid with a column per scheme."""

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
from ccgym.report.layout import finish
from ccgym.report.style import INK, blank_figure, flow_color, legible
from ccgym.schemes.style import SchemeStyle

COLUMN_IN: Final = 2.9

ACROSS: Final = 6
"""Max schemes side by side; further schemes are below."""

ROW_IN: Final = 1.95

EDGES_IN: Final = (0.7, 1.25)
"""Room left of the panels and above them, inches."""

OPTIMUM: Final = "#d411b5"
"""Color of the optimum: ccperf's magenta."""

MOST_FLOWS: Final = 6
"""Max flows in a legend; the colors of further flows repeat."""

QUANTITIES: Final[Mapping[str, str]] = {
    "throughput_mbps": "throughput (Mbit/s)", "srtt_ms": "sRTT (ms)", "in_flight": "in flight (packets)",
}  # fmt: skip
"""Labels of the quantities of an operating point."""

DOTS: Final[Mapping[str, Any]] = {"marker": "o", "linestyle": "", "markersize": 8}
"""Style of flows in the legend of a plane."""

STAR: Final = Line2D([], [], linestyle="", marker="*", color=OPTIMUM, markersize=13, label="optimum")
"""Legend entry of the optimum."""

JOINT: Final = Line2D([], [], linestyle="", marker="D", color=INK, markersize=7, label="joint")
"""Legend entry of all flows together."""


class OperatingOptions(Options):
    """Options of figures of operating points."""

    where: dict[str, float | str] = Field(default_factory=dict)
    """Coordinates of the condition that is shown; by default the first condition."""


@dataclass(frozen=True)
class Shown:
    """A run of a scheme."""

    style: SchemeStyle
    run: KeptRun
    points: OperatingPoints

    @property
    def flows(self) -> range:
        """Indices of the run's flows."""
        return range(len(self.points.flows))

    def finite(self, place: int, name: str) -> npt.NDArray[np.float64]:
        """Return the known values over time while the flow was active."""
        flow, times = self.run.numbers["flows"][place], self.run.ends_s
        there = (times > flow["start_s"]) & (times <= flow["stop_s"] + 1e-6)
        values = self.run.over_time(place, name)[there].astype(np.float64)
        return np.asarray(values[np.isfinite(values)])


Draw = Callable[[Shown, Sequence[Axes]], None]
"""A function that draws a scheme into its column of panels."""


@dataclass(frozen=True)
class Runs:
    """The first runs of all schemes in a condition."""

    title: str
    condition: str
    """The condition as text; empty if there is only one condition."""
    shown: Sequence[Shown]
    what: str = ""
    """What the figure shows, as text."""

    @classmethod
    def of(cls, results: ExperimentResults, test: Test, options: OperatingOptions, what: str = "") -> Runs:
        """Read the first runs of a test's condition.

        Raises:
            ConfigError: No condition has these coordinates.
            ResultsError: The file of a run is damaged.
        """
        wanted = {name: (value, coordinate(name, value)[1]) for name, value in options.where.items()}
        matching = (one for one in test.conditions if all(one.at.get(name) in of for name, of in wanted.items()))
        chosen = next(matching, None)
        if chosen is None:
            expected = "; ".join(coordinates_text(one.at) for one in test.conditions[:6])
            where = f"figures of {test.name}: where"
            raise ConfigError("unknown-name", shown(options.where), where=where, expected=expected)
        found = [
            Shown(style, run, operating_points(run.numbers))
            for style in results.styles
            if (run := results.kept(test, style.key, chosen.key)) is not None
        ]
        return cls(test.title, coordinates_text(chosen.at) if len(test.conditions) > 1 else "", found, what)

    @property
    def most_flows(self) -> int:
        """Max number of flows of a run."""
        return max((len(one.flows) for one in self.shown), default=0)

    def flow_handles(self, **line: Any) -> list[Line2D]:
        """Return legend entries of the flows, with the flow's scheme if it is the same in all runs."""
        handles = []
        for place in range(min(self.most_flows, MOST_FLOWS)):
            names = {one.run.numbers["flows"][place]["scheme"] for one in self.shown if place in one.flows}
            fixed = f": {names.pop()}" if len(names) == 1 and len(self.shown) > 1 else ""
            handles.append(Line2D([], [], color=flow_color(place), label=f"flow {place + 1}{fixed}", **line))
        return handles

    def grid(self, rows: Sequence[str], draw: Draw, handles: Sequence[Line2D], **axes: Any) -> Figure:
        """Return a figure with a column per scheme, at most :data:`ACROSS` of them side by side.

        Args:
            rows: Labels of the vertical axes.
            draw: Draws a scheme into its column.
            handles: Entries of the legend.
            axes: ``sharex`` and ``sharey``: which panels share their axes.
        """
        across, high = max(1, min(ACROSS, len(self.shown))), len(rows)
        bands = max(1, -(-len(self.shown) // across))
        drawn = blank_figure(COLUMN_IN * across + EDGES_IN[0], ROW_IN * high * bands + EDGES_IN[1])
        panels = drawn.subplots(high * bands, across, squeeze=False, **axes)
        columns = [column for top in range(0, high * bands, high) for column in panels[top : top + high].T]
        for one, column in zip(self.shown, columns, strict=False):
            draw(one, list(column))
            column[0].set_title(one.style.label, fontsize=11, color=legible(one.style.color), weight="bold")
            for panel in column if bands > 1 else ():
                panel.tick_params(labelbottom=True)
        for column in columns[len(self.shown) :]:
            for panel in column:
                panel.set_visible(False)
        for label, row in zip(list(rows) * bands, panels, strict=True):
            row[0].set_ylabel(folded(label))
        return self.finish(drawn, handles)

    def finish(self, drawn: Figure, handles: Sequence[Line2D]) -> Figure:
        """Let axes begin at zero, write title and legend, and arrange the panels below them."""
        for axes in drawn.axes:  # after all is drawn, since panels share their limits
            axes.set_ylim(bottom=0)
            if axes.get_xlim()[0] < 0:
                axes.set_xlim(left=0)
        return finish(drawn, ": ".join(filter(None, (self.title, self.condition, self.what))), handles)


def operating_figure(name: str, title: str) -> Callable[[Callable[[Runs], Figure]], Callable[[Runs], Figure]]:
    """Register a function of runs as a figure that tests name."""

    def register(draw: Callable[[Runs], Figure]) -> Callable[[Runs], Figure]:
        def of_test(results: ExperimentResults, test: Test, options: OperatingOptions) -> Figure:
            return draw(Runs.of(results, test, options, title))

        of_test.__module__ = draw.__module__
        figure(name, title, page="test", options=OperatingOptions)(of_test)
        return draw

    return register


def folded(label: str) -> str:
    """Return a label with its unit in a separate line."""
    return label.replace(" (", "\n(")


def mark(axes: Axes, point: Any, x: str, y: str, marker: str, color: str, size: float = 9) -> None:
    """Draw a point if its quantities are known. The axes go down to zero and have room for the point."""
    values: tuple[Any, Any] = getattr(point, x, None), getattr(point, y, None)
    if None not in values:
        axes.plot(*values, marker, color=color, markersize=size, clip_on=False, zorder=4, markeredgewidth=0)
        axes.plot(0, 0, alpha=0)
        axes.margins(0.12)


def mark_flows(axes: Axes, points: OperatingPoints, x: str, y: str, *, joint: bool = False) -> None:
    """Draw the star of the optimum, the diamond of all flows together, and the flows. Later flows are smaller, so that
    equal points are visible."""
    mark(axes, points.optimum, x, y, "*", OPTIMUM, 15)
    if joint and len(points.flows) > 1:
        mark(axes, points.joint, x, y, "D", INK, 7)
    for place, point in enumerate(points.flows):
        mark(axes, point, x, y, "o", flow_color(place), max(5.0, 11.0 - 2.5 * place))


def ecdf(axes: Axes, values: npt.NDArray[np.float64], color: str) -> None:
    """Draw an empirical distribution."""
    if values.size:
        axes.ecdf(values, color=color, linewidth=1.6)
