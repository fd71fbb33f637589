"""Generation of delivery traces: constant, Poisson, stepped and synthetic cellular.

Every function returns the lines of the trace, milliseconds as ``uint64``. It is a pure function of its arguments: the
same seed results in the same trace on every machine. Random numbers are from the raw output of PCG64, because numpy
guarantees this stream, but not the streams of its distributions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ccgym.errors import ConfigError
from ccgym.units import NS_PER_MS, NS_PER_S, PACKET_BITS, format_rate, format_time

Times = npt.NDArray[np.uint64]
"""The lines of a trace: non-decreasing milliseconds, the last one above zero."""

DEFAULT_DURATION_NS: Final = 60 * NS_PER_S
"""Default duration: 60 s, the duration of Pantheon's traces."""
MAX_LINES: Final = 50_000_000
"""Max number of lines of a trace: 400 MB in memory."""

_COLD_START_GAP_MS: Final = 100
_STEP_MS: Final = 20
"""The rate of the cellular model changes every 20 ms, Sprout's tick."""


def constant(rate_bps: int, duration_ns: int = DEFAULT_DURATION_NS) -> Times:
    """Generate opportunities at equal distances from 0: the rule of Pantheon's constant-rate traces.

    The rule is from Indigo's ``generate_trace.py``: ``int(rate · duration / 12000 bit)`` lines at equal distances over
    the duration from 0 on, truncated to milliseconds. With the same floating-point operations, it reproduces the
    published 10, 50, 77.72, 100, 100.42 and 114.68 Mbit/s traces byte for byte.

    Args:
        rate_bps: Bits per second, with 1500 bytes per line.
        duration_ns: Duration in nanoseconds; at least 2 ms.

    Raises:
        ConfigError: The trace would have fewer than two lines, or more than :data:`MAX_LINES`.
    """
    lines = _line_count(rate_bps * duration_ns // (PACKET_BITS * NS_PER_S), rate_bps, duration_ns)
    step = (duration_ns / NS_PER_MS) / lines
    return _finish(np.arange(lines, dtype=np.float64) * step)


def poisson(rate_bps: int, duration_ns: int = DEFAULT_DURATION_NS, *, seed: int, cold_start_ns: int = 0) -> Times:
    """Generate exponential gaps: the rule of Pantheon's ``-poisson`` traces.

    After an optional cold start with one opportunity per 100 ms, opportunities follow with exponential gaps of mean
    12000 bit / rate. The first opportunity at or after the duration is the last. The seeds of the published files are
    unknown, so this rule reproduces their distribution, not their lines.

    Args:
        rate_bps: Bits per second after the cold start.
        duration_ns: Duration in nanoseconds.
        seed: Any non-negative integer.
        cold_start_ns: Duration of the slow start in nanoseconds; it is part of every repetition of the trace.

    Raises:
        ConfigError: As in :func:`constant`, or the cold start is not shorter than the trace.
    """
    if cold_start_ns >= duration_ns:
        raise ConfigError(
            "out-of-range",
            f"a cold start of {format_time(cold_start_ns)} in a trace of {format_time(duration_ns)}",
            expected="a cold start shorter than the trace",
        )
    _line_count(rate_bps * duration_ns // (PACKET_BITS * NS_PER_S), rate_bps, duration_ns)
    mean_gap_ms = 1e3 * PACKET_BITS / rate_bps
    cold = list(range(_COLD_START_GAP_MS, cold_start_ns // NS_PER_MS + 1, _COLD_START_GAP_MS))
    now = cold_start_ns / NS_PER_MS
    end = duration_ns / NS_PER_MS
    uniform = _uniforms(seed)
    times: list[float] = [float(time) for time in cold]
    while now < end:
        now -= mean_gap_ms * math.log(1.0 - next(uniform))
        times.append(now)
    return _finish(np.asarray(times))


def stepped(steps: Sequence[tuple[int, int]], duration_ns: int = DEFAULT_DURATION_NS) -> Times:
    """Generate a rate that changes at given times.

    Args:
        steps: Pairs of start time in nanoseconds and rate in bits per second. The first starts at 0, times increase
            strictly. A rate of 0 closes the link.
        duration_ns: Duration in nanoseconds, longer than the last start. It is also the period: if the last opportunity
            is earlier, one is added at the end.

    Raises:
        ConfigError: The steps are out of order or beyond the duration, or there are too few or too many lines.
    """
    starts = [start for start, _ in steps]
    if not steps or starts[0] != 0 or any(b <= a for a, b in itertools.pairwise(starts)):
        raise ConfigError(
            "order-wrong",
            "steps " + ", ".join(format_time(start) for start in starts),
            expected="a first step at 0s, then strictly increasing times",
        )
    if starts[-1] >= duration_ns:
        raise ConfigError(
            "out-of-range",
            f"a step at {format_time(starts[-1])} in a trace of {format_time(duration_ns)}",
            expected="steps within the trace",
        )
    edges_ms = np.array([*starts, duration_ns], dtype=np.float64) / NS_PER_MS
    rates = np.array([rate for _, rate in steps], dtype=np.float64)
    work = np.concatenate([[0.0], np.cumsum(np.diff(edges_ms) * rates / (1e3 * PACKET_BITS))])
    lines = _line_count(math.floor(work[-1] + 1e-9), int(rates.max()), duration_ns)
    return _with_period(_invert(np.arange(lines, dtype=np.float64), work, edges_ms), duration_ns)


def cellular(
    rate_bps: int,
    duration_ns: int = DEFAULT_DURATION_NS,
    *,
    seed: int,
    volatility: float = 0.4,
    outage_escape_hz: float = 10.0,
) -> Times:
    """Generate a doubly stochastic link after Sprout's model of cellular networks (Winstein et al., NSDI 2013, §3).

    Opportunities are a Poisson process. Its rate is a random walk with a Gaussian step every 20 ms, reflected at twice
    the center. At zero the walk stays there: an outage, which ends with the given rate. The volatility is Sprout's
    (σ = 200 packets/s per √s around 500 packets/s). Sprout's inference assumes that one outage per second ends. Such a
    walk is at zero for 30 % of the time, recorded LTE for 3 to 10 %; so the default of ccgym is 10 per second.

    The trace has exactly the given mean rate. The walk is relative to its center, so the center is chosen such that the
    mean of the walk is the given rate. This also gives the number of opportunities. The times of a Poisson process with
    a known number of events are independent draws. The last opportunity is at the end of the trace.

    Args:
        rate_bps: Mean rate of the trace, in bits per second.
        duration_ns: Duration and period in nanoseconds; fractions of a millisecond are omitted.
        seed: Any non-negative integer.
        volatility: Standard deviation of the walk after one second, as a fraction of the center; 0 to 10.
        outage_escape_hz: Rate at which outages end, per second; above 0.

    Raises:
        ConfigError: A parameter is out of range, or there are too few or too many lines.
    """
    if not 0.0 <= volatility <= 10.0:
        raise ConfigError(
            "out-of-range", f"a volatility of {volatility!r}", expected="0 to 10 (fraction of the center per √s)"
        )
    if not 0.0 < outage_escape_hz < math.inf:
        raise ConfigError(
            "out-of-range", f"an outage escape rate of {outage_escape_hz!r}", expected="more than 0 per second"
        )
    end_ms = duration_ns // NS_PER_MS
    lines = _line_count(
        (2 * rate_bps * end_ms + 1000 * PACKET_BITS) // (2000 * PACKET_BITS), rate_bps, duration_ns
    )  # the nearest whole number
    uniform = _uniforms(seed)
    sigma = volatility * math.sqrt(_STEP_MS / 1e3)
    stay = math.exp(-outage_escape_hz * _STEP_MS / 1e3)
    ticks = -(-end_ms // _STEP_MS)
    edges_ms = np.minimum(np.arange(ticks + 1, dtype=np.float64) * _STEP_MS, float(end_ms))
    rates = np.zeros(ticks)  # relative to the center
    rate = 1.0
    for tick in range(ticks):
        rates[tick] = rate
        if rate > 0.0:
            rate += sigma * _gaussian(uniform)
        elif next(uniform) >= stay:
            rate = sigma * abs(_gaussian(uniform))
        if rate > 2.0:
            rate = 4.0 - rate
        rate = max(0.0, rate)
    work = np.concatenate([[0.0], np.cumsum(rates * np.diff(edges_ms))])
    draws = np.sort(np.fromiter(uniform, dtype=np.float64, count=lines - 1))
    return _finish(np.append(_invert(draws * work[-1], work, edges_ms), float(end_ms)))


def _line_count(lines: int, rate_bps: int, duration_ns: int) -> int:
    what = f"{format_rate(rate_bps) if rate_bps > 0 else 'a closed link'} for {format_time(duration_ns)}"
    if lines < 2:
        raise ConfigError(
            "trace-empty",
            f"{what} delivers {lines} packets of 1500 bytes",
            expected="a trace of at least two lines",
            hint="make the trace longer",
        )
    if lines > MAX_LINES:
        raise ConfigError(
            "trace-too-long",
            f"{what} delivers {lines} packets of 1500 bytes",
            expected=f"a trace of at most {MAX_LINES} lines",
            hint="shorten the trace (it repeats), or give the path a rate instead of a trace",
        )
    return lines


def _finish(times_ms: npt.NDArray[np.float64]) -> Times:
    """Truncate to milliseconds, like all published generators."""
    times = np.floor(times_ms).astype(np.uint64)
    if times.size == 0 or times[-1] == 0:
        raise ConfigError(
            "trace-empty",
            "a trace whose last opportunity is at 0 ms",
            expected="an opportunity after 0 ms, because the last line is the period",
            hint="make the trace longer",
        )
    return times


def _with_period(times_ms: npt.NDArray[np.float64], duration_ns: int) -> Times:
    """Truncate, and add an opportunity at the end if there is none."""
    end_ms = duration_ns // NS_PER_MS
    times = np.floor(times_ms).astype(np.uint64)
    if times.size == 0 or times[-1] + np.uint64(1) < end_ms:
        times = np.append(times, np.uint64(end_ms))
    return _finish(times.astype(np.float64))


def _invert(
    targets: npt.NDArray[np.float64], work: npt.NDArray[np.float64], edges_ms: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the times when piecewise linear, non-decreasing work reaches each target (in a flat part: its end)."""
    right = np.searchsorted(work, targets, side="right").clip(1, work.size - 1)
    left = right - 1
    when = edges_ms[left] + (targets - work[left]) / (work[right] - work[left]) * (edges_ms[right] - edges_ms[left])
    return np.asarray(when, dtype=np.float64)


def _uniforms(seed: int) -> Iterator[float]:
    """Yield uniform numbers in [0, 1) with 53 random bits each."""
    if seed < 0:
        raise ConfigError("out-of-range", f"seed {seed}", expected="a seed of zero or more")
    draw: Callable[[int], npt.NDArray[np.uint64]] = np.random.PCG64(seed).random_raw
    while True:
        yield from ((draw(4096) >> np.uint64(11)) * 2.0**-53).tolist()


def _gaussian(uniform: Iterator[float]) -> float:
    """Return one standard normal number (Box and Muller, cosine part)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - next(uniform)))
    return radius * math.cos(2.0 * math.pi * next(uniform))
