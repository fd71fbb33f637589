"""Writes schemes/tests/recorded/aiortc_*.csv: what aiortc's Google congestion control makes of inputs that this program
makes up. Usage 0 is normal, 1 under, 2 over. No part of the build.

    pip download aiortc==1.16.0 --no-deps && unzip aiortc-*.whl aiortc/rate.py aiortc/utils.py && python aiortc_gcc.py
"""

import sys
import types
from pathlib import Path

# The package itself would import its media codecs.
package = types.ModuleType("aiortc")
package.__path__ = ["aiortc"]
sys.modules["aiortc"] = package
from aiortc.rate import AimdRateControl, BandwidthUsage, InterArrival, OveruseDetector, OveruseEstimator  # noqa: E402

state = 1


def uniform() -> float:
    """A pseudo-random number from 0 to 1."""
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return (state >> 33) / 2147483648.0


def table(name: str, heading: str, rows: list[str]) -> None:
    """Write the rows as a file."""
    Path(f"aiortc_{name}.csv").write_text("\n".join([heading, *rows, ""]), encoding="ascii")


def arrivals() -> None:
    """Packets that leave in bursts and queue at a link of 1.2 ms per packet, with a delay that varies."""
    groups, rows = InterArrival(5, 1.0), []
    sent, free = 1000, 0
    for _ in range(150):
        sent += 0 if uniform() < 0.5 else 1 + int(uniform() * 30)
        free = max(free, sent + int(uniform() * 12)) + 1
        delta = groups.compute_deltas(sent, 50 + free, 1200)
        seen = "," if delta is None else f"{delta.timestamp},{delta.arrival_time}"
        rows.append(f"{sent},{50 + free},{seen}")
    table("arrivals", "sent_ms,arrived_ms,send_gap_ms,arrival_gap_ms", rows)


def detector() -> None:
    """A growth that wanders; 20 ms between groups."""
    one, rows, offset, now = OveruseDetector(), [], 0.0, 0
    for _ in range(120):
        offset = 0.97 * offset + 0.25 * (uniform() - 0.5)
        now += 20
        usage = one.detect(offset, 20.0, 60, now)
        rows.append(f"{offset!r},{usage.value},{float(one.threshold)!r}")
    table("detections", "growth_ms,usage,threshold_ms", rows)


def control() -> None:
    """A rate that climbs, is cut twice near one maximum, and once far below it. The round trip is 300 ms there where it
    is 100 ms here: as deployed today, additive growth takes twice the response time."""
    one, rows, now = AimdRateControl(), [], 1000
    one.rtt = 300
    one.set_estimate(300_000, now)
    for place in range(100):
        now += 100
        usage = BandwidthUsage.NORMAL
        if place in (40, 60, 80):
            usage = BandwidthUsage.OVERUSING
        elif place in (41, 61, 62):
            usage = BandwidthUsage.UNDERUSING
        share = 0.5 if place >= 80 else 0.9 + 0.1 * uniform()
        received = int(one.current_bitrate * share)
        rate = one.update(usage, received, now)
        rows.append(f"{usage.value},{received},{rate}")
    table("rates", "usage,received_bps,rate_bps", rows)


def kalman() -> None:
    """Delay variations of groups of one size: of the two states only the offset moves. No time between departures: the
    noise stays what it is at first, 50 ms²."""
    one, rows = OveruseEstimator(), []
    for place in range(100):
        delay = int(12 * (uniform() - 0.5)) + (2 if 40 <= place < 70 else 0)
        one.update(delay, 0.0, 0, BandwidthUsage.NORMAL, 20 * place)
        rows.append(f"{delay},{one.offset()!r}")
    table("offsets", "delay_ms,offset_ms", rows)


arrivals()
detector()
control()
kalman()
