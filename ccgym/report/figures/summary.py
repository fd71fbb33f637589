"""Throughput against delay, one mark per run (``pantheon_summary``).

As in Pantheon (``src/analysis/plot.py`` @23e738c): x is the 95th-percentile one-way delay on an inverted axis, so that
better is to the right; y is the average throughput from 0; x is logarithmic (base 2) if delays differ a lot.
Not in Pantheon: hollow marks show the published numbers of these schemes on this path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ccgym.evaluation.results import ResultSet
from ccgym.report.figures import figure
from ccgym.report.layout import LEGEND_ROW, draw_legend, legend_rows, mark_style, scheme_handles, set_margins
from ccgym.report.pantheon_words import figure_title
from ccgym.report.style import INK, MUTED, PLAIN, legible, medium, new_figure
from ccgym.schemes.style import SchemeStyle

LOG_FACTOR = 4.0
"""Delays that differ by more than this factor, rounded outward to powers of two, have a logarithmic axis."""

LOG_FROM_ZERO = 8.0
"""Delays from 0 to at least this value, ms, have a logarithmic axis, too."""

LOG_ACROSS_ZERO = 2.0
"""Delays that extend this far to both sides of zero, ms (unsynchronized clocks), have a logarithmic axis, too."""


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
        """The color of the drawn mark."""
        return legible(self.style.color)


def outward(value: float, *, up: bool) -> float:
    """Return the next power of two away from the range's middle: up (toward +∞) or down; 0 stays 0."""
    if value == 0:
        return 0.0
    exponent = math.log2(abs(value))
    grow = up if value > 0 else not up
    return math.copysign(2.0 ** (math.ceil(exponent) if grow else math.floor(exponent)), value)


def needs_log_axis(low: float, high: float) -> bool:
    """Return whether delays from ``low`` to ``high`` (ms) have a logarithmic axis (Pantheon's rule)."""
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
    """Draw every run that counts, with a legend of the schemes. Call within ``house_style``."""
    marks = []
    for summary in results.schemes:
        for cell in summary.valid_runs:
            total = cell.record.total
            if total.delay_p95_ms is not None:
                marks.append(Mark(summary.style, total.delay_p95_ms, total.throughput_mbps))
    published = published_marks(results, means=False)
    figure, axes = summary_axes(results, "Throughput against one-way delay: every run", [*marks, *published])
    for mark in [*marks, *published]:
        draw_mark(axes, mark, alpha=0.8)
    handles = scheme_handles(results.styles, medium().mark_pt, line=False)
    legend_below(figure, [*handles, *([proxy("none", "published")] if published else [])])
    return figure


def published_marks(results: ResultSet, *, means: bool) -> list[Mark]:
    """Return hollow marks of all published runs; with ``means``, or if only means were published, of their mean."""
    return [
        Mark(one.style, delay, throughput, hollow=True)
        for one in results.schemes
        if one.published is not None
        for throughput, delay, _ in (() if means else one.published.each)
        or ((one.published.throughput_mbps, one.published.delay_p95_ms, one.published.loss),)
    ]


def summary_axes(results: ResultSet, what: str, marks: Sequence[Mark]) -> tuple[Figure, Axes]:
    """Return a figure with axes that have room for the marks."""
    column = medium().column
    figure, axes = new_figure(10, 6.4)
    if not column:
        axes.set_title(figure_title(results, what), loc="left", color=INK)
    axes.set_xlabel("95th percentile one-way delay (ms)")
    axes.set_ylabel("Average throughput (Mbit/s)")
    top = max((mark.throughput_mbps for mark in marks), default=1.0)
    # Names need room above the marks, and more room if marks are close together.
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
    legend_below(figure, ())
    return figure, axes


def draw_mark(axes: Axes, mark: Mark, alpha: float = 1.0) -> None:
    """Draw a mark."""
    axes.plot(
        mark.delay_ms, mark.throughput_mbps, alpha=alpha, zorder=3 if mark.hollow else 4, clip_on=False,
        **mark_style(mark.style, medium().mark_pt, hollow=mark.hollow),
    )  # fmt: skip


def proxy(face: str, label: str) -> Line2D:
    """Return a mark for the legend, filled with a color."""
    return Line2D(
        [], [], linestyle="", marker="o", markersize=0.8 * medium().mark_pt, markerfacecolor=face,
        markeredgecolor=INK, label=label,
    )  # fmt: skip


def legend_below(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Draw a legend below the axes; the axes keep their size."""
    size = float(rcParams["legend.fontsize"])
    rows = legend_rows(handles, figure.get_figwidth() - 0.2, size) if handles else 0
    bottom = 4.2 + rows * LEGEND_ROW * size / medium().text_pt
    set_margins(figure, left=5.0, right=2.3, top=1.0 if medium().column else 4.5, bottom=bottom, axes_in=5.0)
    if handles:
        place = (0.5, 0.05 / figure.get_figheight())
        draw_legend(figure, handles, rows, size, loc="lower center", bbox_to_anchor=place)
