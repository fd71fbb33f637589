"""Checks of every trace before it is used.

A wrong trace causes no error in mahimahi, which plays all integers. An example is a student report: its
"50 Mbit/s, 10 ms" trace contained 4,166 lines of ``1500``, the packet size. So the link delivered
4,166 packets at once and then nothing for 1.5 s. The figures of the report (0.6 Mbit/s, 1.5 s of delay) described the
trace, not the schemes. :func:`check_trace` finds such mistakes and explains them.
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
"""Numbers that are probably a packet size, not milliseconds."""
GAP_FLOOR_MS: Final = 100
"""Gaps up to this duration are never reported."""
GAP_RTTS: Final = 5
"""Gaps up to this number of RTTs are never reported."""
BURST_SHARE: Final = 0.05
"""Fraction of lines at one time above which a burst is reported."""
MAX_MEAN_RATE: Final = 10**12
"""Max mean rate, bits per second; higher rates are an error."""
RATE_TOLERANCE: Final = 0.05
"""Max relative difference between mean rate and declared rate; larger differences are reported."""

_RATE_IN_NAME: Final = re.compile(r"(?<![0-9.])([0-9]+(?:\.[0-9]+)?)[ _-]?([kmg])(?:bps|bit)", re.IGNORECASE)
_REMAKE: Final = "ccgym paths make constant --rate"


@dataclass(frozen=True)
class Finding:
    """One mistake or unusual property of a trace or a path."""

    severity: Severity
    """``"error"``: results would be meaningless; ``"warning"``: check whether it is intended."""
    code: str
    """Stable name of the rule, such as ``"all-lines-equal"``."""
    message: str
    """The finding in one sentence."""
    cause: str
    """The probable cause."""
    remedy: str
    """The recommended action."""
    subject: str = ""
    """Name of the trace or path."""

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
    ``all-lines-equal`` error    all lines have the same time, so the link delivers all packets of a period at once
                                 (except lines of ``1``, mahimahi's usual notation for a rate, and a single line)
    ``packet-size``     error    a single line that is a packet size
    ``too-fast``        error    the mean rate is above 1 Tbit/s: more packets than a run supports
    ``long-gap``        warning  nothing is delivered for more than 100 ms and more than 5 declared RTTs
    ``burst``           warning  more than 5 % of the lines have the same time
    ``rate-mismatch``   warning  the mean rate differs by more than 5 % from the declared rate or the rate in the name
    =================== ======== ==================================================================================

    Args:
        trace: The trace, native or as milliseconds.
        declared_rate: Expected rate, with a unit. Default: the rate in ``name``, if there is one, as in
            ``50mbps_10ms.trace``.
        declared_rtt: RTT of the path: text with a unit, or seconds.
        name: Name of the trace, for messages.

    Returns:
        All findings, errors first; empty if nothing is wrong.
    """
    rate_bps = None if declared_rate is None else parse_rate(declared_rate)
    rtt_ns = None if declared_rtt is None else parse_time(declared_rtt)
    return find_mistakes(trace, rate_bps, rtt_ns, name=name)


def find_mistakes(trace: TraceLike, rate: int | None, rtt: int | None, *, name: str = "") -> list[Finding]:
    """Return the findings of :func:`check_trace`; ``rate`` is in bits per second, ``rtt`` in nanoseconds."""
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
    """Return the rate in a file name, in bits per second: ``"50mbps_10ms.trace"`` → 50,000,000."""
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
        f"{period} and nothing in between"
    )
    code = "all-lines-equal"
    if size is None:
        intended = format_rate(round(mean_rate_bps(lines, value)) if rate is None else rate)
        cause = (
            "a line is the time of one delivery; all lines have the same number, perhaps a duration, a delay or a size"
        )
        remedy = (
            f"spread the deliveries with `{_REMAKE} {intended}`; if you want the burst, list the trace in paths.yaml "
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
            f"{value} is {size}, but a line is a time in milliseconds; {lines} such packets per second are {likely}, "
            f"so the intended rate is probably a constant {meant}"
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
        cause=f"a line is one packet, and the times hardly increase; one second has {mean / PACKET_BITS:.3g} packets",
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
        + f", longer than {limit_text} that are allowed",
        cause="an outage of a recorded or cellular trace; in others, times in the wrong unit or a missing part",
        remedy="look at the trace with `ccgym paths show`; the delays of all schemes will contain the gap",
    )


def _burst(trace: TraceSummary) -> Finding | None:
    lines, burst = trace.lines, trace.largest_burst
    # In a trace of a few milliseconds or lines, every time has a large fraction of the lines.
    if burst <= max(BURST_SHARE * lines, 2) or trace.period_ms < 20:
        return None
    return Finding(
        "warning",
        "burst",
        f"{burst} of {lines} lines ({burst / lines:.0%}) are at {trace.largest_burst_at_ms} ms",
        cause="times in seconds in place of milliseconds, or a coarse clock, give many packets the same time",
        remedy="look at the trace with `ccgym paths show`; convert times in seconds with `ccgym paths convert`",
    )


def _rate(times: np.typing.NDArray[np.int64], rate: int | None, from_name: bool) -> Finding | None:
    if not rate:
        return None
    lines, period = int(times.size), int(times[-1])
    mean = mean_rate_bps(lines, period)
    ratio = mean / rate
    if abs(ratio - 1) <= RATE_TOLERANCE:
        return None
    source = "but its name contains" if from_name else "but the declared rate is"
    causes = (
        (8.0, "bytes were read as bits"),
        (1 / 8, "bits were read as bytes"),
        (1e3, "kilobits were read as megabits"),
        (1e-3, "kilobits were read as megabits, or times are in microseconds"),
        (2.0**20 / 1e6, "a megabit was counted as 2²⁰ bits"),
    )
    cause = next((text for factor, text in causes if abs(ratio / factor - 1) <= 0.02), "")
    if not cause and abs(mean / (1e3 * PACKET_BITS) - 1) <= 0.001:
        cause = "one line per millisecond is 12 Mbit/s, independent of the intended rate"
    if not cause and abs(lines - rate / PACKET_BITS) <= 1:
        cause = f"{lines} lines are one second at that rate, but the trace lasts {period} ms"
    # Lines of a constant rate have equal distances, which differ by at most one in whole milliseconds.
    constant = lines > 1 and int(np.ptp(np.diff(times))) <= 1
    remake = f"make the trace with `{_REMAKE} {format_rate(rate)}`" if constant else "make it again with this mean rate"
    return Finding(
        "warning",
        "rate-mismatch",
        f"the mean rate is {mean / 1e6:.4g} Mbit/s (12 · {lines} lines / {period} ms), {source} {rate / 1e6:g} Mbit/s",
        cause=cause or "the rate describes another file, or the trace starts slowly",
        remedy=f"{remake}, or declare the real rate of the trace",
    )
