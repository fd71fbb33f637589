"""A metric over a sweep: a line per scheme, a panel per value of a second coordinate, a row per metric.

Marks are means over the repetitions; whiskers go from min to max. Values that pass are shaded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pydantic import Field

from ccgym.evaluation.spread import Spread
from ccgym.experiments.criteria import Criterion
from ccgym.experiments.metrics import Metric
from ccgym.experiments.outcome import ConditionResult, Test
from ccgym.experiments.views.results import ExperimentResults
from ccgym.report.coordinates import (
    coordinate_axis,
    coordinate_parts,
    coordinate_text,
    metric_label,
    metric_scale,
    value_text,
)
from ccgym.report.figures import Options, figure
from ccgym.report.layout import finish, label_places, mark_style, scheme_handles
from ccgym.report.style import INK, MUTED, PASS_COLOR, PLAIN, blank_figure, legible
from ccgym.schemes.style import SchemeStyle

PANEL_IN: Final = (4.1, 2.75)
EDGES_IN: Final = (0.5, 1.15)
"""Room left of the panels and above them, inches."""
MIN_IN: Final = 8.0
"""Min width of a figure, inches."""
LineStyle = Literal["-", "--", ":", "-."]
LINE_STYLES: Final[tuple[LineStyle, ...]] = ("-", "--", ":", "-.")
"""Line styles of the values of :attr:`SweepOptions.lines`, in order."""

At = dict[str, float | str]


class SweepRow(Options):
    """A row of panels."""

    x: str = ""
    """Coordinate along the axes; by default the coordinate of the figure."""
    metric: str = ""
    """Metric that is drawn; by default the first metric that has a criterion."""
    where: At = Field(default_factory=dict)
    """Coordinates that conditions must have to be in this row."""


class SweepOptions(Options):
    """Options of the figure ``sweep``."""

    x: str = ""
    """Coordinate along the axes; by default the coordinate with the most values."""
    columns: str = ""
    """Coordinate with a panel per value; by default the coordinate with the second most values."""
    lines: str = ""
    """Coordinate with a line style per value."""
    rows: tuple[SweepRow, ...] = ()
    """Rows of panels; by default a row for each metric that has a criterion."""
    log: bool = False
    """Whether the vertical axis is logarithmic above a hundredth of a percent."""
    even: bool = False
    """Whether the values of x are drawn at equal distances."""


@figure("sweep", "the metrics over the test's conditions", page="test", options=SweepOptions)
def sweep_figure(results: ExperimentResults, test: Test, options: SweepOptions) -> Figure:
    """Draw the panels, row by row."""
    conditions = [one for _, outcome in results.of_test(test) for one in outcome.conditions]
    criteria = [one for _, outcome in results.of_test(test) for one in outcome.criteria]
    x, columns = _coordinates(conditions, options)
    judged = [one.key for one in test.metrics if any(one.key == criterion.metric for criterion in criteria)]
    metrics = judged or [test.metrics[0].key]
    rows = options.rows or [SweepRow(metric=key) for key in metrics]
    titles = _values(conditions, columns) or [""]
    height = PANEL_IN[1] * len(rows) + EDGES_IN[1]
    width = max(MIN_IN, PANEL_IN[0] * len(titles) + EDGES_IN[0])
    room_in = (width - EDGES_IN[0]) / len(titles) - 0.5
    drawn = blank_figure(width, height)
    grid = drawn.subplots(len(rows), len(titles), squeeze=False)
    kinds = _values(conditions, options.lines) or [""]
    for line, (row, axes_row) in enumerate(zip(rows, grid, strict=True)):
        metric = test.by_key(row.metric or metrics[0])
        for value, axes in zip(titles, axes_row, strict=True):
            at: At = {**row.where, **({columns: value} if columns else {})}
            panel = _Panel(axes, row.x or x, test, metric, at, options, _values(conditions, row.x or x), room_in)
            found = results.of_test(test)
            for place, (style, outcome) in enumerate(found):
                aside = 0.8 * ((place + 0.5) / len(found) - 0.5)
                for kind, dashes in zip(kinds, LINE_STYLES, strict=False):
                    own = {**at, **({options.lines: kind} if options.lines else {})}
                    there = [one for one in outcome.conditions if own.items() <= one.at.items()]
                    panel.line(style, dashes, there, aside)
            panel.shade([one for one in criteria if one.metric == metric.key])
            if columns and line == 0:
                axes.set_title(coordinate_text(columns, value), fontsize=11, color=INK)
        axes_row[0].set_ylabel(metric_label(metric))
    extra = [
        Line2D([], [], color=MUTED, linestyle=line, linewidth=1.6, label=coordinate_text(options.lines, kind))
        for kind, line in zip(kinds, LINE_STYLES, strict=False)
        if options.lines
    ]
    shown = ", ".join(dict.fromkeys(test.by_key(row.metric or metrics[0]).label for row in rows))
    across = " and ".join(dict.fromkeys(coordinate_parts(row.x or x)[0] for row in rows))
    words = any(isinstance(value, str) for row in rows for value in _values(conditions, row.x or x))
    handles = scheme_handles(results.styles, line=not words)
    return finish(drawn, f"{test.title}: {shown} by {across}", [*handles, *extra])


def _coordinates(conditions: Sequence[ConditionResult], options: SweepOptions) -> tuple[str, str]:
    """Return the coordinates along the axes and across the panels."""
    names = dict.fromkeys(name for one in conditions for name in one.at if name != options.lines)
    numbers = [name for name in names if all(not isinstance(one.at.get(name), str) for one in conditions)]
    by_values = sorted(numbers, key=lambda name: -len(_values(conditions, name)))
    x = options.x or next((name for name in by_values if name != options.columns), "")
    columns = options.columns or next((name for name in by_values if name != x and not options.rows), "")
    return x, columns


def _values(conditions: Sequence[ConditionResult], name: str) -> list[float | str]:
    """Return the distinct values of a coordinate; numbers ascend."""
    found = list(dict.fromkeys(one.at[name] for one in conditions if name in one.at))
    return sorted(found, key=lambda value: (isinstance(value, str), 0.0 if isinstance(value, str) else value))


class _Panel:
    """One panel of the figure."""

    def __init__(
        self, axes: Axes, x: str, test: Test, metric: Metric, at: Mapping[str, float | str], options: SweepOptions,
        values: Sequence[float | str], room_in: float,
    ) -> None:  # fmt: skip
        self._axes = axes
        self._x = x
        self._test = test
        self._metric = metric
        self._at = at
        self._values = list(values)
        self._words = any(isinstance(value, str) for value in values)
        self._even = options.even or self._words
        self._scale = metric_scale(metric)
        self._max = 0.0
        self._log = options.log
        label, self._x_scale = coordinate_axis(x, values)
        axes.set_xlabel(label)
        if options.log:
            axes.set_yscale("symlog", linthresh=0.01, linscale=0.4)
            axes.yaxis.set_major_formatter(PLAIN)
        if self._even and values:
            shown = [value if isinstance(value, str) else value_text(self._x_scale * value) for value in values]
            label_places(axes, shown, room_in)
            edge = 0.5 if self._words else 0.25
            axes.set_xlim(-edge, len(values) - 1 + edge)

    def _place(self, value: float | str) -> float:
        return float(self._values.index(value)) if self._even else self._x_scale * float(value)

    def line(self, style: SchemeStyle, line: LineStyle, conditions: Sequence[ConditionResult], aside: float) -> None:
        """Draw a scheme. Whiskers span all conditions that the panel does not distinguish; marks are their means, if
        they have a mean. If x is a word, no line connects the marks, and they are shifted by ``aside``."""
        by_x: dict[float, dict[str, Spread]] = {}
        for one in conditions:
            spread = one.metrics.get(self._metric.key)
            if spread is not None and self._x in one.at:
                by_x.setdefault(self._place(one.at[self._x]) + self._words * aside, {})[one.key] = spread
        if not by_x:
            return
        places = sorted(by_x)
        lows = [self._scale * min(one.low for one in by_x[x].values()) for x in places]
        highs = [self._scale * max(one.high for one in by_x[x].values()) for x in places]
        marked = [x for x in places if self._test.has_mean(self._metric, by_x[x])]
        means = [self._scale * sum(one.mean for one in by_x[x].values()) / len(by_x[x]) for x in marked]
        self._max = max(self._max, *highs)
        color = legible(style.color)
        self._axes.vlines(places, lows, highs, color=color, linewidth=1.0, alpha=0.45)
        self._axes.plot(
            marked, means, color=color, linewidth=1.6, clip_on=False, zorder=3,
            **{**mark_style(style, 5, color), "linestyle": "" if self._words else line},
        )  # fmt: skip

    def shade(self, criteria: Sequence[Criterion]) -> None:
        """Set the limits, and shade the values that pass: separately for each x if criteria depend on x."""
        if self._log:
            self._axes.set_ylim(0, 100 if self._metric.unit == "%" else 1)
        elif self._metric.unit == "" and self._max <= 1.03:
            self._axes.set_ylim(0, 1.03)
        low, high = self._axes.get_ylim()
        top = max(high, 100.0) if self._metric.unit == "%" else high
        own = [one for one in criteria if all(self._at.get(name, value) == value for name, value in one.at.items())]
        common = Counter((one.min, one.max) for one in own if self._x not in one.at)
        bounds = {one.at[self._x]: (one.min, one.max) for one in own if self._x in one.at}
        left, right = self._axes.get_xlim()
        areas = [(self._place(x) - 0.5, self._place(x) + 0.5, *found) for x, found in bounds.items() if self._even]
        if common:
            areas.append((left, right, *common.most_common(1)[0][0]))
        for start, end, lower, upper in areas:
            limits = (low if lower is None else self._scale * lower, top if upper is None else self._scale * upper)
            self._axes.fill_between((start, end), *limits, color=PASS_COLOR, zorder=0, linewidth=0)
        self._axes.set_xlim(left, right)
        self._axes.set_ylim(low, high)
