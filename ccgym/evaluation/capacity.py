"""Capacity of the bottleneck, as a function of time.

Pantheon averages the link's delivery opportunities; ccperf divides by the momentary bandwidth. Both are computed
here from the description that the simulator uses: the link element of the path specification
(``crates/ccgym-path/src/spec.rs``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from ccgym.evaluation.metrics import IntArray
from ccgym.units import NS_PER_MS

if TYPE_CHECKING:
    from ccgym._core import Trace

FloatArray = npt.NDArray[np.float64]

OPPORTUNITY_BYTES: Final = 1500
"""IP bytes of a mahimahi delivery opportunity (1504 minus the 4-byte TUN prefix that is charged per packet)."""


class LinkCapacity(Protocol):
    """Capacity of a link from time 0, in nanoseconds and bits."""

    def bits_until(self, times_ns: IntArray) -> FloatArray:
        """Return the bits that the link could have carried before each of the given times."""
        ...

    def average_mbps(self, duration_ns: int) -> float:
        """Return the average over a run, Mbit/s; by Pantheon's rule if the link has opportunities."""
        ...


def mean_per_bin_mbps(capacity: LinkCapacity, edges_ns: IntArray) -> FloatArray:
    """Return the capacity between successive edges, Mbit/s."""
    bits = np.diff(capacity.bits_until(edges_ns))
    return np.asarray(bits * 1000 / np.diff(edges_ns), dtype=np.float64)


@dataclass(frozen=True)
class TraceCapacity:
    """Capacity of a link that follows a mahimahi delivery trace."""

    times_ms: IntArray
    """The trace: one delivery opportunity per entry, ascending."""
    once: bool = False
    """Whether the link stops at the end of the trace instead of repeating it."""

    def _count_before(self, times_ns: IntArray) -> IntArray:
        """Return the number of opportunities strictly before each time."""
        # An opportunity at millisecond t is before time x (ns) iff t ≤ ⌈x / 1 ms⌉ − 1.
        until_ms = -(-times_ns // NS_PER_MS) - 1
        times = self.times_ms
        period = int(times[-1])
        cycles = np.zeros_like(until_ms) if self.once else np.maximum(until_ms, 0) // period
        rest = until_ms - cycles * period
        within = np.searchsorted(times, rest, side="right")
        return np.asarray(cycles * times.size + within, dtype=np.int64)

    def bits_until(self, times_ns: IntArray) -> FloatArray:
        """See :class:`LinkCapacity`."""
        return self._count_before(times_ns).astype(np.float64) * (OPPORTUNITY_BYTES * 8)

    def average_mbps(self, duration_ns: int) -> float:
        """Return bits of the opportunities in [0, duration] / (last − first), Mbit/s; 0 with fewer than two times."""
        count = int(self._count_before(np.array([duration_ns + 1]))[0])
        if count == 0:
            return 0.0
        first = int(self.times_ms[0])
        span_ms = self._time_of(count - 1) - first
        return count * OPPORTUNITY_BYTES * 8 / (1000 * span_ms) if span_ms else 0.0

    def _time_of(self, index: int) -> int:
        """Return the millisecond of the opportunity with this index, from 0."""
        cycle, place = divmod(index, int(self.times_ms.size))
        return cycle * int(self.times_ms[-1]) + int(self.times_ms[place])


@dataclass(frozen=True)
class RateCapacity:
    """Capacity of a link of piecewise constant rate."""

    from_ns: IntArray
    """Start of each step, nanoseconds; the first is 0."""
    rate_bps: FloatArray
    """Rate of each step, bit/s."""

    def bits_until(self, times_ns: IntArray) -> FloatArray:
        """See :class:`LinkCapacity`."""
        widths = np.diff(self.from_ns, append=np.iinfo(np.int64).max)
        before = np.concatenate(([0.0], np.cumsum(self.rate_bps[:-1] * widths[:-1]))) / 1e9
        step = np.searchsorted(self.from_ns, times_ns, side="right") - 1
        return np.asarray(before[step] + self.rate_bps[step] * (times_ns - self.from_ns[step]) / 1e9)

    def average_mbps(self, duration_ns: int) -> float:
        """Return the time average over [0, duration], Mbit/s."""
        return float(self.bits_until(np.array([duration_ns]))[0] * 1000 / duration_ns)


def slowest_link(elements: Sequence[Mapping[str, Any]], traces: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the link with the smallest mean rate among the elements of one direction; None if there is no link.

    Args:
        elements: the direction's path elements, as in the specification given to the simulator.
        traces: the native traces by name (``ccgym._core.Trace``).
    """
    minute = 60 * 1_000_000_000
    links = [element for element in elements if element["kind"] == "link"]
    if len(links) == 1:
        return links[0]
    return min(links, key=lambda link: _capacity_of(link["schedule"], traces).average_mbps(minute), default=None)


def link_capacity(elements: Sequence[Mapping[str, Any]], traces: Mapping[str, Any]) -> LinkCapacity | None:
    """Return the capacity of the slowest link among the elements of one direction; None if there is no link."""
    link = slowest_link(elements, traces)
    return None if link is None else _capacity_of(link["schedule"], traces)


def _capacity_of(schedule: Mapping[str, Any], traces: Mapping[str, Any]) -> LinkCapacity:
    if schedule["kind"] == "trace":
        return _trace_capacity(traces[schedule["name"]], bool(schedule.get("once", False)))
    rate = schedule["rate"]
    steps = rate if isinstance(rate, list) else [[0, rate]]
    return RateCapacity(
        from_ns=np.array([start for start, _ in steps], dtype=np.int64),
        rate_bps=np.array([value for _, value in steps], dtype=np.float64),
    )


@lru_cache(maxsize=64)
def _trace_capacity(trace: Trace, once: bool) -> TraceCapacity:
    """Return the capacity of a native trace, shared by many runs."""
    return TraceCapacity(np.asarray(trace.times_ms).astype(np.int64), once)
