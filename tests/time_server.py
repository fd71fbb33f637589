"""A time server of the tests' own: ``python time_server.py ADDRESS:PORT AHEAD_S`` says that it is so much later."""

from __future__ import annotations

import socket
import struct
import sys
import time
from typing import Final

PACKET: Final = struct.Struct("!BBbb11I")
FROM_1900_S: Final = 2_208_988_800


def answer(
    question: bytes, ahead_s: float, *, mode: int = 4, stratum: int = 2, mark: bytes | None = None, kept_s: int = 0
) -> bytes:
    """The answer to a question; mode, stratum, mark of the question and how long it was kept as a test wants them."""
    epoch_s = time.time() + ahead_s
    now = (int(epoch_s // 1) + FROM_1900_S) % 2**32, int(epoch_s % 1 * 2**32)
    text = PACKET.pack(0x20 | mode, stratum, 0, 0, *[0] * 7, *now, now[0] + kept_s, now[1])
    return text[:24] + (question[40:48] if mark is None else mark) + text[32:]


def main() -> None:
    """Answer until killed."""
    address, port = sys.argv[1].split(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, int(port)))
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        while True:
            question, peer = server.recvfrom(1024)
            server.sendto(answer(question, float(sys.argv[2])), peer)


if __name__ == "__main__":
    main()
