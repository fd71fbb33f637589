"""Packets per second of a simulated flow with a scheme in Python, ``examples/aimd.py``: one JSON line."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ccgym import NetworkPath, Record, simulate

SCHEME = f"{Path(__file__).resolve().parents[1]}/examples/aimd.py:AIMD"
NAME = "sim_packets_per_second/python"
PATH = NetworkPath(rate="400mbps", rtt="40ms", queue="1bdp")
SECONDS = 33
"""Duration in which the flow sends a little more than a million packets."""
RUNS = 3


def main(words: Sequence[str]) -> int:
    """Run the benchmarks whose names contain one of the words."""
    if not words or any(word in NAME for word in words):
        print(json.dumps({"name": NAME, "unit": "packets/s", "value": max(measure() for _ in range(RUNS))}), flush=True)
    return 0


def measure() -> float:
    """Return packets per second of processor time, without the time of other programs."""
    began = time.process_time()
    run = simulate(PATH, [SCHEME], SECONDS, record=Record(packets=False, series=0))
    return run.flows[0].sent_packets / (time.process_time() - began)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
