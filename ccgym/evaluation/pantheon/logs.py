"""Read Pantheon's merged tunnel logs and mahimahi's link logs.

So output of Pantheon can be analyzed like runs of ccgym. Formats (StanfordSNR/pantheon @23e738c
``src/experiments/merge_tunnel_logs.py``; ravinet/mahimahi @ae477d4 ``src/frontend/link_queue.cc``):

==========================  ===========================================================================================
``# init timestamp: E``     epoch, ms (merged logs: first line; mm-link logs: one of five or six header lines)
``T # N``                   delivery opportunity of N bytes, used or not
``T + N [F]``               N bytes of flow F entered
``T - N D [F]``             N bytes of flow F left, D ms after they entered
``T d P B``                 P packets of B bytes dropped (mahimahi after 2018 only); not part of any metric
==========================  ===========================================================================================

T and D are milliseconds with at most three decimals. Without F, as in an mm-link log that is read directly (``-f 0``
runs), the flow is 0. Sizes are then IP length + 4, and D is only the queueing delay at that link.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

import numpy as np
import numpy.typing as npt

from ccgym.errors import ResultsError, shown
from ccgym.evaluation.metrics import IntArray, PacketLog
from ccgym.files import UnreadableError, open_regular

MAX_LOG_MS: Final = 24 * 3600e3
"""Maximum time and delay in a log, ms."""
_MAX_EPOCH_MS: Final = 1e14
"""Upper bound of the start time of a log, ms since the epoch."""
_MAX_INTEGER: Final = 2**31
"""Maximum packet size, and maximum flow number."""


def parse_log(lines: Iterable[str], name: str) -> PacketLog:
    """Parse a merged tunnel log or an mm-link log.

    Args:
        lines: the lines of the log.
        name: name of the log in errors.
    """
    arrivals: list[tuple[float, int, int]] = []
    departures: list[tuple[float, int, int, float]] = []
    opportunities: list[tuple[float, int]] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            continue
        words = line.split()
        try:
            time_ms, kind, size = log_time_ms(words[0]), words[1], count(words[2])
            if kind == "+":
                arrivals.append((time_ms, size, count(words[3]) if len(words) > 3 else 0))
            elif kind == "-":
                delay_ms = float(words[3])
                if not abs(delay_ms) <= MAX_LOG_MS:  # between two clocks, a delay may be negative
                    raise ValueError("no delay")
                departures.append((time_ms, size, count(words[4]) if len(words) > 4 else 0, delay_ms))
            elif kind == "#":
                opportunities.append((time_ms, size))
            elif kind != "d":
                raise ValueError(f"unknown event {kind!r}")
        except (ValueError, IndexError):
            raise ResultsError(
                "log-malformed",
                f"{shown(line.rstrip())} is not a line of a tunnel log",
                where=f"{name}:{number}",
                expected="'T # BYTES', 'T + BYTES [FLOW]' or 'T - BYTES DELAY_MS [FLOW]', T in ms, up to a day",
                hint="an incomplete last line means that the run was interrupted: run it again",
            ) from None
    arrived, departed, offered = _columns(arrivals, 3), _columns(departures, 4), _columns(opportunities, 2)
    return PacketLog(
        arrival_ns=_nanoseconds(arrived[0]),
        arrival_bytes=arrived[1].astype(np.int64),
        arrival_flow=arrived[2].astype(np.int64),
        departure_ns=_nanoseconds(departed[0]),
        departure_bytes=departed[1].astype(np.int64),
        departure_flow=departed[2].astype(np.int64),
        delay_ns=_nanoseconds(departed[3]),
        opportunity_ns=_nanoseconds(offered[0]),
        opportunity_bytes=offered[1].astype(np.int64),
    )


def log_time_ms(word: str) -> float:
    """Return a time of a log; raise ValueError if it is outside of the range for a run."""
    time_ms = float(word)
    if not 0 <= time_ms <= MAX_LOG_MS:
        raise ValueError("no time of a run")
    return time_ms


def count(word: str) -> int:
    """Return a packet size or flow number; raise ValueError if it is neither."""
    number = int(word)
    if not 0 <= number < _MAX_INTEGER:
        raise ValueError("out of range")
    return number


@contextmanager
def log_lines(path: Path) -> Iterator[TextIO]:
    """Open a log to read its lines; raise :class:`ResultsError` if it cannot be read."""
    try:
        file = io.TextIOWrapper(open_regular(path), encoding="ascii", errors="replace")
    except (OSError, UnreadableError) as error:
        reason = error if isinstance(error, UnreadableError) else error.strerror
        raise ResultsError(
            "file-unreadable", f"the log cannot be read: {reason}", where=str(path), expected="a file of lines"
        ) from None
    with file:
        yield file


def _columns(rows: Sequence[tuple[float, ...]], count: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.array(rows, dtype=np.float64).reshape(-1, count).T)


def _nanoseconds(milliseconds: npt.NDArray[np.float64]) -> IntArray:
    return np.rint(milliseconds * 1e6).astype(np.int64)


def read_log(path: Path) -> PacketLog:
    """Read a merged tunnel log (``cubic_datalink_run1.log``) or an mm-link log."""
    with log_lines(path) as file:
        return parse_log(file, str(path))


def init_timestamp_ms(path: Path) -> float:
    """Return the start time in the head of a log, ms since the epoch; raise :class:`ResultsError` if it is missing."""
    stated = None
    with log_lines(path) as file:
        for line in file:
            if line.startswith("# init timestamp"):
                stated = stated_epoch_ms(line.split(":")[1]) if ":" in line else None
                break
            if not line.startswith("#"):
                break
    if stated is None:
        raise ResultsError(
            "log-malformed",
            "the log has no start time",
            where=str(path),
            expected="a line '# init timestamp: E'",
        )
    return stated


def stated_epoch_ms(word: str) -> float | None:
    """Return the start time of a log, ms since the epoch; None if the text is no such time."""
    try:
        found = float(word)
    except ValueError:
        return None
    return found if math.isfinite(found) and abs(found) < _MAX_EPOCH_MS else None


def last_time_s(path: Path) -> float:
    """Return the time in the last line of a log, seconds since its start; 0 if that line is damaged."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, path.stat().st_size - 200))
            return log_time_ms(file.read(200).splitlines()[-1].split()[0].decode("ascii", "replace")) / 1e3
    except (OSError, IndexError, ValueError):  # an unreadable log raises an error later, when it is read
        return 0.0
