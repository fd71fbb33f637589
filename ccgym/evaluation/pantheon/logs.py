"""Reading Pantheon's merged tunnel logs and mahimahi's link logs.

Real Pantheon output can so be analyzed like our own runs. Formats (StanfordSNR/pantheon @23e738c
``src/experiments/merge_tunnel_logs.py``; ravinet/mahimahi @ae477d4 ``src/frontend/link_queue.cc``):

==========================  ===========================================================================================
``# init timestamp: E``     epoch, ms (merged logs: first line; mm-link logs: one of five or six header lines)
``T # N``                   delivery opportunity of N bytes, used or not
``T + N [F]``               N bytes of flow F entered
``T - N D [F]``             N bytes of flow F left, D ms after they entered
``T d P B``                 P packets of B bytes dropped (mahimahi after 2018 only); not part of any metric
==========================  ===========================================================================================

T and D are milliseconds, up to three decimals. Without F, as in an mm-link log read directly (``-f 0`` runs), the flow
is 0; sizes there are IP length + 4, and D is queueing at that link only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ccgym.errors import ResultsError, shown
from ccgym.evaluation.metrics import IntArray, PacketLog


def parse_log(lines: Iterable[str], name: str) -> PacketLog:
    """Parse a merged tunnel log or an mm-link log.

    Args:
        lines: the lines of the log.
        name: what to call it in errors.
    """
    arrivals: list[tuple[float, int, int]] = []
    departures: list[tuple[float, int, int, float]] = []
    opportunities: list[tuple[float, int]] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            continue
        words = line.split()
        try:
            time_ms, kind, size = float(words[0]), words[1], int(words[2])
            if kind == "+":
                arrivals.append((time_ms, size, int(words[3]) if len(words) > 3 else 0))
            elif kind == "-":
                departures.append((time_ms, size, int(words[4]) if len(words) > 4 else 0, float(words[3])))
            elif kind == "#":
                opportunities.append((time_ms, size))
            elif kind != "d":
                raise ValueError(f"unknown event {kind!r}")
        except (ValueError, IndexError):
            raise ResultsError(
                "log-malformed",
                f"{shown(line.rstrip())} is not a line of a tunnel log",
                where=f"{name}:{number}",
                expected="'T # BYTES', 'T + BYTES [FLOW]' or 'T - BYTES DELAY_MS [FLOW]', T in milliseconds",
                hint="a cut-off last line means that the run was interrupted: run it again",
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


def _columns(rows: Sequence[tuple[float, ...]], count: int) -> npt.NDArray[np.float64]:
    return np.asarray(np.array(rows, dtype=np.float64).reshape(-1, count).T)


def _nanoseconds(milliseconds: npt.NDArray[np.float64]) -> IntArray:
    return np.rint(milliseconds * 1e6).astype(np.int64)


def read_log(path: Path) -> PacketLog:
    """Read a merged tunnel log (``cubic_datalink_run1.log``) or an mm-link log."""
    with path.open(encoding="ascii", errors="replace") as file:
        return parse_log(file, str(path))


def init_timestamp_ms(path: Path) -> float:
    """The beginning that a log states in its head, ms since the epoch; :class:`ResultsError` where it states none."""
    with path.open(encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("# init timestamp"):
                return float(line.split(":")[1])
            if not line.startswith("#"):
                break
    raise ResultsError(
        "log-malformed", "the log does not say when it began", where=str(path), expected="a line '# init timestamp: E'"
    )


def last_time_s(path: Path) -> float:
    """The time in the last line of a log, seconds since its beginning; 0 where that line is damaged."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 200))
        lines = file.read().splitlines()
    try:
        return float(lines[-1].split()[0]) / 1e3
    except (IndexError, ValueError):
        return 0.0
