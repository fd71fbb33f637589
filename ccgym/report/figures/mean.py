"""Mean throughput against mean delay, one mark per scheme (``pantheon_summary_mean``).

Axes are as in :mod:`~ccgym.report.figures.summary`. Each scheme's name is next to its mark, or in a legend if it would
cover other names or marks. A cross is one standard deviation over runs; a thin line leads to the published mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.patheffects import Normal, Stroke
from matplotlib.transforms import Bbox

from ccgym.evaluation.results import ResultSet
from ccgym.report.figures import figure
from ccgym.report.figures.summary import Mark, draw_mark, legend_below, proxy, published_marks, summary_axes
from ccgym.report.layout import scheme_handles, text_widths
from ccgym.report.style import INK, SCREEN, medium
from ccgym.schemes.style import SchemeStyle

_Line: TypeAlias = list[tuple[float, float]]
"""Ends of a drawn line: delay in ms, throughput in Mbit/s."""


@figure(
    "pantheon_summary_mean",
    "Mean throughput against mean 95th-percentile one-way delay, one mark per scheme",
    page="evaluation",
    order=1,
)
def mean_figure(results: ResultSet) -> Figure:
    """Draw the mean of each scheme, with its name. Call within ``house_style``."""
    published = published_marks(results, means=True)
    marks = [
        Mark(one.style, delay.mean, throughput.mean, delay_std=delay.std or 0.0, throughput_std=throughput.std or 0.0)
        for one in results.schemes
        if (delay := one.delay_p95_ms) is not None and (throughput := one.throughput_mbps) is not None
    ]
    # The crosses need room, too, but a cross that reaches zero must not extend a logarithmic axis to zero.
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
    figure, axes = summary_axes(
        results, "Throughput against one-way delay: mean of all runs by scheme", [*marks, *published, *ends]
    )
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
    without_place = _name(figure, axes, marks, [*marks, *published], lines)
    both = [proxy(INK, "this evaluation"), proxy("none", "published")] if published else []
    legend_below(figure, [*both, *scheme_handles(without_place, medium().mark_pt, line=False)])
    return figure


_OFFSETS = ((9, 0), (0, 9), (7, 7), (0, 21), (14, 17), (0, 33), (20, 28))

_PLACES = tuple(dict.fromkeys((right * dx, up * dy) for dx, dy in _OFFSETS for up in (1, -1) for right in (1, -1)))
"""Candidate positions of a name: offsets from its mark in points; the first free position is used."""

_SIDES: Final = {"ha": ("center", "left", "right"), "va": ("center", "bottom", "top")}
"""Alignment of a name that is centered at the mark, right of it or above, left of it or below."""


def _name(
    figure: Figure, axes: Axes, named: Sequence[Mark], everything: Sequence[Mark], lines: Sequence[_Line]
) -> list[SchemeStyle]:
    """Write names next to their marks, where they cover no marks, no names and, if possible, no lines; return the
    schemes whose names have no free position."""
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    pixel = figure.dpi / 72
    radius = medium().mark_pt * pixel / 2 + 1
    offset = medium().mark_pt / SCREEN.mark_pt
    size = medium().text_pt - 1
    taken = [other.get_window_extent(renderer) for other in axes.texts]
    at = {id(mark): axes.transData.transform((mark.delay_ms, mark.throughput_mbps)) for mark in everything}
    taken += [Bbox.from_extents(x - radius, y - radius, x + radius, y + radius) for x, y in at.values()]
    drawn = [Path(axes.transData.transform(line)) for line in lines]
    frame = axes.get_window_extent(renderer)
    widths = text_widths([mark.style.label for mark in named], size)
    left: list[SchemeStyle] = []
    for mark, width in sorted(zip(named, widths, strict=True), key=lambda pair: -pair[0].throughput_mbps):
        wide, high = 1.04 * width * figure.dpi + 2, 1.25 * size * pixel  # widths depend a little on the resolution
        free: dict[tuple[int, int], tuple[int, Bbox]] = {}
        for dx, dy in _PLACES:
            x, y = at[id(mark)] + offset * pixel * np.array((dx, dy))
            x, y = x + wide * (np.sign(dx) - 1) / 2, y + high * (np.sign(dy) - 1) / 2
            box = Bbox.from_bounds(x, y, wide, high)
            inside = frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                free[dx, dy] = (sum(line.intersects_bbox(box, filled=False) for line in drawn), box)
                if not free[dx, dy][0]:
                    break
        if not free:
            left.append(mark.style)
            continue
        (dx, dy), (_, box) = min(free.items(), key=lambda pair: pair[1][0])
        taken.append(box)
        leader = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.7, "shrinkB": 5 * offset}
        axes.annotate(
            mark.style.label, xy=(mark.delay_ms, mark.throughput_mbps), xytext=(offset * dx, offset * dy),
            textcoords="offset points", ha=_SIDES["ha"][int(np.sign(dx))], va=_SIDES["va"][int(np.sign(dy))],
            fontsize=size, color=INK, arrowprops=leader if abs(dx) + abs(dy) > 20 else None, zorder=5,
            path_effects=[Stroke(linewidth=2.5, foreground="white"), Normal()],
        )  # fmt: skip
    return left
