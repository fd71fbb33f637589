"""Properties of a trace: rates, gaps, bursts, and capacity over time.

All functions accept the lines of a trace (milliseconds, ``uint64``) or a native trace. As in mahimahi, the trace is
repeated without end, with its last line as the period.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ccgym.errors import TraceFormatError
from ccgym.units import NS_PER_MS, PACKET_BITS

if TYPE_CHECKING:
    from ccgym import _core

TraceLike: TypeAlias = "npt.NDArray[np.uint64] | _core.Trace"
"""The lines of a trace, or a native trace."""

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class TraceSummary:
    """Key figures of a trace."""

    lines: int
    """Delivery opportunities per period."""
    period_ms: int
    """Value of the last line."""
    mean_rate_mbps: float
    """12 · lines / period: Mbit/s of full 1500-byte packets."""
    distinct_times: int
    """Number of different times among the lines."""
    largest_gap_ms: int
    """Longest gap between two opportunities, including the gap to the next repetition."""
    largest_gap_at_ms: int
    """Start of this gap."""
    gap_percentiles_ms: tuple[float, float, float]
    """50th, 95th and 99th percentile of the gaps between successive opportunities."""
    largest_burst: int
    """Max number of opportunities in one millisecond."""
    largest_burst_at_ms: int
    """Millisecond with this number."""
    bin_ms: int
    """Width of the bins of the rate percentiles."""
    rate_percentiles_mbps: tuple[float, float, float]
    """5th, 50th and 95th percentile of the rate per bin, over one period."""
    stalled_share: float
    """Fraction of the period in gaps of more than 100 ms."""


def times_of(trace: TraceLike) -> npt.NDArray[np.uint64]:
    """Return the lines of a trace as milliseconds.

    Raises:
        TraceFormatError: The array is not a trace: empty, decreasing, or ending at 0.
    """
    if isinstance(trace, (str, os.PathLike)):
        raise TraceFormatError(
            "trace-malformed",
            f"{trace!r}, a name or a file",
            expected="the trace itself",
            hint=f"NetworkPath(trace={str(trace)!r}).check(), or `ccgym paths check {trace}`",
        )
    if not isinstance(trace, np.ndarray):
        return np.asarray(trace.times_ms, dtype=np.uint64)
    if trace.ndim != 1 or trace.size == 0 or trace.dtype.kind not in "iu":
        raise TraceFormatError(
            "trace-malformed", "an array that is not a trace", expected="one row of whole milliseconds"
        )
    times = trace.astype(np.int64)
    if times[0] < 0 or times[-1] == 0 or (np.diff(times) < 0).any():
        raise TraceFormatError(
            "trace-unsorted",
            "times that decrease, are negative, or end at 0",
            expected="non-decreasing milliseconds, the last one above 0",
        )
    return times.astype(np.uint64)


def opportunities_before(times_ms: npt.NDArray[np.uint64], at_ms: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Count the opportunities strictly before each of the given milliseconds, including repetitions."""
    times = times_ms.astype(np.int64)
    last = np.asarray(at_ms, dtype=np.int64) - 1
    period = int(times[-1])
    cycles = np.maximum(last, 0) // period
    within = np.searchsorted(times, last - cycles * period, side="right")
    return np.asarray(cycles * times.size + within, dtype=np.int64)


def binned_rates(
    trace: TraceLike, bin_ms: int, duration_ms: int | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the rate per bin.

    Args:
        trace: The trace.
        bin_ms: Width of a bin, at least 1 ms.
        duration_ms: Duration of the played trace. Default: one period, but not the first, because a line equal to the
            period is at the start of the next period. The last bin ends at the duration.

    Returns:
        The edges of the bins in milliseconds (one more than bins), and Mbit/s of full packets per bin.
    """
    times = times_of(trace)
    end = int(times[-1]) if duration_ms is None else duration_ms
    edges = np.append(np.arange(0, end, max(1, bin_ms), dtype=np.int64), end)
    counts = np.diff(opportunities_before(times, edges if duration_ms is not None else edges + end))
    return edges, counts * (PACKET_BITS / 1e3) / np.diff(edges)


def summarize(trace: TraceLike, bin_ms: int | None = None) -> TraceSummary:
    """Compute the key figures of a trace.

    Args:
        trace: The trace.
        bin_ms: Bin of the rate percentiles. Default: 500 ms as in Pantheon, or a tenth of a shorter period.
    """
    times = times_of(trace).astype(np.int64)
    period = int(times[-1])
    # The first line is also the gap since the end of the previous repetition.
    gaps = np.diff(times, prepend=0)
    widest = int(gaps.argmax())
    instants, counts = np.unique(times, return_counts=True)
    fullest = int(counts.argmax())
    width = bin_ms if bin_ms is not None else max(1, min(500, period // 10))
    _, rates = binned_rates(times.astype(np.uint64), width)
    low, middle, high = (float(value) for value in np.percentile(rates, (5, 50, 95)))
    half, most, nearly_all = (float(value) for value in np.percentile(gaps, (50, 95, 99)))
    return TraceSummary(
        lines=int(times.size),
        period_ms=period,
        mean_rate_mbps=mean_rate_bps(times.size, period) / 1e6,
        distinct_times=int(instants.size),
        largest_gap_ms=int(gaps[widest]),
        largest_gap_at_ms=int(times[widest] - gaps[widest]),
        gap_percentiles_ms=(half, most, nearly_all),
        largest_burst=int(counts[fullest]),
        largest_burst_at_ms=int(instants[fullest]),
        bin_ms=width,
        rate_percentiles_mbps=(low, middle, high),
        stalled_share=float(gaps[gaps > 100].sum() / period),
    )


def mean_rate_bps(lines: int, period_ms: int) -> float:
    """Return the mean rate of a trace in bits per second of full 1500-byte packets: 12000 · lines / period."""
    return 1e3 * PACKET_BITS * lines / period_ms


def capacity_steps(trace: TraceLike, duration_ns: int | None = None) -> tuple[tuple[int, int], ...]:
    """Describe a trace as a rate that changes in steps: the information that an oracle can have.

    Bins are 500 ms, or as wide as the time of fifty packets at the mean rate. Neighbors are merged if the difference of
    their counts can be random (three standard deviations of a Poisson count). So a constant or Poisson trace becomes
    one step, a cold start two steps, and a recorded cellular trace many steps.

    Args:
        trace: The trace.
        duration_ns: Duration of the description. Default: one period. If one step is enough, it is the mean
            rate.

    Returns:
        Pairs of start in nanoseconds (the first is 0) and bits per second.
    """
    times = times_of(trace)
    period = int(times[-1])
    mean = mean_rate_bps(times.size, period)
    bin_ms = max(500, round(50 * period / times.size))
    end = max(period, bin_ms) if duration_ns is None else max(1, -(-duration_ns // NS_PER_MS))
    if bin_ms >= end:
        return ((0, round(mean)),)
    edges = np.append(np.arange(0, end - bin_ms + 1, bin_ms, dtype=np.int64), end)
    if edges[-2] == end:
        edges = edges[:-1]
    counts = np.diff(opportunities_before(times, edges)).tolist()
    widths = np.diff(edges).tolist()
    segments: list[tuple[int, int, int]] = []  # start, width, count
    for start, width, count in zip(edges.tolist(), widths, counts, strict=False):
        if segments:
            begin, wide, total = segments[-1]
            likely = total * width / wide
            # Both counts are random, so the variance of their difference is the sum of their variances.
            if abs(count - likely) <= 3.0 * max(1.0, likely * (1.0 + width / wide)) ** 0.5:
                segments[-1] = (begin, wide + width, total + count)
                continue
        segments.append((start, width, count))
    if len(segments) == 1:
        return ((0, round(mean)),)
    return tuple((start * NS_PER_MS, round(1e3 * PACKET_BITS * count / width)) for start, width, count in segments)


def sparkline(trace: TraceLike, width: int = 72) -> str:
    """Draw the rate over one period as a line of block characters; the fullest block is the highest bin."""
    times = times_of(trace)
    period = int(times[-1])
    columns = max(1, min(width, period))
    edges = np.linspace(0, period, columns + 1).astype(np.int64)
    counts = np.diff(opportunities_before(times, edges + period)) / np.maximum(1, np.diff(edges))
    top = float(counts.max()) or 1.0
    # Small rates must be visible, so that a space means an outage.
    levels = np.ceil(counts / top * (len(_BLOCKS) - 1)).astype(int)
    return "".join(_BLOCKS[level] for level in levels)
