"""Throughput against delay: one mark per run (``pantheon_summary``), and the means with their names
(``pantheon_summary_mean``).

As Pantheon's (``src/analysis/plot.py`` @23e738c): x is the 95th-percentile one-way delay with the axis inverted, so
that better is to the right, y the average throughput from 0, and x turns logarithmic (base 2) when delays differ much.
Beyond Pantheon: hollow marks show what was published for these schemes on this path. Each mean has its scheme's name
next to it, a cross of one standard deviation over runs, and a thin line to what was published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.patheffects import Normal, Stroke
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from ccgym.evaluation.results import ResultSet
from ccgym.report.figures import figure
from ccgym.report.pantheon_words import figure_title
from ccgym.report.style import INK, MUTED, PLAIN, SCREEN, legible, medium, new_figure, set_margins
from ccgym.schemes.style import SchemeStyle

_Line: TypeAlias = list[tuple[float, float]]
"""Ends of a drawn line: delay in ms, throughput in Mbit/s."""

MARK_SCALE = {"*": 1.55, "^": 1.1, "<": 1.1, ">": 1.1, "v": 1.1, "p": 1.1, "h": 1.1, "H": 1.1, "D": 0.85, "s": 0.95}
"""Relative size per marker, so that all look equally large."""

LOG_FACTOR = 4.0
"""Delays that span more than this factor, rounded outward to powers of two, get a logarithmic axis."""

LOG_FROM_ZERO = 8.0
"""Delays from 0 up to at least this get one too."""

LOG_ACROSS_ZERO = 2.0
"""And those that reach this far to both sides of zero (clocks out of step)."""


@dataclass(frozen=True)
class Mark:
    """One point of the figure."""

    style: SchemeStyle
    delay_ms: float
    throughput_mbps: float
    hollow: bool = False
    delay_std: float = 0.0
    throughput_std: float = 0.0

    @property
    def color(self) -> str:
        """As it is drawn."""
        return legible(self.style.color)


def mark_size(style: SchemeStyle) -> float:
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


@figure(
    "pantheon_summary", "Throughput against 95th-percentile one-way delay, one mark per run", page="evaluation", order=2
)
def summary_figure(results: ResultSet) -> Figure:
    """Every run that counts, with a legend of the schemes. Call within ``house_style``."""
    marks = []
    for summary in results.schemes:
        for cell in summary.valid_runs:
            total = cell.record.total
            if total.delay_p95_ms is not None:
                marks.append(Mark(summary.style, total.delay_p95_ms, total.throughput_mbps))
    published = _published(results, means=False)
    figure, axes = summary_axes(results, [*marks, *published])
    for mark in [*marks, *published]:
        draw_mark(axes, mark, alpha=0.8)
    _legend(figure, axes, results, bool(published))
    return figure


def _published(results: ResultSet, *, means: bool) -> list[Mark]:
    """Hollow marks of every published run; of their mean with ``means``, and where the report has no more."""
    return [
        Mark(one.style, delay, throughput, hollow=True)
        for one in results.schemes
        if one.published is not None
        for throughput, delay, _ in (() if means else one.published.each)
        or ((one.published.throughput_mbps, one.published.delay_p95_ms, one.published.loss),)
    ]


def summary_axes(results: ResultSet, marks: Sequence[Mark], *, of_means: bool = False) -> tuple[Figure, Axes]:
    """A figure with axes that have room for the marks; ``of_means``: whether each is the mean of a scheme."""
    column = medium().column
    figure, axes = new_figure(10, 6.4)
    if not column:
        axes.set_title(figure_title(results, of_means), loc="left", color=INK)
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
        axes.xaxis.set_major_formatter(PLAIN)
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


def draw_mark(axes: Axes, mark: Mark, alpha: float = 1.0) -> None:
    """Draw a mark."""
    style = mark.style
    line_marker = style.marker in ("1", "2", "3", "4", "+", "x", "|", "_")
    axes.plot(
        mark.delay_ms,
        mark.throughput_mbps,
        linestyle="",
        marker=style.marker,
        markersize=mark_size(style),
        markerfacecolor="white" if mark.hollow else mark.color,
        markeredgecolor=mark.color if mark.hollow or line_marker else "white",
        markeredgewidth=1.3 if mark.hollow or line_marker else 0.6,
        alpha=alpha,
        zorder=3 if mark.hollow else 4,
        clip_on=False,
    )


def proxy(face: str, label: str) -> Line2D:
    """A mark for the legend, filled with a color."""
    return Line2D(
        [], [], linestyle="", marker="o", markersize=0.8 * medium().mark_pt, markerfacecolor=face,
        markeredgecolor=INK, label=label,
    )  # fmt: skip


def _legend(figure: Figure, axes: Axes, results: ResultSet, published: bool) -> None:
    handles = [
        Line2D(
            [], [], linestyle="", marker=style.marker, markersize=mark_size(style),
            markerfacecolor=legible(style.color), markeredgecolor=legible(style.color),
            label=style.label,
        )
        for style in results.styles
    ]  # fmt: skip
    if published:
        handles.append(proxy("none", "published"))
    if medium().column:
        # A column has no room right of the axes.
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


@figure(
    "pantheon_summary_mean",
    "Mean throughput against mean 95th-percentile one-way delay, one mark per scheme",
    page="evaluation",
    order=1,
)
def mean_figure(results: ResultSet) -> Figure:
    """The mean of each scheme, with its name. Call within ``house_style``."""
    published = _published(results, means=True)
    marks = [
        Mark(one.style, delay.mean, throughput.mean, delay_std=delay.std or 0.0, throughput_std=throughput.std or 0.0)
        for one in results.schemes
        if (delay := one.delay_p95_ms) is not None and (throughput := one.throughput_mbps) is not None
    ]
    # The crosses need room, too, but one that reaches to zero must not take a logarithmic axis there.
    least = 0.5 * min((mark.delay_ms for mark in [*marks, *published]), default=0.0)
    ends = [
        Mark(
            one.style,
            max(one.delay_ms + sign * one.delay_std, least),
            max(one.throughput_mbps + sign * one.throughput_std, 0.0),
        )
        for one in marks
        for sign in (-1, 1)
    ]
    figure, axes = summary_axes(results, [*marks, *published, *ends], of_means=True)
    ours = {mark.style.key: mark for mark in marks}
    lines: list[_Line] = []
    for mark in published:
        draw_mark(axes, mark, alpha=0.9)
        own = ours.get(mark.style.key)
        if own is not None:
            line = [(own.delay_ms, own.throughput_mbps), (mark.delay_ms, mark.throughput_mbps)]
            lines.append(line)
            axes.plot(*zip(*line, strict=True), color=mark.color, linewidth=0.8, linestyle=":", zorder=1)
    for mark in marks:
        x, y, aside, rise = mark.delay_ms, mark.throughput_mbps, mark.delay_std, mark.throughput_std
        axes.errorbar(x, y, rise, aside, fmt="none", ecolor=mark.color, elinewidth=1.0, alpha=0.55, zorder=2)
        lines += [[(x - aside, y), (x + aside, y)], [(x, y - rise), (x, y + rise)]]
        draw_mark(axes, mark)
    if published:
        handles = [proxy("none", "published"), proxy(INK, "this evaluation")]
        axes.legend(handles=handles[::-1], loc="lower left")
    _name(figure, axes, marks, [*marks, *published], lines)
    return figure


_OFFSETS = ((9, 0), (0, 9), (7, 7), (0, 21), (14, 17), (0, 35), (22, 31), (40, 0))
_PLACES = tuple(dict.fromkeys((right * dx, up * dy) for dx, dy in _OFFSETS for up in (1, -1) for right in (1, -1)))
"""Where a name may stand: offsets from its mark in points; the first free one is taken."""
_SIDES: Final = {"ha": ("center", "left", "right"), "va": ("center", "bottom", "top")}
"""How it is aligned where it is at the mark, right of it or above, left of it or below."""


def _name(
    figure: Figure, axes: Axes, named: Sequence[Mark], everything: Sequence[Mark], lines: Sequence[_Line]
) -> None:
    """Write each scheme's name next to its mark, where it covers neither marks nor names nor, if possible, lines."""
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    pixel = figure.dpi / 72
    radius = medium().mark_pt * pixel / 2 + 1
    offset = medium().mark_pt / SCREEN.mark_pt
    size = medium().text_pt - 1
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
        for dx, dy in _PLACES:
            text = axes.annotate(
                mark.style.label,
                xy=(mark.delay_ms, mark.throughput_mbps),
                xytext=(offset * dx, offset * dy),
                textcoords="offset points",
                ha=_SIDES["ha"][int(np.sign(dx))],
                va=_SIDES["va"][int(np.sign(dy))],
                fontsize=size,
                color=INK,
                arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.7, "shrinkB": 5 * offset}
                if abs(dx) + abs(dy) > 20
                else None,
                zorder=5,
                path_effects=[Stroke(linewidth=2.5, foreground="white"), Normal()],
            )
            box = Annotation.get_window_extent(text, renderer)
            cost = sum(_overlap(box, other) for other in taken)
            cost += 3 * (box.width * box.height - _overlap(box, frame))  # what is outside of the axes
            # A name over a line is better than one over another name; a name far from its mark costs a little, too.
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
