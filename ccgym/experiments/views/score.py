"""One number for a run on a path: the logarithm of its power.

Kleinrock's *power* of a flow is throughput over delay. Normalized by the path's capacity and propagation delay, it is
comparable between paths. In its logarithm, half of the throughput costs as much as twice the delay::

    score = log2(throughput / capacity) − log2(p95 one-way delay / one-way propagation delay)

Zero is the physical limit; −1 is half the power. Delay is normalized by the propagation delay, which is the minimum of
every scheme, and not by the oracle's delay. This choice shifts all schemes on a path equally, and cancels when two
schemes are compared. Loss is not part of the score: it is shown next to it, and counts for Pareto-optimality.

A larger *weight* of the throughput favors throughput over delay: ccBench's throughput² / delay has the weight 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SCORE_FLOOR: Final = -10.0
"""The minimum score: a thousandth of the power, for runs in which next to nothing arrived."""

THROUGHPUT_MARGIN: Final = 0.01
"""Throughputs that differ by at most this fraction are equal when schemes are compared."""
DELAY_MARGIN: Final = 0.01
"""Delays that differ by at most this fraction are equal when schemes are compared."""
LOSS_MARGIN: Final = 0.005
"""Losses that differ by at most this fraction (half a percentage point) are equal when schemes are compared."""


def score(utilization: float | None, delay_ratio: float | None, weight: float = 1.0) -> float:
    """Return the score of a run.

    Args:
        utilization: Throughput / capacity; may slightly exceed 1 by Pantheon's rule. None if nothing arrived.
        delay_ratio: 95th percentile of the one-way delay / one-way propagation delay. None if nothing arrived.
        weight: Weight of the logarithm of the throughput.

    Returns:
        The score, from :data:`SCORE_FLOOR` to about 0.
    """
    if utilization is None or delay_ratio is None or utilization <= 0 or delay_ratio <= 0:
        return SCORE_FLOOR
    return max(SCORE_FLOOR, weight * math.log2(utilization) - math.log2(delay_ratio))


@dataclass(frozen=True)
class MeanMetrics:
    """Means over runs that decide which scheme dominates another on a path."""

    throughput_mbps: float
    delay_p95_ms: float
    loss: float
    """Loss, a fraction."""


def dominates(one: MeanMetrics, other: MeanMetrics) -> bool:
    """Return whether one scheme is better than the other in throughput, delay or loss, and worse in none of them.

    Differences within the margins count as equal; so two schemes never dominate each other.
    """
    throughput = _advantage(one.throughput_mbps, other.throughput_mbps, THROUGHPUT_MARGIN)
    delay = _advantage(other.delay_p95_ms, one.delay_p95_ms, DELAY_MARGIN)
    loss = 0 if abs(one.loss - other.loss) <= LOSS_MARGIN else (1 if one.loss < other.loss else -1)
    return min(throughput, delay, loss) >= 0 and max(throughput, delay, loss) > 0


def _advantage(larger: float, smaller: float, margin: float) -> int:
    """Return 1 if the first number is larger by more than the margin, −1 if the second is, else 0."""
    if abs(larger - smaller) <= margin * max(larger, smaller):
        return 0
    return 1 if larger > smaller else -1


def pareto_optimal(standings: Sequence[MeanMetrics | None]) -> list[bool]:
    """Return, for each scheme on a path, whether no other scheme dominates it; False for schemes without numbers."""
    known = [standing for standing in standings if standing is not None]

    return [standing is not None and not any(dominates(other, standing) for other in known) for standing in standings]
