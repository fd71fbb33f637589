"""Mean operating points of a run, as ccperf's figures have them: of each flow, of all together, and the best there is.

Figures on paper and on pages show these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class OperatingPoint:
    """Where a flow, or several, operated on average; None where nothing is known."""

    throughput_mbps: float | None
    """Payload."""
    srtt_ms: float | None
    """Smoothed round-trip time."""
    in_flight: float | None
    """Packets."""


@dataclass(frozen=True)
class OperatingPoints:
    """Those of a run."""

    flows: tuple[OperatingPoint, ...]
    joint: OperatingPoint
    """Throughputs and what is in flight summed over the flows, the mean of their round-trip times."""
    optimum: OperatingPoint | None
    """The whole capacity (its time average), no queue, and one bandwidth-delay product in flight; of several base
    round-trip times their mean counts. None without a link, and where flows have several bottlenecks."""


def operating_points(numbers: Mapping[str, Any]) -> OperatingPoints:
    """The points of a run of which :func:`ccgym.experiments.detail.detail` kept ``numbers``."""
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
