"""The detector that looks at every trace before it is used.

A trace is easily wrong and never complains: mahimahi plays whatever integers it finds. One student
report is an example. Its "50 Mbit/s, 10 ms" trace held 4,166 lines of ``1500``, the packet
size, so the link delivered 4,166 packets at once and then nothing for one and a half seconds; the report's figures
(0.6 Mbit/s, 1.5 s of delay) measured that, and not the schemes. :func:`check_trace` finds such mistakes and names them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from ccgym.tracetools.inspect import TraceLike, TraceSummary, mean_rate_bps, summarize, times_of
from ccgym.units import NS_PER_MS, PACKET_BITS, PACKET_BYTES, TimeLike, format_rate, parse_rate, parse_time

Severity = Literal["error", "warning"]

PACKET_SIZES: Final = {
    1500: "the size of a full IP packet in bytes",
    1504: "the size of a full packet with mahimahi's prefix, in bytes",
    1460: "the largest payload of a TCP segment in bytes",
    1448: "the payload of a TCP segment with timestamps, in bytes",
}
"""Numbers that are likely to be a packet size and unlikely to be meant as milliseconds."""
GAP_FLOOR_MS: Final = 100
"""A wait of up to this long is never remarked on."""
GAP_RTTS: Final = 5
"""Nor is one of up to this many round-trip times."""
BURST_SHARE: Final = 0.05
"""More than this share of the lines at one instant is remarked on."""
MAX_MEAN_RATE: Final = 10**12
"""A mean rate above this, bits per second, is refused."""
RATE_TOLERANCE: Final = 0.05
"""So is a mean rate that is further than this from the declared one, as a fraction of it."""

_RATE_IN_NAME: Final = re.compile(r"(?<![0-9.])([0-9]+(?:\.[0-9]+)?)[ _-]?([kmg])(?:bps|bit)", re.IGNORECASE)
_REMAKE: Final = "ccgym paths make constant --rate"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or strange, about a trace or a path."""

    severity: Severity
    """``"error"``: results would be meaningless; ``"warning"``: make sure that it is meant."""
    code: str
    """Stable name of the rule, such as ``"all-lines-equal"``."""
    message: str
    """What was found, in one sentence."""
    cause: str
    """What probably happened."""
    remedy: str
    """What to do."""
    subject: str = ""
    """Which trace or path."""

    def __str__(self) -> str:
        head = ": ".join(filter(None, (self.severity, self.subject, self.message)))
        return f"{head} [{self.code}]\n  cause: {self.cause}\n  remedy: {self.remedy}"


def check_trace(
    trace: TraceLike,
    declared_rate: str | None = None,
    declared_rtt: TimeLike | None = None,
    *,
    name: str = "",
) -> list[Finding]:
    """Look for mistakes in a trace.

    =================== ======== ==================================================================================
    code                severity when
    =================== ======== ==================================================================================
    ``all-lines-equal`` error    every line names the same instant, so the link delivers all at once per period
                                 (lines of ``1`` are mahimahi's usual notation for a rate, and one line is not a burst)
    ``packet-size``     error    a single line that is a packet size
    ``too-fast``        error    the mean rate is above 1 Tbit/s: more packets than a run can hold
    ``long-gap``        warning  nothing is delivered for more than 100 ms and more than 5 declared RTTs
    ``burst``           warning  one instant holds more than 5 % of the lines
    ``rate-mismatch``   warning  the mean rate is more than 5 % off the declared one, or off the one in the name
    =================== ======== ==================================================================================

    Args:
        trace: The trace, native or as milliseconds.
        declared_rate: The rate it should have, with a unit. By default the rate in ``name``, if there is one, as in
            ``50mbps_10ms.trace``.
        declared_rtt: The path's round-trip time: text with a unit, or seconds.
        name: The trace's name, for messages.

    Returns:
        What was found, errors first; empty if nothing is wrong.
    """
    rate_bps = None if declared_rate is None else parse_rate(declared_rate)
    rtt_ns = None if declared_rtt is None else parse_time(declared_rtt)
    return find_mistakes(trace, rate_bps, rtt_ns, name=name)


def find_mistakes(trace: TraceLike, rate: int | None, rtt: int | None, *, name: str = "") -> list[Finding]:
    """What :func:`check_trace` finds, with the rate in bits per second and the round-trip time in nanoseconds."""
    times = times_of(trace).astype(np.int64)
    from_name = rate is None
    if from_name:
        rate = rate_in_name(name)
    lines, period = int(times.size), int(times[-1])
    error = (_all_equal(lines, period, rate) if times[0] == times[-1] else None) or _too_fast(lines, period)
    if error:
        return [replace(error, subject=name)]
    summary = summarize(trace)
    found = (_gap(times, summary, rtt), _burst(summary), _rate(times, rate, from_name))
    return [replace(finding, subject=name) for finding in found if finding is not None]


def rate_in_name(name: str) -> int | None:
    """Return the rate that a file name claims, in bits per second: ``"50mbps_10ms.trace"`` → 50,000,000."""
    match = _RATE_IN_NAME.search(name.replace("\\", "/").rsplit("/", 1)[-1])
    if match is None:
        return None
    rate = float(match[1]) * {"k": 1e3, "m": 1e6, "g": 1e9}[match[2].casefold()]
    return round(rate) if rate >= 1 else None


def likely_rate(packets_per_second: int, packet_bytes: int = PACKET_BYTES) -> int:
    """Return the roundest rate, in bit/s, that truncates to this many packets per second: 4166 → 50,000,000."""
    low = packets_per_second * packet_bytes * 8
    high = (packets_per_second + 1) * packet_bytes * 8
    for power in range(len(str(high)), -1, -1):
        candidate = -(-low // 10**power) * 10**power
        if candidate > 0 and low <= candidate < high:
            return int(candidate)
    return low


def _all_equal(lines: int, value: int, rate: int | None) -> Finding | None:
    size = PACKET_SIZES.get(value)
    if lines == 1 and size is None:
        return None  # one packet per period: a slow link
    if value == 1:
        return None  # whole packets per millisecond: mahimahi's notation for 12, 24, 36 … Mbit/s
    what = "the only line is" if lines == 1 else f"all {lines} lines are"
    period = f"{value / 1000:g} s" if value >= 1000 else f"{value} ms"
    message = (
        f"{what} {value}, so the link delivers {'one packet' if lines == 1 else f'{lines} packets at once'} every "
        f"{period} and is shut in between"
    )
    code = "all-lines-equal"
    if size is None:
        intended = format_rate(round(mean_rate_bps(lines, value)) if rate is None else rate)
        cause = (
            "a line is the time of one delivery; every line has the same number, perhaps a duration, a delay or a size"
        )
        remedy = (
            f"spread the deliveries with `{_REMAKE} {intended}`; if the burst is meant, list the trace in paths.yaml "
            "with `intended: [all-lines-equal]`"
        )
    elif lines == 1:
        code = "packet-size"
        cause = f"{value} is {size}, but a line is a time in milliseconds"
        remedy = f"make the trace with `{_REMAKE} {format_rate(rate) if rate else 'RATE'}`"
    else:
        likely = format_rate(likely_rate(lines, value))
        meant = likely if rate is None else format_rate(rate)
        cause = (
            f"{value} is {size}, but a line is a time in milliseconds; {lines} such packets a second are {likely}, so "
            f"that a constant {meant} was probably meant"
        )
        remedy = f"make the trace with `{_REMAKE} {meant}`, or give the path rate='{meant}' instead of a trace"
    return Finding("error", code, message, cause, remedy)


def _too_fast(lines: int, period: int) -> Finding | None:
    mean = mean_rate_bps(lines, period)
    if mean <= MAX_MEAN_RATE:
        return None
    return Finding(
        "error",
        "too-fast",
        f"the mean rate is {mean / 1e12:.4g} Tbit/s ({lines} packets every {period} ms), above "
        f"{MAX_MEAN_RATE / 1e12:g} Tbit/s",
        cause=f"a line is one packet, and time does not move on; one second would be {mean / PACKET_BITS:.3g} packets",
        remedy=f"make the trace with `{_REMAKE} RATE`",
    )


def _gap(times: np.typing.NDArray[np.int64], trace: TraceSummary, rtt: int | None) -> Finding | None:
    gap = trace.largest_gap_ms
    limit = max(GAP_FLOOR_MS, GAP_RTTS * rtt / NS_PER_MS if rtt is not None else 0.0)
    if gap <= limit:
        return None
    count = int((np.diff(times, prepend=0) > limit).sum())
    limit_text = f"the {GAP_RTTS} round-trip times" if rtt is not None and limit > GAP_FLOOR_MS else "the 100 ms"
    return Finding(
        "warning",
        "long-gap",
        f"nothing is delivered for {gap} ms from {trace.largest_gap_at_ms} ms on"
        + (f" ({count} such gaps)" if count > 1 else "")
        + f", longer than {limit_text} that pass without remark",
        cause="an outage of a recorded or cellular trace; in others, times in the wrong unit or a missing part",
        remedy="look at it with `ccgym paths show`; delays will contain the gap, whatever the scheme does",
    )


def _burst(trace: TraceSummary) -> Finding | None:
    lines, burst = trace.lines, trace.largest_burst
    # In a trace of a few milliseconds or lines every instant holds much; that says nothing.
    if burst <= max(BURST_SHARE * lines, 2) or trace.period_ms < 20:
        return None
    return Finding(
        "warning",
        "burst",
        f"{burst} of {lines} lines ({burst / lines:.0%}) are at {trace.largest_burst_at_ms} ms",
        cause="seconds where milliseconds belong, or a coarse clock, put many packets on one instant",
        remedy="look at it with `ccgym paths show`; `ccgym paths convert` spreads times in seconds",
    )


def _rate(times: np.typing.NDArray[np.int64], rate: int | None, from_name: bool) -> Finding | None:
    if not rate:
        return None
    lines, period = int(times.size), int(times[-1])
    mean = mean_rate_bps(lines, period)
    ratio = mean / rate
    if abs(ratio - 1) <= RATE_TOLERANCE:
        return None
    source = "its name says" if from_name else "declared are"
    causes = (
        (8.0, "bytes were taken for bits"),
        (1 / 8, "bits were taken for bytes"),
        (1e3, "kilobits were taken for megabits"),
        (1e-3, "kilobits were taken for megabits, or times are in microseconds"),
        (2.0**20 / 1e6, "a megabit was counted as 2²⁰ bits"),
    )
    cause = next((text for factor, text in causes if abs(ratio / factor - 1) <= 0.02), "")
    if not cause and abs(mean / (1e3 * PACKET_BITS) - 1) <= 0.001:
        cause = "one line per millisecond is 12 Mbit/s, whatever rate was meant"
    if not cause and abs(lines - rate / PACKET_BITS) <= 1:
        cause = f"{lines} lines are one second at that rate, but the trace lasts {period} ms"
    # Evenly spaced lines are those of a constant rate; in whole milliseconds their distances differ by one.
    constant = lines > 1 and int(np.ptp(np.diff(times))) <= 1
    remake = f"make the trace with `{_REMAKE} {format_rate(rate)}`" if constant else "make it again with that mean rate"
    return Finding(
        "warning",
        "rate-mismatch",
        f"the mean rate is {mean / 1e6:.4g} Mbit/s (12 · {lines} lines / {period} ms), {source} {rate / 1e6:g} Mbit/s",
        cause=cause or "the file and what is said about it do not belong together, or the trace starts slowly",
        remedy=f"{remake}, or declare the rate that it has",
    )
