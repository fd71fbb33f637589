"""One episode of a learning flow: rate and capacity, delay, queue and action over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from ccgym.report.figures import figure
from ccgym.report.style import CAPACITY_COLOR, CAPACITY_EDGE, MUTED, blank_figure, flow_color

Floats = npt.NDArray[np.float64]

WIDTH_IN = 8.0
"""Width of the figure in inches."""
PANEL_IN = 1.5
"""Height of each of its four panels."""

_HEADROOM = 1.3
"""Room above the curves, for the legend."""


@dataclass(frozen=True)
class EpisodeSeries:
    """An episode, one entry per decision."""

    time_s: Floats
    """End of each interval, seconds since the start."""
    sent_mbps: Floats
    """Sending rate."""
    delivered_mbps: Floats
    """Delivery rate."""
    link_mbps: Floats
    """The link's rate."""
    rtt_ms: Floats
    """Mean round-trip time of each interval; NaN without a sample."""
    base_rtt_ms: Floats
    """Round-trip time of the empty path."""
    queue_packets: Floats
    """Packets that wait at the bottleneck."""
    actions: Floats
    """Shape (decisions, actions): what the policy chose."""
    action_names: Sequence[str] = field(default=("action",))
    """One per action."""


@figure("episode", "an episode of a learning flow over time", page="command")
def episode_figure(series: EpisodeSeries, title: str = "") -> Figure:
    """Draw an episode. Call within :func:`ccgym.report.style.house_style`."""
    drawn = blank_figure(WIDTH_IN, 4 * PANEL_IN + 0.6)
    drawn.set_layout_engine("constrained")
    rate, delay, queue, action = drawn.subplots(4, 1, sharex=True)
    time = series.time_s
    rate.fill_between(time, series.link_mbps, step="post", color=CAPACITY_COLOR, edgecolor=CAPACITY_EDGE, label="link")
    rate.plot(time, series.sent_mbps, color=flow_color(2), linewidth=0.9, label="sent")
    rate.plot(time, series.delivered_mbps, color=flow_color(0), linewidth=1.3, label="delivered")
    rate.set_ylabel("Mbit/s")
    delay.plot(time, series.rtt_ms, color=flow_color(0), linewidth=1.2, label="round trip")
    delay.plot(time, series.base_rtt_ms, color=MUTED, linewidth=1.0, linestyle="--", label="empty path")
    delay.set_ylabel("ms")
    queue.fill_between(time, series.queue_packets, step="post", color=flow_color(3), alpha=0.4, label="queue")
    queue.set_ylabel("packets")
    for index, name in enumerate(series.action_names):
        action.step(time, series.actions[:, index], where="post", color=flow_color(index), linewidth=1.0, label=name)
    action.set_ylabel("action")
    action.set_xlabel("time, s")
    for axes in (rate, delay, queue):
        axes.set_ylim(0, _HEADROOM * axes.dataLim.y1 or 1.0)
    for axes in (rate, delay, queue, action):
        axes.margins(x=0)
        axes.legend(loc="upper right", ncols=3, fontsize=8)
        axes.title.set_visible(False)
    if title:
        drawn.suptitle(title, fontsize=11)
    return drawn
