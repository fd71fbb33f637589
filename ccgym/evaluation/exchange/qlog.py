"""Write a flow as a qlog: a sequence of JSON texts (``.sqlog``) with events of QUIC's congestion control.

Schema: draft-ietf-quic-qlog-main-schema and -quic-events, version 0.3, which qvis reads. For all kinds of flows, each
packet is a QUIC packet of the 1-RTT space with its own number; retransmissions are new packets.

At the sender: ``transport:packet_sent`` when a packet enters the path; ``recovery:metrics_updated`` from the recorded
series (smoothed RTT in ms, window and flight in bytes, pacing rate in bit/s); ``recovery:packet_lost`` for a packet
that never left the path. Logs do not contain the time when the sender detected the loss: the event has the time when
the third packet after it left the path, RFC 9002's time of loss, which is before the sender can detect it. At the
receiver: ``transport:packet_received`` when a packet left the path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from ccgym import _core
from ccgym.evaluation.exchange.recorded import End, Recorded

VERSION: Final = "0.3"
RECORD_SEPARATOR: Final = "\x1e"
"""First character of each text (RFC 7464)."""
PACKET_THRESHOLD: Final = 3
"""Number of later packets after which a packet is lost (RFC 9002, 6.1.1)."""

_METRICS: Final = {
    "smoothed_rtt": ("srtt_ms", 1.0),
    "congestion_window": ("cwnd_bytes", 1.0),
    "bytes_in_flight": ("in_flight_bytes", 1.0),
    "pacing_rate": ("pacing_rate_mbps", 1e6),
}
"""qlog's metrics: the column of ccgym, and the factor for its values."""

_Event = tuple[int, str, dict[str, Any]]
"""Time in nanoseconds, name, data."""


def qlog_bytes(run: Recorded, *, flow: int = 1, at: End = "sender") -> bytes:
    """Return the content of a ``.sqlog`` file.

    Args:
        run: The run.
        flow: Number of the flow, from 1.
        at: The end whose events are written.

    Raises:
        ConfigError: There is no such flow.
    """
    run.check_flow(flow)
    scheme = run.schemes[flow - 1]
    head = {
        "qlog_version": VERSION,
        "qlog_format": "JSON-SEQ",
        "title": f"{run.name}, flow {flow}: {scheme}",
        "trace": {
            "vantage_point": {"name": f"ccgym {_core.__version__}", "type": "client" if at == "sender" else "server"},
            "common_fields": {
                "ODCID": f"{flow:016x}",
                "time_format": "relative",
                "reference_time": run.started_epoch_s * 1e3,
            },
        },
    }
    events = sorted(_sender(run, flow) if at == "sender" else _receiver(run, flow), key=lambda event: event[0])
    texts = [head, *({"time": at_ns / 1e6, "name": name, "data": data} for at_ns, name, data in events)]
    return "".join(f"{RECORD_SEPARATOR}{json.dumps(one, separators=(',', ':'))}\n" for one in texts).encode()


def _sender(run: Recorded, flow: int) -> Iterator[_Event]:
    own = run.data.flow == flow
    entered, left, sizes = run.data.entered_ns[own], run.data.left_ns[own], run.data.size[own]
    arrived = run.data.arrived[own]
    for number, (at, size) in enumerate(zip(entered.tolist(), sizes.tolist(), strict=True)):
        yield at, "transport:packet_sent", _packet(number, size)
    leaving = np.flatnonzero(arrived)
    for number in np.flatnonzero(~arrived).tolist():
        later = leaving[np.searchsorted(leaving, number) :]
        if later.size >= PACKET_THRESHOLD:
            # Packets may be reordered: count the third packet that left, not the third that entered.
            known = int(np.partition(left[later[: 4 * PACKET_THRESHOLD]], PACKET_THRESHOLD - 1)[PACKET_THRESHOLD - 1])
            yield known, "recovery:packet_lost", {**_header(number), "trigger": "reordering_threshold"}
    yield from _metrics(run, flow)


def _receiver(run: Recorded, flow: int) -> Iterator[_Event]:
    own = run.data.flow == flow
    left, sizes = run.data.left_ns[own], run.data.size[own]
    for number in np.flatnonzero(run.data.arrived[own]).tolist():
        yield int(left[number]), "transport:packet_received", _packet(number, int(sizes[number]))


def _metrics(run: Recorded, flow: int) -> Iterator[_Event]:
    """Yield the values that changed since the previous sample."""
    if run.series is None:
        return
    own = np.flatnonzero(np.asarray(run.series["flow"]) == flow)
    columns = {
        name: np.asarray(run.series[column], dtype=np.float64)[own] * scale
        for name, (column, scale) in _METRICS.items()
    }
    before: dict[str, float] = {}
    for place, at in enumerate(np.asarray(run.series["time_s"], dtype=np.float64)[own]):
        now = {name: float(values[place]) for name, values in columns.items() if not np.isnan(values[place])}
        changed = {
            name: round(value, 6) if name == "smoothed_rtt" else round(value)
            for name, value in now.items()
            if before.get(name) != value
        }
        before |= now
        if changed:
            yield round(float(at) * 1e9), "recovery:metrics_updated", changed


def _header(number: int) -> dict[str, Any]:
    return {"header": {"packet_type": "1RTT", "packet_number": number}}


def _packet(number: int, size: int) -> dict[str, Any]:
    return {**_header(number), "raw": {"length": size}}
