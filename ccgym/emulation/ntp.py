"""Measure the offset of this machine's clock to a time server by SNTP (RFC 4330)."""

from __future__ import annotations

import socket
import struct
import time
from typing import Final

from ccgym.errors import RealPathError, shown

PORT: Final = 123
TRIES: Final = 3
"""Number of requests; the fastest answer counts, since half of its round-trip time bounds its error."""
TIMEOUT_S: Final = 2.0
"""Maximum time for an answer, seconds."""
COARSE_S: Final = 0.1
"""Maximum error of the server's reported processing time of a request, seconds: some clocks have long ticks."""

_PACKET: Final = struct.Struct("!BBbb11I")
_REQUEST: Final = 0x23
"""No leap warning, version 4, mode 3: a client."""
_SERVER_MODE: Final = 4
_EPOCH_S: Final = 2_208_988_800
"""Seconds from 1900, the start of NTP's time, to 1970."""
_ERA_S: Final = 2**32
"""Seconds after which NTP's time starts again at 0: first in 2036."""


def clock_offset_s(server: str, port: int = PORT) -> float:
    """Return the time to add to this machine's clock to get the server's time, seconds.

    Args:
        server: Name or address.
        port: Its UDP port.

    Raises:
        RealPathError: The server does not answer, or its answer contains no time.
    """
    where = f"time server {server}"
    answers, failure = [], ""
    for _ in range(TRIES):
        try:
            answers.append(_ask(server, port))
        except OSError as error:
            failure = str(error) or type(error).__name__
        except ValueError as error:
            failure = f"its answer is {error}"
    if not answers:
        raise RealPathError(
            "no-answer",
            failure,
            where=where,
            expected=f"one answer to {TRIES} requests over UDP port {port}",
            hint="check that it is a time server, and that no firewall blocks its answers",
        )
    return min(answers)[1]


def _ask(server: str, port: int) -> tuple[float, float]:
    """Return round-trip time and offset, seconds."""
    family, kind, protocol, _, address = socket.getaddrinfo(server, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as asking:
        asking.settimeout(TIMEOUT_S)
        asking.connect(address)
        begun, sent_s = time.monotonic(), time.time()
        mark = _timestamp(sent_s)
        asking.send(_PACKET.pack(_REQUEST, 0, 0, 0, *[0] * 9, *mark))
        while True:
            # Answers to other requests do not extend the timeout.
            if (left_s := begun + TIMEOUT_S - time.monotonic()) <= 0:
                raise TimeoutError("timed out")
            asking.settimeout(left_s)
            answer = asking.recv(1024)
            back_s = sent_s + time.monotonic() - begun
            if len(answer) < _PACKET.size:
                raise ValueError(f"{len(answer)} bytes")
            flags, stratum, _, _, *words = _PACKET.unpack_from(answer)
            if tuple(words[5:7]) == mark:  # Not the late answer to an earlier request.
                break
    received_s, replied_s = (_seconds(words[place], words[place + 1], sent_s) for place in (7, 9))
    if flags & 7 != _SERVER_MODE or not 1 <= stratum <= 15 or not words[9]:
        raise ValueError(f"of mode {flags & 7} and stratum {stratum}: {shown(answer[12:16])}")
    if not -COARSE_S <= replied_s - received_s <= back_s - sent_s + COARSE_S:
        raise ValueError(f"that it kept the question for {replied_s - received_s:g} s, of {back_s - sent_s:g} s")
    return back_s - sent_s - (replied_s - received_s), (received_s - sent_s + replied_s - back_s) / 2


def _timestamp(epoch_s: float) -> tuple[int, int]:
    whole = int(epoch_s)
    return (whole + _EPOCH_S) % _ERA_S, int((epoch_s - whole) * 2**32)


def _seconds(whole: int, fraction: int, near_s: float) -> float:
    """Return seconds since 1970, in the same NTP era as this machine's clock."""
    epoch_s = whole - _EPOCH_S + fraction / 2**32
    return epoch_s + _ERA_S * round((near_s - epoch_s) / _ERA_S)
