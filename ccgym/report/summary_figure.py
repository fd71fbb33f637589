"""Throughput against delay, one mark per run (``pantheon_summary``) or per scheme (``pantheon_summary_mean``).

As Pantheon's (``src/analysis/plot.py`` @23e738c): x is the 95th-percentile one-way delay with the axis inverted, so
that better is to the right, y the average throughput from 0, and x turns logarithmic (base 2) when delays differ much.
Beyond Pantheon: what was published for these schemes on this path stands beside ours as hollow marks, joined to ours by
a thin line, and the mean figure has a cross of one standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.patheffects import Normal, Stroke
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter
from matplotlib.transforms import Bbox

from ccgym.evaluation.results import ResultSet, SchemeSummary
from ccgym.report.style import INK, MUTED, SCREEN, legible, medium, new_figure, set_margins
from ccgym.schemes.style import SchemeStyle

MARK_SCALE = {"*": 1.55, "^": 1.1, "<": 1.1, ">": 1.1, "v": 1.1, "p": 1.1, "h": 1.1, "H": 1.1, "D": 0.85, "s": 0.95}
"""Relative size per marker, so that all look equally large."""

LOG_FACTOR = 4.0
"""Delays that span more than this factor, rounded outward to powers of two, get a logarithmic axis."""

LOG_FROM_ZERO = 8.0
"""Delays from 0 up to at least this get one too."""

LOG_ACROSS_ZERO = 2.0
"""And those that reach this far to both sides of zero (clocks out of step)."""


_Line: TypeAlias = list[tuple[float, float]]
"""Ends of a drawn line: delay in ms, throughput in Mbit/s."""


@dataclass(frozen=True)
class _Mark:
    """One point of the figure."""

    style: SchemeStyle
    delay_ms: float
    throughput_mbps: float
    hollow: bool = False

    @property
    def color(self) -> str:
        """As it is drawn."""
        return legible(self.style.color)


def _mark_size(style: SchemeStyle) -> float:
    """Diameter of a scheme's mark, points."""
    return medium().mark_pt * MARK_SCALE.get(style.marker, 1.0)


def outward(value: float, *, up: bool) -> float:
    """The next power of two away from the range's middle: up (toward +∞) or down; 0 stays 0."""
    if value == 0:
        return 0.0
    exponent = math.log2(abs(value))
    grow = up if value > 0 else not up
    return math.copysign(2.0 ** (math.ceil(exponent) if grow else math.floor(exponent)), value)


def needs_log_axis(low: float, high: float) -> bool:
    """Whether delays from ``low`` to ``high`` (ms) are drawn on a logarithmic axis (Pantheon's rule)."""
    low, high = outward(low, up=False), outward(high, up=True)
    if low > 0:
        return high / low > LOG_FACTOR
    if low == 0:
        return high >= LOG_FROM_ZERO
    return low <= -LOG_ACROSS_ZERO and high >= LOG_ACROSS_ZERO


def title(results: ResultSet) -> str:
    """Where it ran, how often and how long."""
    parameters = results.parameters
    runs, flows = parameters["runs"], parameters["flows"]
    words = [
        f"{results.provenance.get('place', 'simulated')}: {parameters['path_name']}",
        f"{runs} run{'s' if runs != 1 else ''} of {parameters['runtime_s']:g} s each per scheme, "
        f"{flows} flow{'s' if flows != 1 else ''} per run",
    ]
    if flows > 1 and parameters["interval_s"]:
        words[1] += f", {parameters['interval_s']:g} s apart"
    return "\n".join(words)


def summary_figure(results: ResultSet) -> Figure:
    """Every run that counts, with a legend of the schemes. Call within ``house_style``."""
    marks = []
    for summary in results.schemes:
        for cell in summary.valid_runs:
            total = cell.record.total
            if total.delay_p95_ms is not None:
                marks.append(_Mark(summary.style, total.delay_p95_ms, total.throughput_mbps))
    published = _published_marks(results)
    figure, axes = _axes(results, [*marks, *published])
    for mark in [*marks, *published]:
        _draw(axes, mark, alpha=0.8)
    _legend(figure, axes, results, bool(published))
    return figure


def mean_figure(results: ResultSet) -> Figure:
    """The mean of each scheme, its name beside it. Call within ``house_style``."""
    published = _published_marks(results)
    means = [(mark, summary) for summary in results.schemes if (mark := _mean_mark(summary)) is not None]
    marks = [mark for mark, _ in means]
    figure, axes = _axes(results, [*marks, *published, *_ends(means)])
    ours = {mark.style.key: mark for mark in marks}
    lines: list[_Line] = []
    for mark in published:
        _draw(axes, mark, alpha=0.9)
        own = ours.get(mark.style.key)
        if own is not None:
            line = [(own.delay_ms, own.throughput_mbps), (mark.delay_ms, mark.throughput_mbps)]
            lines.append(line)
            axes.plot(*zip(*line, strict=True), color=mark.color, linewidth=0.8, linestyle=":", zorder=1)
    for mark, summary in means:
        lines += _cross(axes, mark, summary)
        _draw(axes, mark)
    if published:
        handles = [_proxy("none", "published"), _proxy(INK, "this evaluation")]
        axes.legend(handles=handles[::-1], loc="lower left")
    _name(figure, axes, marks, [*marks, *published], lines)
    return figure


def _ends(means: Sequence[tuple[_Mark, SchemeSummary]]) -> list[_Mark]:
    """The ends of the crosses, so that the axes have room for them."""
    ends = []
    for mark, summary in means:
        throughput, delay = summary.throughput_mbps, summary.delay_p95_ms
        rise = (throughput.std or 0.0) if throughput else 0.0
        aside = (delay.std or 0.0) if delay else 0.0
        for sign in (-1, 1):
            ends.append(
                _Mark(mark.style, max(mark.delay_ms + sign * aside, 0.0), max(mark.throughput_mbps + sign * rise, 0.0))
            )
    return ends


def _mean_mark(summary: SchemeSummary) -> _Mark | None:
    throughput, delay = summary.throughput_mbps, summary.delay_p95_ms
    if throughput is None or delay is None:
        return None
    return _Mark(summary.style, delay.mean, throughput.mean)


def _published_marks(results: ResultSet) -> list[_Mark]:
    return [
        _Mark(one.style, one.published.delay_p95_ms, one.published.throughput_mbps, hollow=True)
        for one in results.schemes
        if one.published is not None
    ]


def _axes(results: ResultSet, marks: Sequence[_Mark]) -> tuple[Figure, Axes]:
    column = medium().column
    figure, axes = new_figure(10, 6.4)
    if not column:
        axes.set_title(title(results), loc="left", color=INK)
    axes.set_xlabel("95th percentile one-way delay (ms)")
    axes.set_ylabel("Average throughput (Mbit/s)")
    top = max((mark.throughput_mbps for mark in marks), default=1.0)
    # Names need room above the marks, more of it where marks are close together.
    axes.set_ylim(0, top * (1.25 if column else 1.08) or 1.0)
    delays = [mark.delay_ms for mark in marks] or [1.0]
    low, high = min(delays), max(delays)
    if needs_log_axis(low, high):
        axes.set_xscale("symlog", base=2, linthresh=2, linscale=0.5)
        low, high = outward(low, up=False), outward(high, up=True)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    else:
        margin = max(0.08 * (high - low), 0.01 * high, 0.5)
        low, high = low - margin, high + margin
    axes.set_xlim(high, low)
    axes.annotate(
        "better ↗", xy=(0.995, 0.985), xycoords="axes fraction", ha="right", va="top", color=MUTED,
        fontsize=rcParams["legend.fontsize"],
    )  # fmt: skip
    set_margins(figure, left=5.0, right=2.3, top=1.0 if column else 4.5, bottom=4.2)
    return figure, axes


def _draw(axes: Axes, mark: _Mark, alpha: float = 1.0) -> None:
    style = mark.style
    line_marker = style.marker in ("1", "2", "3", "4", "+", "x", "|", "_")
    axes.plot(
        mark.delay_ms,
        mark.throughput_mbps,
        linestyle="",
        marker=style.marker,
        markersize=_mark_size(style),
        markerfacecolor="white" if mark.hollow else mark.color,
        markeredgecolor=mark.color if mark.hollow or line_marker else "white",
        markeredgewidth=1.3 if mark.hollow or line_marker else 0.6,
        alpha=alpha,
        zorder=3 if mark.hollow else 4,
        clip_on=False,
    )


def _cross(axes: Axes, mark: _Mark, summary: SchemeSummary) -> list[_Line]:
    """Draw one standard deviation over runs, each way, and return the lines."""
    throughput, delay = summary.throughput_mbps, summary.delay_p95_ms
    aside = (delay.std or 0.0) if delay else 0.0
    rise = (throughput.std or 0.0) if throughput else 0.0
    axes.errorbar(
        mark.delay_ms, mark.throughput_mbps, xerr=aside, yerr=rise, fmt="none", ecolor=mark.color, elinewidth=1.0,
        alpha=0.55, zorder=2,
    )  # fmt: skip
    x, y = mark.delay_ms, mark.throughput_mbps
    return [[(x - aside, y), (x + aside, y)], [(x, y - rise), (x, y + rise)]]


def _proxy(face: str, label: str) -> Line2D:
    return Line2D(
        [], [], linestyle="", marker="o", markersize=0.8 * medium().mark_pt, markerfacecolor=face,
        markeredgecolor=INK, label=label,
    )  # fmt: skip


def _legend(figure: Figure, axes: Axes, results: ResultSet, published: bool) -> None:
    handles = [
        Line2D(
            [], [], linestyle="", marker=style.marker, markersize=_mark_size(style),
            markerfacecolor=legible(style.color), markeredgecolor=legible(style.color),
            label=style.label,
        )
        for style in results.styles
    ]  # fmt: skip
    if published:
        handles.append(_proxy("none", "published mean"))
    if medium().column:
        # A column has no room beside the axes.
        rows = -(-len(handles) // 3)
        set_margins(figure, left=5.0, right=2.3, top=1.0, bottom=4.2 + 1.5 * rows)
        figure.legend(
            handles=handles, loc="lower center", ncols=3, columnspacing=0.8, handletextpad=0.1, borderpad=0,
            borderaxespad=0.3,
        )  # fmt: skip
        return
    # The labels decide how much room the legend needs.
    longest = max((len(str(handle.get_label())) for handle in handles), default=0)
    right = max(0.6, 0.93 - 0.0085 * longest)
    figure.subplots_adjust(right=right)
    axes.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5), labelspacing=0.7)


_PLACES = (
    (9, 0, "left", "center"),
    (-9, 0, "right", "center"),
    (0, 9, "center", "bottom"),
    (0, -9, "center", "top"),
    (7, 7, "left", "bottom"),
    (-7, 7, "right", "bottom"),
    (7, -7, "left", "top"),
    (-7, -7, "right", "top"),
    (0, 21, "center", "bottom"),
    (0, -21, "center", "top"),
    (14, 17, "left", "bottom"),
    (-14, 17, "right", "bottom"),
    (14, -17, "left", "top"),
    (-14, -17, "right", "top"),
    (0, 35, "center", "bottom"),
    (0, -35, "center", "top"),
    (22, 31, "left", "bottom"),
    (-22, 31, "right", "bottom"),
    (22, -31, "left", "top"),
    (-22, -31, "right", "top"),
    (40, 0, "left", "center"),
    (-40, 0, "right", "center"),
)
"""Where a name may stand: offset from its mark in points, and alignment; the first free one is taken."""


def _name(
    figure: Figure, axes: Axes, named: Sequence[_Mark], everything: Sequence[_Mark], lines: Sequence[_Line]
) -> None:
    """Write each scheme's name beside its mark, where it covers no mark, no other name and, if it can be, no line."""
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    pixel = figure.dpi / 72
    radius = medium().mark_pt * pixel / 2 + 1
    offset = medium().mark_pt / SCREEN.mark_pt
    size = rcParams["legend.fontsize"]
    taken = [other.get_window_extent(renderer) for other in axes.texts]
    for mark in everything:
        x, y = axes.transData.transform((mark.delay_ms, mark.throughput_mbps))
        taken.append(Bbox.from_extents(x - radius, y - radius, x + radius, y + radius))
    legend = axes.get_legend()
    if legend is not None:
        taken.append(legend.get_window_extent(renderer))
    drawn = [Path(axes.transData.transform(line)) for line in lines]
    frame = axes.get_window_extent(renderer)
    for mark in sorted(named, key=lambda mark: -mark.throughput_mbps):
        best: tuple[float, Annotation, Bbox] | None = None
        for dx, dy, horizontal, vertical in _PLACES:
            text = axes.annotate(
                mark.style.label,
                xy=(mark.delay_ms, mark.throughput_mbps),
                xytext=(offset * dx, offset * dy),
                textcoords="offset points",
                ha=horizontal,
                va=vertical,
                fontsize=size,
                color=INK,
                arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.7, "shrinkB": 5 * offset}
                if abs(dx) + abs(dy) > 20
                else None,
                zorder=5,
                path_effects=[Stroke(linewidth=2.5, foreground="white"), Normal()],
            )
            box = Annotation.get_window_extent(text, renderer)
            cost = sum(_overlap(box, other) for other in taken) + 3 * _outside(box, frame)
            # A line below a name is a smaller evil than a name over another, and a name far away is one, too.
            cost += 0.1 * box.width * box.height * sum(line.intersects_bbox(box, filled=False) for line in drawn)
            if best is None or cost < best[0]:
                if best is not None:
                    best[1].remove()
                best = (cost, text, box)
            else:
                text.remove()
            if best[0] == 0:
                break
        if best is not None:
            taken.append(best[2])


def _overlap(one: Bbox, other: Bbox) -> float:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return float(width * height) if width > 0 and height > 0 else 0.0


def _outside(box: Bbox, frame: Bbox) -> float:
    area = float(box.width * box.height)
    return area - _overlap(box, frame)
