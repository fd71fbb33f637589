"""Conversion of other formats to delivery traces.

Every format is a text file of columns separated by spaces, commas or semicolons. Empty lines, comments (``#``) and one
heading line are skipped, because other tools write them; the resulting traces have none.

================  ========================================  ============================================================
format            content of a line                         source
================  ========================================  ============================================================
``time-bytes``    time, bytes delivered since the line      packet captures, tunnel logs; also the two-column "traces"
                  before                                    that mahimahi rejects with "Invalid integer"
``time-rate``     time, Mbit/s from then on                 speed tests, simulators, ccperf's rate series
``kbit-per-ms``   kilobits of one millisecond               mahimahi's ``mm-rate-to-events``
``times``         a time, in seconds or milliseconds        traces with decimals, blanks or Windows line endings
================  ========================================  ============================================================
"""

from __future__ import annotations

import math
import re
from typing import Final, Literal, get_args

import numpy as np

from ccgym.errors import ConfigError, TraceFormatError, did_you_mean, shown
from ccgym.tracetools.generate import MAX_LINES, Times, stepped
from ccgym.units import NS_PER_S, PACKET_BITS, PACKET_BYTES

Format = Literal["time-bytes", "time-rate", "kbit-per-ms", "times"]
TimeUnit = Literal["auto", "s", "ms"]
"""Unit of the time column; ``auto``: the numbers decide."""

FORMATS: Final[tuple[str, ...]] = get_args(Format)

_COLUMNS: Final = {"time-bytes": 2, "time-rate": 2, "kbit-per-ms": 1, "times": 1}
_MAX_MS: Final = 10**10


def convert(text: str, form: str, *, time_unit: str = "auto", name: str = "input") -> Times:
    """Convert text to the lines of a delivery trace.

    Times are shifted so that the first time is 0, except in the format ``times``.

    Args:
        text: Content of the file.
        form: One of :data:`FORMATS`.
        time_unit: ``"s"``, ``"ms"``, or ``"auto"``: seconds if a time has decimals or the difference of last and first
            time is below 1000, else milliseconds.
        name: Name of the file, for messages.

    Returns:
        Milliseconds, non-decreasing, the last above 0.

    Raises:
        ConfigError: The format or unit is unknown.
        TraceFormatError: A line is invalid, or there is too little data; ``where`` is ``name:line``.
    """
    if form not in FORMATS:
        raise ConfigError(
            "unknown-choice",
            f"format {shown(form)}",
            expected=", ".join(FORMATS),
            hint=did_you_mean(form, FORMATS),
            where=name,
        )
    if time_unit not in get_args(TimeUnit):
        raise ConfigError("unknown-choice", f"time unit {shown(time_unit)}", expected="auto, s or ms", where=name)
    rows, decimals = _rows(text, _COLUMNS[form], name)
    if form == "kbit-per-ms":
        return _from_work(np.array([row[0] for row in rows]) * 1e3, name)
    in_seconds = time_unit == "s" or (time_unit == "auto" and (decimals or rows[-1][0] - rows[0][0] < 1000))
    times = [row[0] * (1e3 if in_seconds else 1.0) for row in rows]
    if times[-1] - (0 if form == "times" else times[0]) > _MAX_MS:
        raise TraceFormatError(
            "trace-too-long",
            f"times that span {times[-1]:g} ms",
            expected=f"up to {_MAX_MS} ms",
            hint="check the time unit; times start at 0 at the start of the trace",
            where=name,
        )
    if form == "times":
        return _checked(np.floor(np.array(times) + 1e-6), name)
    start = times[0]
    if form == "time-rate":
        return _from_rates([(time - start, row[1]) for time, row in zip(times, rows, strict=True)], name)
    return _from_bytes([(time - start, row[1]) for time, row in zip(times, rows, strict=True)], name)


def _rows(text: str, columns: int, name: str) -> tuple[list[tuple[float, ...]], bool]:
    """Return the numbers, and whether a time was written with decimals."""
    rows: list[tuple[float, ...]] = []
    decimals = False
    last = -math.inf
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        fields = [field for field in re.split(r"[\s,;]+", line) if field]
        try:
            values = tuple(float(field) for field in fields[:columns])
        except ValueError:
            if not rows and any(character.isalpha() for character in line):
                continue  # a heading
            values = ()
        if len(values) < columns or not all(0 <= value < 1e18 for value in values):
            raise TraceFormatError(
                "trace-malformed",
                shown(raw),
                expected=f"{columns} number{'s' if columns > 1 else ''} of zero or more",
                hint="see `ccgym paths convert --help` for the formats",
                where=f"{name}:{number}",
            )
        if columns > 1 or len(fields) == 1:
            decimals = decimals or "." in fields[0]
        if columns > 1 and values[0] < last:
            raise TraceFormatError(
                "trace-unsorted",
                f"{values[0]:g} after {last:g}",
                expected="a time that is not before the time of the previous line",
                hint="sort the file by time",
                where=f"{name}:{number}",
            )
        last = values[0]
        rows.append(values)
    if not rows:
        raise TraceFormatError("trace-empty", "no numbers", expected=f"lines of {columns} numbers", where=name)
    return rows, decimals


def _from_bytes(rows: list[tuple[float, float]], name: str) -> Times:
    """Return one opportunity for each 1500 bytes, at the time when their last byte was delivered."""
    total = np.cumsum([size for _, size in rows])
    lines = _affordable(total[-1] / PACKET_BYTES, name)
    reached = np.searchsorted(total, (np.arange(lines) + 1.0) * PACKET_BYTES - 1e-6, side="left")
    times = np.array([time for time, _ in rows])[np.minimum(reached, len(rows) - 1)]
    return _checked(np.floor(times + 1e-6), name)


def _from_rates(rows: list[tuple[float, float]], name: str) -> Times:
    """Convert rates; the last rate is as long as the rate before it, or one second if there is none."""
    steps: list[tuple[int, int]] = []
    for time, rate in rows:
        start = round(time * 1e6)
        if rate > 1e9:
            raise TraceFormatError("trace-too-long", f"{rate:g} Mbit/s", expected="up to 1e9 Mbit/s", where=name)
        if steps and steps[-1][0] == start:
            steps.pop()
        steps.append((start, round(rate * 1e6)))
    hold = steps[-1][0] - steps[-2][0] if len(steps) > 1 else NS_PER_S
    try:
        return stepped(steps, steps[-1][0] + hold)
    except ConfigError as error:
        raise TraceFormatError(error.code, error.found, expected=error.expected, hint=error.hint, where=name) from None


def _from_work(bits: np.typing.NDArray[np.float64], name: str) -> Times:
    """Convert as ``mm-rate-to-events``: return the millisecond of each 12,000th bit; the first line is 0 ms."""
    total = np.cumsum(bits)
    lines = _affordable(total[-1] / PACKET_BITS, name)
    reached = np.searchsorted(total, (np.arange(lines) + 1.0) * PACKET_BITS - 1e-6, side="left")
    return _checked(np.minimum(reached, len(bits) - 1).astype(np.float64), name)


def _affordable(lines: float, name: str) -> int:
    count = math.floor(lines + 1e-9)
    if not 1 <= count <= MAX_LINES:
        raise TraceFormatError(
            "trace-too-long",
            f"{count} packets of 1500 bytes in total",
            expected=f"1 to {MAX_LINES} packets",
            where=name,
        )
    return count


def _checked(times: np.typing.NDArray[np.float64], name: str) -> Times:
    if (np.diff(times) < 0).any():
        raise TraceFormatError(
            "trace-unsorted", "decreasing times", expected="times in order", hint="sort the file", where=name
        )
    if times[-1] < 1:
        raise TraceFormatError(
            "trace-empty",
            "a last opportunity at 0 ms",
            expected="an opportunity after 0 ms, because the last line is the period",
            hint="check the time unit",
            where=name,
        )
    return times.astype(np.uint64)
