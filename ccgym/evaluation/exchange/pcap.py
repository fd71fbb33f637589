"""Write a run as a capture with nanoseconds: libpcap's classic format, link type raw IP.

All flows are shown as IPv4 and UDP, with artificial headers: flow N goes from 10.0.N.1, port
1000 + N, to 10.0.N.2, port 2000 + N (for flows above 249, the third byte starts again); ACKs go the other way.
The IP length is the length of the recorded packet. 8 bytes of the payload are captured: the number of the packet in
its flow and direction, so that retransmissions have separate numbers. UDP's checksum is left out (0).

Format: draft-ietf-opsawg-pcap.
"""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from ccgym.evaluation.exchange.recorded import End, Packets, Recorded
from ccgym.evaluation.metrics import IntArray

MAGIC_NANOSECONDS: Final = 0xA1B23C4D
LINKTYPE_RAW: Final = 101
CAPTURED: Final = 36
"""Captured bytes per packet: IPv4, UDP, and the packet's number."""
_RECORD: Final = 16
_UDP: Final = 17


def pcap_bytes(run: Recorded, *, flow: int = 0, at: End = "sender") -> bytes:
    """Return the content of a ``.pcap`` file.

    Args:
        run: The run.
        flow: Not used: a capture contains all flows.
        at: Where packets are captured: ``sender``: entering data and arriving ACKs; ``receiver``: the opposite.
    """
    parts = [_seen(run.data, entering=at == "sender", back=False)]
    if run.acks is not None:
        parts.append(_seen(run.acks, entering=at == "receiver", back=True))
    times = np.concatenate([times for times, _, _ in parts])
    sizes = np.concatenate([sizes for _, sizes, _ in parts])
    headers = np.concatenate([headers for _, _, headers in parts])
    order = np.argsort(times, kind="stable")
    times, sizes, headers = times[order], sizes[order], headers[order]
    epoch_ns = round(run.started_epoch_s * 1e9)
    captured = np.minimum(sizes, CAPTURED)
    rows = np.zeros((times.size, _RECORD + CAPTURED), dtype=np.uint8)
    record = np.stack([(epoch_ns + times) // 10**9, (epoch_ns + times) % 10**9, captured, sizes], axis=1)
    rows[:, :_RECORD] = record.astype("<u4").view(np.uint8).reshape(-1, _RECORD)
    rows[:, _RECORD:] = headers
    kept = np.arange(_RECORD + CAPTURED) < (_RECORD + captured)[:, None]
    head = struct.pack("<IHHiIII", MAGIC_NANOSECONDS, 2, 4, 0, 0, CAPTURED, LINKTYPE_RAW)
    return head + bytes(rows[kept].tobytes())


def _seen(packets: Packets, *, entering: bool, back: bool) -> tuple[IntArray, IntArray, npt.NDArray[np.uint8]]:
    """Return times, sizes and captured bytes of the packets at one end."""
    there = np.ones(packets.flow.size, dtype=bool) if entering else packets.arrived
    times = (packets.entered_ns if entering else packets.left_ns)[there]
    return times, packets.size[there], _headers(packets, there, back=back)


def _headers(packets: Packets, there: npt.NDArray[np.bool_], *, back: bool) -> npt.NDArray[np.uint8]:
    flow, number, size = packets.flow[there], packets.number[there], packets.size[there]
    words = np.zeros((flow.size, 14), dtype=np.uint16)  # IPv4 and UDP, 16 bits each
    third = flow % 250
    ends = [third << 8 | 1, third << 8 | 2]
    ports = [1000 + flow, 2000 + flow]
    words[:, 0] = 0x4500
    words[:, 1] = size
    words[:, 2] = number & 0xFFFF
    words[:, 3] = 0x4000  # "don't fragment" flag
    words[:, 4] = 64 << 8 | _UDP
    words[:, 6], words[:, 7] = 10 << 8, ends[back]
    words[:, 8], words[:, 9] = 10 << 8, ends[not back]
    words[:, 10], words[:, 11] = ports[back], ports[not back]
    words[:, 12] = np.maximum(size - 20, 8)
    total = words[:, :10].astype(np.uint32).sum(axis=1)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    words[:, 5] = ~total & 0xFFFF
    rows = np.zeros((flow.size, CAPTURED), dtype=np.uint8)
    rows[:, :28] = words.astype(">u2").view(np.uint8).reshape(-1, 28)
    rows[:, 28:] = number.astype(">u8")[:, None].view(np.uint8).reshape(-1, 8)
    return rows
