"""Cost per flow by the number of flows: processor time per flow and simulated second, one JSON line each.

For any number, each flow has 4 Mbit/s of the link, on a path of 40 ms and 1 BDP of buffer: only the work of managing
many flows grows with the number. A learned flow's decisions are part of its cost.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ccgym import NetworkPath, Record, simulate

NAME = "flow_us_per_second"
SCHEMES = ("cubic", "bbr", "copa", "aurora", "eagle", "indigo")
COUNTS = (1, 10, 100, 1000)
MBPS = 4
FLOW_SECONDS = 400
"""Flows times simulated seconds of a measurement; the start of 1,000 flows is included in a run of 2 s, too."""
SHORTEST = 2
RUNS = 3


def main(words: Sequence[str]) -> int:
    """Run the benchmarks whose names contain one of the words."""
    for scheme in SCHEMES:
        for count in COUNTS:
            name = f"{NAME}/{scheme}/{count}"
            if not words or any(word in name for word in words):
                value = min(measure(scheme, count) for _ in range(RUNS))
                print(json.dumps({"name": name, "unit": "us/s", "value": value}), flush=True)
    return 0


def measure(scheme: str, count: int) -> float:
    """Return microseconds of processor time per flow and simulated second, without the time of other programs."""
    path = NetworkPath(rate=f"{MBPS * count}mbps", rtt="40ms", queue="1bdp")
    seconds = max(SHORTEST, FLOW_SECONDS / count)
    began = time.process_time()
    simulate(path, [scheme] * count, seconds, record=Record(packets=False, series=0))
    return 1e6 * (time.process_time() - began) / (count * seconds)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
