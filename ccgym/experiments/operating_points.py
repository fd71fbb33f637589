"""Mean operating points of a run, as in ccperf's figures: of each flow, of all flows together, and the optimum.

Figures in files and on pages show these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class OperatingPoint:
    """Average operating point of one or several flows; None for unknown values."""

    throughput_mbps: float | None
    """Payload throughput, Mbit/s."""
    srtt_ms: float | None
    """Smoothed round-trip time, ms."""
    in_flight: float | None
    """Packets in flight."""


@dataclass(frozen=True)
class OperatingPoints:
    """Operating points of a run."""

    flows: tuple[OperatingPoint, ...]
    joint: OperatingPoint
    """Sums of the flows' throughputs and packets in flight, and the mean of their round-trip times."""
    optimum: OperatingPoint | None
    """The whole capacity (its time average), no queue, and one bandwidth-delay product in flight; with several base
    round-trip times, their mean. None without a link, or if flows have several bottlenecks."""


def operating_points(numbers: Mapping[str, Any]) -> OperatingPoints:
    """Return the points of a run from ``numbers``, the result of :func:`ccgym.experiments.detail.detail`."""
    tables = [numbers["tables"][f"flow_{number}"] for number in range(1, len(numbers["flows"]) + 1)]
    names = ("mean_throughput_l4", "mean_srtt_l4", "mean_in_flight_l4")
    flows = tuple(OperatingPoint(*(table[name][0] for name in names)) for table in tables)
    rates, times, packets = (
        [value for one in flows if (value := getattr(one, name)) is not None]
        for name in ("throughput_mbps", "srtt_ms", "in_flight")
    )
    joint = OperatingPoint(
        sum(rates) if rates else None, fmean(times) if times else None, sum(packets) if packets else None
    )
    best = [flow["optimum"] for flow in numbers["flows"]]
    optimum = None
    if all(best) and len({one["throughput_mbps"] for one in best}) == 1:
        optimum = OperatingPoint(
            best[0]["throughput_mbps"],
            fmean(one["srtt_ms"] for one in best),
            fmean(one["in_flight"] for one in best),
        )
    return OperatingPoints(flows, joint, optimum)
