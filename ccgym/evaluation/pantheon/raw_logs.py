"""The raw logs of Pantheon's tunnel: one file per flow and end. ``merge_tunnel_logs.py`` makes tunnel logs from them.

Pantheon keeps them in its temporary directory and merges them after a run. If the merge failed, or a run between two
hosts had the wrong clock offset, only raw logs are left. Formats: StanfordSNR/pantheon @23e738c
``src/experiments/merge_tunnel_logs.py`` and ``test.py``; StanfordSNR/pantheon-tunnel.

=======================================================================  ==============================================
``SCHEME_datalink_runK_flowI_uidUUID.log.egress``                        packets that entered, at the sender's end
``SCHEME_datalink_runK_flowI_uidUUID.log.ingress``                       packets that left, at the receiver's end
first line                                                               ``# COMMAND egress: E``: epoch, ms
further lines                                                            ``T - UID - SIZE``: ms since then, number of
                                                                         the packet, bytes with the tunnel's 36
=======================================================================  ==============================================
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ccgym.errors import ResultsError, shown
from ccgym.evaluation.metrics import NEVER, IntArray, PacketLog
from ccgym.evaluation.pantheon import tunnel_log_file
from ccgym.evaluation.pantheon.logs import count, init_timestamp_ms, log_lines, log_time_ms, read_log, stated_epoch_ms

LINK_PREFIX_BYTES: Final = 4
"""Bytes that mahimahi adds to each packet, and the merge subtracts."""

_FILE: Final = re.compile(
    r"(?P<scheme>.+)_(?P<link>datalink|acklink)_run(?P<run>\d+)_flow(?P<flow>\d+)_uid[\w-]+\.log\.(?P<side>ingress|egress)"
)


@dataclass(frozen=True)
class RawFlow:
    """The two raw logs of a flow."""

    flow: int
    """Flow number, from 1."""
    egress: Path
    """Log of the packets that entered the path."""
    ingress: Path
    """Log of the packets that left the path."""


def raw_flows(directory: Path) -> tuple[dict[tuple[str, int, str], tuple[RawFlow, ...]], tuple[Path, ...]]:
    """Return the raw logs in a directory by scheme, run and link (``datalink`` or ``acklink``) if both ends exist, and
    the logs whose other end is missing, if there is no merged log instead."""
    ends: dict[tuple[str, int, str], dict[int, dict[str, Path]]] = {}
    for file in sorted(directory.iterdir()):
        if named := _FILE.fullmatch(file.name):
            key = (named["scheme"], int(named["run"]), named["link"])
            ends.setdefault(key, {}).setdefault(int(named["flow"]), {})[named["side"]] = file
    found = {
        key: tuple(RawFlow(flow, **sides) for flow, sides in sorted(flows.items()) if len(sides) == 2)
        for key, flows in ends.items()
    }
    alone = [
        file
        for key, flows in ends.items()
        if not (directory / tunnel_log_file(*key)).exists()
        for sides in flows.values()
        if len(sides) == 1
        for file in sides.values()
    ]
    return {key: flows for key, flows in found.items() if flows}, tuple(alone)


def merged(
    flows: Sequence[RawFlow],
    link_log: Path | None = None,
    *,
    ingress_offset_ms: float = 0.0,
    egress_offset_ms: float = 0.0,
) -> PacketLog:
    """Merge the raw logs of a run like both steps of Pantheon's merge: the tunnel log is equal to Pantheon's.

    Args:
        flows: The raw logs of each flow.
        link_log: mm-link's log of that direction, for its delivery opportunities.
        ingress_offset_ms: Clock offset of the receiver's end, ms.
        egress_offset_ms: Clock offset of the sender's end, ms.

    Raises:
        ResultsError: A log is damaged, or contains a packet that left but never entered, or left with another size.
    """
    ends = [(_read(one.egress, egress_offset_ms), _read(one.ingress, ingress_offset_ms), one.ingress) for one in flows]
    epoch_ms = min(end.epoch_ms for entered, left, _ in ends for end in (entered, left))
    link = None
    if link_log is not None:
        link = read_log(link_log)
        link_epoch_ms = init_timestamp_ms(link_log)
        epoch_ms = min(epoch_ms, link_epoch_ms)
    arrivals, departures = [], []
    for one, (entered, left, file) in zip(flows, ends, strict=True):
        at, gone = entered.times_ns(epoch_ms), left.times_ns(epoch_ms)
        if not np.isin(left.uid, entered.uid).all():
            raise _odd(file, "packets left that never entered")
        order = np.argsort(entered.uid, kind="stable")
        place = order[np.searchsorted(entered.uid, left.uid, sorter=order)]
        if (entered.size[place] != left.size).any():
            raise _odd(file, "packets left with another size than they entered with")
        arrivals.append((at, entered.size, np.full(at.size, one.flow)))
        departures.append((gone, left.size, np.full(gone.size, one.flow), gone - at[place]))
    arrival_ns, arrival_bytes, arrival_flow = _by_time(arrivals)
    departure_ns, departure_bytes, departure_flow, delay_ns = _by_time(departures)
    log = PacketLog(arrival_ns, arrival_bytes, arrival_flow, departure_ns, departure_bytes, departure_flow, delay_ns)
    if link is None:
        return log
    return replace(
        log,
        opportunity_ns=link.opportunity_ns + round((link_epoch_ms - epoch_ms) * 1e6),
        opportunity_bytes=link.opportunity_bytes - LINK_PREFIX_BYTES,
    )


def _odd(file: Path, found: str) -> ResultsError:
    return ResultsError(
        "log-malformed",
        found,
        where=str(file),
        expected="the ingress and egress log of the same tunnel",
        hint="leave this run out: Pantheon's own merge fails here, too",
    )


def _by_time(parts: Sequence[tuple[IntArray, ...]]) -> list[IntArray]:
    """Return the columns of several flows as one, ordered by the first column; equal times in order of the flows."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]


@dataclass(frozen=True)
class _End:
    """A raw log."""

    epoch_ms: float
    ms: npt.NDArray[np.float64]
    uid: npt.NDArray[np.uint64]
    size: IntArray

    def times_ns(self, epoch_ms: float) -> IntArray:
        """Return times since another epoch, nanoseconds, rounded to microseconds as the merge does."""
        return np.rint((self.ms + (self.epoch_ms - epoch_ms)) * 1e3).astype(np.int64) * 1000


def _read(file: Path, offset_ms: float) -> _End:
    times: list[float] = []
    uids: list[int] = []
    sizes: list[int] = []
    begun_ms, number = 0.0, 0
    try:
        with log_lines(file) as lines:
            for number, line in enumerate(lines, start=1):
                if number == 1:
                    stated = stated_epoch_ms(line.rsplit(":", 1)[-1])
                    if stated is None:
                        raise ValueError("no epoch")
                    begun_ms = stated + offset_ms
                    continue
                at, uid, size = line.split("-")
                times.append(log_time_ms(at))
                uids.append(int(uid))
                sizes.append(count(size))
            packets = np.array(uids, dtype=np.uint64)
    except (ValueError, OverflowError):
        raise ResultsError(
            "log-malformed",
            f"{shown(line.rstrip())} is not a line of a raw tunnel log",
            where=f"{file}:{number}",
            expected="'# COMMAND egress: EPOCH_MS' in the first line, 'T - UID - SIZE' in the others",
            hint="an incomplete last line means that the tunnel was killed: delete that line",
        ) from None
    if not number:
        raise ResultsError(
            "log-malformed", "the log is empty", where=str(file), expected="the log of a tunnel that ran"
        )
    return _End(begun_ms, np.array(times), packets, np.array(sizes, dtype=np.int64))


def raw_log_texts(
    packets: Mapping[str, npt.NDArray[Any]], epochs_ms: tuple[float, float], flow: int, command: str
) -> tuple[str, str]:
    """Return the egress and ingress log of a flow.

    Args:
        packets: The native core's arrays ``entered_ns``, ``left_ns``, ``size`` and ``flow`` (from 0) of a direction.
        epochs_ms: Start of the run, ms since the epoch: by the clock where packets enter, and where they leave.
        flow: Number of the flow, from 1.
        command: Command for the first line.
    """
    own = np.asarray(packets["flow"]) == flow - 1
    entered, left, size = (np.asarray(packets[name])[own] for name in ("entered_ns", "left_ns", "size"))
    texts = []
    ends = (("egress", entered, np.ones(entered.size, bool)), ("ingress", left, left != NEVER))
    for (side, times, there), epoch_ms in zip(ends, epochs_ms, strict=True):
        uids = np.flatnonzero(there)
        uids = uids[np.argsort(times[uids], kind="stable")]
        lines = [f"{_ms(int(times[uid]))} - {uid} - {int(size[uid])}" for uid in uids]
        texts.append("\n".join([f"# {command} {side}: {epoch_ms:.3f}", *lines]) + "\n")
    return texts[0], texts[1]


def _ms(ns: int) -> str:
    """Return milliseconds with exactly three decimals."""
    micros = (ns + 500) // 1000
    return f"{micros // 1000}.{micros % 1000:03}"


def raw_log_file(scheme: str, run: int, flow: int, digest: str, side: str, link: str = "datalink") -> str:
    """Return the name of a raw log; its UUID is computed from the run's digest: the same run has the same name."""
    uid = uuid.uuid5(uuid.NAMESPACE_OID, f"{digest} {link} {flow}")
    return f"{scheme}_{link}_run{run}_flow{flow}_uid{uid}.log.{side}"
