"""One number for a run on a path: the logarithm of its power.

Kleinrock's *power* of a flow is throughput over delay. Divided by what the path offers, its capacity and its
propagation delay, it is comparable between paths, and in its logarithm halving the throughput costs as much as
doubling the delay::

    score = log2(throughput / capacity) − log2(p95 one-way delay / one-way propagation delay)

Zero is the physical limit; −1 is half the power. Delay is measured against propagation, which no scheme can beat, and
not against what our oracle reached. That choice shifts all schemes on a path alike: it cancels wherever two schemes are
compared. Loss is not part of the score: it is shown with it, and counts in which schemes are Pareto-optimal.

Another *weight* of the throughput asks for more of it per delay: ccBench's throughput² / delay has the weight 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SCORE_FLOOR: Final = -10.0
"""The minimum score: a thousandth of the power. A run in which next to nothing arrived gets it."""

THROUGHPUT_MARGIN: Final = 0.01
"""Throughputs within this fraction of each other are equal when schemes are compared."""
DELAY_MARGIN: Final = 0.01
"""So are delays."""
LOSS_MARGIN: Final = 0.005
"""And losses within half a point."""


def score(utilization: float | None, delay_ratio: float | None, weight: float = 1.0) -> float:
    """The score of a run.

    Args:
        utilization: Throughput / capacity; may exceed 1 a little by Pantheon's rule. None where nothing arrived.
        delay_ratio: 95th percentile of the one-way delay / one-way propagation delay. None where nothing arrived.
        weight: How much the logarithm of the throughput counts.

    Returns:
        From :data:`SCORE_FLOOR` to about 0.
    """
    if utilization is None or delay_ratio is None or utilization <= 0 or delay_ratio <= 0:
        return SCORE_FLOOR
    return max(SCORE_FLOOR, weight * math.log2(utilization) - math.log2(delay_ratio))


@dataclass(frozen=True)
class MeanMetrics:
    """What decides who dominates whom on a path: means over runs."""

    throughput_mbps: float
    delay_p95_ms: float
    loss: float
    """A fraction."""


def dominates(one: MeanMetrics, other: MeanMetrics) -> bool:
    """Whether one is better than the other in throughput, delay or loss, and worse in none of the three.

    Differences within the margins are none; so two schemes never dominate each other.
    """
    throughput = _advantage(one.throughput_mbps, other.throughput_mbps, THROUGHPUT_MARGIN)
    delay = _advantage(other.delay_p95_ms, one.delay_p95_ms, DELAY_MARGIN)
    loss = 0 if abs(one.loss - other.loss) <= LOSS_MARGIN else (1 if one.loss < other.loss else -1)
    return min(throughput, delay, loss) >= 0 and max(throughput, delay, loss) > 0


def _advantage(larger: float, smaller: float, margin: float) -> int:
    """1 where the first is larger by more than the margin, −1 where the second is, else 0."""
    if abs(larger - smaller) <= margin * max(larger, smaller):
        return 0
    return 1 if larger > smaller else -1


def pareto_optimal(standings: Sequence[MeanMetrics | None]) -> list[bool]:
    """Which of the schemes of a path no other one dominates; those without numbers are dominated."""
    known = [standing for standing in standings if standing is not None]

    return [standing is not None and not any(dominates(other, standing) for other in known) for standing in standings]
