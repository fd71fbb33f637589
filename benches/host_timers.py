"""Delay of poll() in waking a process, and of a datagram to a sleeping process: µs at 5, 50, 95 and 99 %."""

import os
import random
import select
import socket
import time
from collections.abc import Callable

SPANS = [random.uniform(3e-4, 2e-3) for _ in range(1000)]


def show(name: str, late: list[float]) -> None:
    """Print the percentiles of the measured delays."""
    print(name, [round(1e6 * sorted(late)[int(q * len(late))]) for q in (0.05, 0.5, 0.95, 0.99)])


def lateness(wait: Callable[[float], object]) -> list[float]:
    """Return the excess of each wait over its set time, seconds."""
    late = []
    for span in SPANS:
        start = time.perf_counter()
        wait(span)
        late.append(time.perf_counter() - start - span)
    return late


if __name__ == "__main__":
    poll = select.poll()
    show("poll", lateness(lambda span: poll.poll(-(-span * 1000 // 1))))
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    if not os.fork():
        for span in SPANS:
            time.sleep(span)
            there.send(str(time.perf_counter()).encode())
        os._exit(0)
    show("packet", [-(float(here.recv(50)) - time.perf_counter()) for _ in SPANS])  # the clock is read after the packet
