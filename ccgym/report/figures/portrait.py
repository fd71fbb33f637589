"""Portrait of a scheme: a column per path with delivered rate, one-way delay and window, a second scheme in gray.

Above each column are the facts of the path, below it the numbers that Pantheon would report.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from ccgym.config.models import Delay, Droptail, Link, Loss
from ccgym.config.path import NetworkPath
from ccgym.evaluation.capacity import LinkCapacity
from ccgym.evaluation.metrics import PacketLog
from ccgym.evaluation.run_numbers import FlowRecord
from ccgym.evaluation.run_record import RunRecord, series_table
from ccgym.report.figures import figure
from ccgym.report.style import CAPACITY_COLOR, INK, MUTED, PLAIN, axes_at, blank_figure, flow_color, legible, text_at
from ccgym.schemes.style import SchemeStyle

Floats = npt.NDArray[np.float64]

OTHER_COLOR: Final = "#8a8a8a"
"""Color of the scheme for comparison."""
CAPACITY_LINE: Final = "#bfa98c"
"""Outline of the capacity; darker than in other figures, since panels are small."""
MAX_BINS: Final = 120
"""Max number of bins: a bin is then one or two pixels wide on a page."""
MIN_BINS: Final = 10
"""Min number of bins, for slow paths and short runs."""
BIN_PACKETS: Final = 20
"""Min capacity of a bin in full packets: with fewer packets, rates are noise."""
LOG_FROM: Final = 8.0
"""Delays that differ by at least this factor are drawn on a logarithmic axis."""

_ROUND: Final = (1, 2, 2.5, 5, 10)  # ticks are multiples of these
_DPI: Final = 200  # printed at a page's width, where 100 would blur
_COLUMN_IN: Final = 3.35
_MIN_WIDTH_IN: Final = 6.7
_LEFT_IN, _BETWEEN_IN, _RIGHT_IN = 0.66, 0.55, 0.18
# From the top down: title and legend, names of the paths, the panels, their time axis, the numbers.
_HEAD_IN, _NAMES_IN, _PANEL_IN, _GAP_IN, _AXIS_IN, _TABLE_IN = 0.82, 0.86, 1.6, 0.17, 0.52, 0.76
_WINDOW_IN: Final = 1.2  # the third panel
_HEIGHT_IN: Final = _HEAD_IN + _NAMES_IN + 2 * _PANEL_IN + _WINDOW_IN + 2 * _GAP_IN + _AXIS_IN + _TABLE_IN
_ROW_IN: Final = 0.225
_NUMBERS_IN: Final = (1.14, 0.56, 0.0)  # right ends of the numbers, from the panel's right end
_OUTDENT_IN: Final = 0.3  # labels begin below the ticks of the delay axis: room for long labels
_BOLD_IN: Final = 0.105  # a character of the paths' names, on average
_FACTS_IN: Final = 0.0625  # a character of the facts about paths
_CHARACTER_IN: Final = 0.068  # a character of the numbers' labels


@dataclass(frozen=True)
class Column:
    """A column of a portrait: one path with its runs."""

    path: NetworkPath
    runs: Sequence[RunRecord]
    """A run of each scheme over the path, one flow each, with packets; first the run of the portrayed scheme."""


@dataclass(frozen=True)
class Behavior:
    """Rate and delays of a flow over time, a value per bin."""

    rate_mbps: Floats
    """Rate at which data left the path, headers included, Mbit/s."""
    low_ms: Floats
    """5th percentile of the one-way delay of the packets that left the path, ms; NaN if no packet left."""
    median_ms: Floats
    high_ms: Floats


def behavior(log: PacketLog, edges_ns: npt.NDArray[np.int64]) -> Behavior:
    """Bin the packets that left the path.

    Args:
        log: The packets of a run.
        edges_ns: Edges of the bins, nanoseconds since the start of the run, ascending; packets outside are left out.
    """
    bins = edges_ns.size - 1
    which = np.searchsorted(edges_ns, log.departure_ns, side="right") - 1
    inside = (which >= 0) & (which < bins)
    which, sizes, delays = which[inside], log.departure_bytes[inside], log.delay_ns[inside]
    rate = np.bincount(which, weights=sizes, minlength=bins) * 8000.0 / np.diff(edges_ns)
    order = np.argsort(which, kind="stable")
    borders = np.searchsorted(which[order], np.arange(bins + 1))
    percentiles = np.full((3, bins), np.nan)
    for place in range(bins):
        part = delays[order[borders[place] : borders[place + 1]]]
        if part.size:
            percentiles[:, place] = np.percentile(part, (5, 50, 95)) / 1e6
    return Behavior(rate, *percentiles)


def bin_edges(duration_ns: int, capacity: LinkCapacity | None) -> npt.NDArray[np.int64]:
    """Return the edges of equal bins over a run, ns: as fine as is legible and as the path's rate allows."""
    bins = MAX_BINS
    if capacity is not None:
        packets = float(capacity.bits_until(np.array([duration_ns]))[0]) / (8 * 1500)
        bins = int(np.clip(packets / BIN_PACKETS, MIN_BINS, MAX_BINS))
    return np.linspace(0, duration_ns, bins + 1).astype(np.int64)


def line_color(color: str) -> str:
    """Return a scheme's color for lines: dark enough on white, and never the gray of the other scheme.

    Args:
        color: Any color of matplotlib.

    Returns:
        ``"#rrggbb"``.
    """
    _, lightness, saturation = colorsys.rgb_to_hls(*to_rgb(color))
    if saturation < 0.15 and lightness > 0.25:
        return flow_color(0)
    return legible(color)


def facts(path: NetworkPath) -> tuple[str, str]:
    """Return two lines about a path: rate and random loss; propagation delay of the data and queue."""
    rate = f"{path.mean_rate_mbps:.4g} Mbit/s" if path.data_links else "no bottleneck"
    further = dict.fromkeys(e.kind.replace("_", "-") for e in path.chain if not isinstance(e, Delay | Link | Loss))
    if path.loss or not further:
        further = {f"random loss {100 * path.loss:.3g} %" if path.loss else "no random loss": None, **further}
    queue = path.queue
    packets = queue.limit.packets if isinstance(queue, Droptail) else None
    if packets is not None and path.bdp_packets > 0:
        products = float(packets / path.bdp_packets)
        waits = f"queue {packets} packets ({products:.{1 if products >= 1 else 2}f} BDP)"
    else:
        waits = "no queue" if queue is None else queue.words().partition(" (")[0]
    return ", ".join([rate, *further]), f"{path.one_way_delay_ms:g} ms one way, {waits}"


@figure("portrait", "a scheme on a few paths", page="command")
def portrait_figure(styles: Sequence[SchemeStyle], columns: Sequence[Column]) -> Figure:
    """Draw a portrait. Call within :func:`ccgym.report.style.house_style`.

    Args:
        styles: Plot style of the portrayed scheme and, if there is one, of the scheme for comparison.
        columns: The paths, each with a run of every scheme.
    """
    width = max(_MIN_WIDTH_IN, len(columns) * _COLUMN_IN)
    drawn = blank_figure(width, _HEIGHT_IN, _DPI)
    colors = [line_color(styles[0].color), *(OTHER_COLOR for _ in styles[1:])]
    panel = (width - _LEFT_IN - _RIGHT_IN - (len(columns) - 1) * _BETWEEN_IN) / len(columns)
    top = _HEIGHT_IN - _HEAD_IN - _NAMES_IN
    for place, column in enumerate(columns):
        left = _LEFT_IN + place * (panel + _BETWEEN_IN)
        rate = axes_at(drawn, left, top - _PANEL_IN, panel, _PANEL_IN)
        delay = axes_at(drawn, left, top - 2 * _PANEL_IN - _GAP_IN, panel, _PANEL_IN, sharex=rate)
        below = top - 2 * _PANEL_IN - 2 * _GAP_IN - _WINDOW_IN
        window = axes_at(drawn, left, below, panel, _WINDOW_IN, sharex=rate)
        _panels(rate, delay, column, colors)
        _window(window, column, colors)
        if place == 0:
            labels = (rate, "Delivered (Mbit/s)"), (delay, "One-way delay (ms)"), (window, "cwnd (packets)")
            for axes, text in labels:
                axes.set_ylabel(text, fontsize=10)
                axes.yaxis.set_label_coords(-0.44 / panel, 0.5)
        _path_names(drawn, column.path, left, top, panel + 0.15)
        _numbers(drawn, [run.flows[0] for run in column.runs], styles, colors, left, panel)
    _head(drawn, styles, colors, columns)
    return drawn


def _panels(rate: Axes, delay: Axes, column: Column, colors: Sequence[str]) -> None:
    duration_ns = round(column.runs[0].duration_s * 1e9)
    capacity = column.runs[0].capacity
    edges_ns = bin_edges(duration_ns, capacity)
    edges = edges_ns / 1e9
    middles = (edges[:-1] + edges[1:]) / 2
    top = 0.0
    if capacity is not None:
        values = _arriving_mbps(capacity, edges_ns, column.path)
        rate.stairs(values, edges, fill=True, color=CAPACITY_COLOR, zorder=1)
        rate.stairs(values, edges, color=CAPACITY_LINE, linewidth=0.9, zorder=1.5)
        top = float(values.max())
    min_ms, max_ms = column.path.one_way_delay_ms, column.path.one_way_delay_ms
    # The portrayed scheme is drawn last, so that it is on top.
    for place in reversed(range(len(column.runs))):
        log = column.runs[place].packets
        if log is None:
            continue
        seen, color, first = behavior(log, edges_ns), colors[place], place == 0
        rate.plot(middles, seen.rate_mbps, color=color, linewidth=1.5 if first else 1.2, zorder=3 if first else 2.5)
        top = max(top, float(seen.rate_mbps.max()))
        # Lines continue over bins in which no packet left: otherwise, bursts would be single dots.
        filled = ~np.isnan(seen.median_ms)
        if not filled.any():
            continue
        times, low, median, high = (v[filled] for v in (middles, seen.low_ms, seen.median_ms, seen.high_ms))
        delay.fill_between(times, low, high, color=color, alpha=0.3, linewidth=0, zorder=2.4 if first else 2.2)
        delay.plot(times, median, color=color, linewidth=1.5 if first else 1.2, zorder=3 if first else 2.5)
        min_ms, max_ms = min(min_ms, float(low.min())), max(max_ms, float(high.max()))
    delay.axhline(column.path.one_way_delay_ms, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=2)
    rate.set_ylim(0, 1.06 * top or 1.0)
    _delay_axis(delay, min_ms, max_ms)
    for axes in (rate, delay):
        axes.set_xlim(0, duration_ns / 1e9)
        axes.tick_params(labelsize=9, length=3)
    rate.yaxis.set_major_locator(MaxNLocator(5, steps=_ROUND))
    for axes in (rate, delay):
        axes.tick_params(labelbottom=False)


def _window(axes: Axes, column: Column, colors: Sequence[str]) -> None:
    """Draw the congestion window, in packets of 1500 bytes; without a window, the data in flight."""
    top = bdp = float(column.path.bdp_packets)
    for place in reversed(range(len(column.runs))):
        if column.runs[place].series is None:
            continue
        table = series_table(column.runs[place])
        windows = np.asarray(table["cwnd_bytes"], dtype=np.float64)
        packets = np.where(np.isnan(windows), np.asarray(table["in_flight_bytes"], dtype=np.float64), windows) / 1500
        first = place == 0
        axes.plot(
            table["time_s"], packets, color=colors[place], linewidth=1.2 if first else 1.0, zorder=3 if first else 2.5
        )
        # The peak of slow start would leave no room for the rest.
        seen = packets[~np.isnan(packets)]
        top = max(top, float(np.percentile(seen, 98)) if seen.size else 0.0)
    if bdp > 0:
        axes.axhline(bdp, color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), zorder=2)
    axes.set_ylim(0, 1.15 * top or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=_ROUND))
    axes.tick_params(labelsize=9, length=3)
    axes.set_xlabel("Time (s)", fontsize=9.5, labelpad=2)


def _arriving_mbps(capacity: LinkCapacity, edges_ns: npt.NDArray[np.int64], path: NetworkPath) -> Floats:
    """Return the capacity shifted by the propagation delay, as at the receiver: no rate can exceed it."""
    left_ns = np.maximum(edges_ns - round(path.one_way_delay_ms * 1e6), 0)
    lasted = np.diff(left_ns)
    bits = np.diff(capacity.bits_until(left_ns))
    return np.asarray(np.divide(bits * 1000, lasted, out=np.zeros_like(bits), where=lasted > 0), dtype=np.float64)


def _delay_axis(axes: Axes, min_ms: float, max_ms: float) -> None:
    """Set a linear delay axis, or a logarithmic axis if a linear axis would show only the peak."""
    if min_ms > 0 and max_ms / min_ms >= LOG_FROM:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(PLAIN)
        axes.yaxis.set_minor_formatter(NullFormatter())
        margin = (max_ms / min_ms) ** 0.06
        axes.set_ylim(min_ms / margin, max_ms * margin)
        return
    margin = 0.08 * (max_ms - min_ms) or 1.0
    axes.set_ylim(max(0.0, min_ms - margin), max_ms + margin)
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=_ROUND))


def _path_names(figure: Figure, path: NetworkPath, left: float, top: float, room: float) -> None:
    lines = [path.title.partition(":")[0], *facts(path)]
    name = _short(path.name or "unnamed path", int(room / _BOLD_IN))
    limit = int(room / _FACTS_IN)
    text_at(figure, left, top + 0.62, name, fontsize=11, weight="bold", color=INK)
    for row, line in enumerate(line for line in lines if line):
        text_at(figure, left, top + 0.45 - 0.165 * row, _short(line, limit), fontsize=8.4, color=INK if row else MUTED)


def _numbers(
    figure: Figure,
    flows: Sequence[FlowRecord],
    styles: Sequence[SchemeStyle],
    colors: Sequence[str],
    left: float,
    panel: float,
) -> None:
    """Draw the numbers below a column: mean throughput, 95th percentile of the delay and loss of each scheme."""
    head = _TABLE_IN - 0.1
    start = left - _OUTDENT_IN
    limit = int((left + panel - _NUMBERS_IN[0] - 0.4 - start - 0.27) / _CHARACTER_IN)
    for right, text in zip(_NUMBERS_IN, ("Mbit/s", "p95 ms", "loss"), strict=True):
        text_at(figure, left + panel - right, head, text, ha="right", fontsize=8.5, color=MUTED)
    for row, (flow, style, color) in enumerate(zip(flows, styles, colors, strict=True), start=1):
        y = head - row * _ROW_IN
        in_inches = figure.dpi_scale_trans
        figure.add_artist(Line2D([start, start + 0.2], [y, y], color=color, linewidth=2.2, transform=in_inches))
        text_color = color if row == 1 else MUTED
        text_at(figure, start + 0.27, y, _short(style.label, limit), fontsize=9, color=text_color)
        for right, text in zip(_NUMBERS_IN, number_texts(flow), strict=True):
            weight = "bold" if row == 1 else "normal"
            text_at(figure, left + panel - right, y, text, ha="right", fontsize=9, color=INK, weight=weight)


def number_texts(flow: FlowRecord) -> tuple[str, str, str]:
    """Return throughput in Mbit/s, p95 delay in ms and loss in percent as text; "–" without a packet."""
    throughput, delay, loss = flow.throughput_mbps, flow.delay_p95_ms, flow.loss
    return (
        "–" if throughput is None else _digits(throughput),
        "–" if delay is None else _digits(delay),
        "–" if loss is None else f"{100 * loss:.1f} %",
    )


def _digits(value: float) -> str:
    """Return a number with three digits, or with all digits before the decimal point."""
    decimals = 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:.{decimals}f}" if math.isfinite(value) else "–"


def _head(figure: Figure, styles: Sequence[SchemeStyle], colors: Sequence[str], columns: Sequence[Column]) -> None:
    y = _HEIGHT_IN - 0.27
    left = 0.16
    title = text_at(figure, left, y, _short(styles[0].label, 30), fontsize=15, weight="bold", color=colors[0])
    width = figure.get_size_inches()[0]
    if len(styles) > 1:
        end = title.get_window_extent().x1 / figure.dpi
        text_at(figure, end + 0.12, y, f"compared with {_short(styles[1].label, 30)}", fontsize=12, color=MUTED)
    run = columns[0].runs[0]
    text_at(
        figure, width - _RIGHT_IN, y, f"simulated, {run.duration_s:g} s, seed {run.seed}", ha="right", fontsize=8.8,
        color=MUTED,
    )  # fmt: skip
    handles = [
        Patch(facecolor=CAPACITY_COLOR, edgecolor=CAPACITY_LINE, label="capacity"),
        Line2D([], [], color=INK, linewidth=1.5, label="rate, median delay"),
        Patch(facecolor=INK, alpha=0.25, linewidth=0, label="5th to 95th percentile"),
        Line2D([], [], color=MUTED, linewidth=1.0, linestyle=(0, (4, 3)), label="empty path; BDP"),
    ]
    figure.legend(
        handles=handles, loc="center left", bbox_to_anchor=(left, y - 0.33), ncols=len(handles),
        bbox_transform=figure.dpi_scale_trans, fontsize=9, handlelength=1.8, columnspacing=1.4, handletextpad=0.5,
        borderpad=0, borderaxespad=0,
    )  # fmt: skip


def _short(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1].rstrip()}…"
