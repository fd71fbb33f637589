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

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ccgym.errors import ResultsError, shown
from ccgym.evaluation.metrics import IntArray, PacketLog


@dataclass
class _Columns:
    """One growing column per field of the log."""

    arrival_ms: list[float] = field(default_factory=list)
    arrival_bytes: list[int] = field(default_factory=list)
    arrival_flow: list[int] = field(default_factory=list)
    departure_ms: list[float] = field(default_factory=list)
    departure_bytes: list[int] = field(default_factory=list)
    departure_flow: list[int] = field(default_factory=list)
    delay_ms: list[float] = field(default_factory=list)
    opportunity_ms: list[float] = field(default_factory=list)
    opportunity_bytes: list[int] = field(default_factory=list)

    def add(self, words: list[str]) -> None:
        """Take one line; raises ``ValueError`` or ``IndexError`` where it has no known form."""
        kind = words[1]
        if kind == "+":
            self.arrival_ms.append(float(words[0]))
            self.arrival_bytes.append(int(words[2]))
            self.arrival_flow.append(int(words[3]) if len(words) > 3 else 0)
        elif kind == "-":
            delay = float(words[3])
            self.departure_ms.append(float(words[0]))
            self.departure_bytes.append(int(words[2]))
            self.departure_flow.append(int(words[4]) if len(words) > 4 else 0)
            self.delay_ms.append(delay)
        elif kind == "#":
            self.opportunity_ms.append(float(words[0]))
            self.opportunity_bytes.append(int(words[2]))
        elif kind != "d":
            raise ValueError(f"unknown event {kind!r}")

    def packet_log(self) -> PacketLog:
        """The columns as arrays."""
        return PacketLog(
            arrival_ns=_nanoseconds(self.arrival_ms),
            arrival_bytes=np.array(self.arrival_bytes, dtype=np.int64),
            arrival_flow=np.array(self.arrival_flow, dtype=np.int64),
            departure_ns=_nanoseconds(self.departure_ms),
            departure_bytes=np.array(self.departure_bytes, dtype=np.int64),
            departure_flow=np.array(self.departure_flow, dtype=np.int64),
            delay_ns=_nanoseconds(self.delay_ms),
            opportunity_ns=_nanoseconds(self.opportunity_ms),
            opportunity_bytes=np.array(self.opportunity_bytes, dtype=np.int64),
        )


def _nanoseconds(milliseconds: list[float]) -> IntArray:
    return np.rint(np.array(milliseconds, dtype=np.float64) * 1e6).astype(np.int64)


def parse_log(lines: Iterable[str], name: str) -> PacketLog:
    """Parse a merged tunnel log or an mm-link log.

    Args:
        lines: the lines of the log.
        name: what to call it in errors.
    """
    columns = _Columns()
    for number, line in enumerate(lines, start=1):
        if line.startswith("#"):
            continue
        words = line.split()
        try:
            columns.add(words)
        except (ValueError, IndexError):
            raise ResultsError(
                f"{shown(line.rstrip())} is no line of a tunnel log",
                where=f"{name}:{number}",
                expected="'T # BYTES', 'T + BYTES [FLOW]' or 'T - BYTES DELAY_MS [FLOW]', T in milliseconds",
                hint="a cut-off last line means that the run was interrupted: run it again",
            ) from None
    return columns.packet_log()


def read_log(path: Path) -> PacketLog:
    """Read a merged tunnel log (``cubic_datalink_run1.log``) or an mm-link log."""
    with path.open(encoding="ascii", errors="replace") as file:
        return parse_log(file, str(path))
