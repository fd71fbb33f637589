#!/usr/bin/env python3
"""Delivery traces used by the recordings, written to standard output.

make_trace.py constant MBPS [SECONDS]  line i = floor(12 * i / MBPS) ms, i from 0,
                                       int(SECONDS * 1000 * MBPS / 12) lines
make_trace.py ones COUNT               COUNT lines "1": 12 * COUNT Mbit/s, bursty
"""

import sys


def constant_rate(mbps: float, seconds: float = 60.0) -> list[int]:
    """The rule of Pantheon's constant-rate traces: evenly spaced, truncated, from 0."""
    return [int(12 * i / mbps) for i in range(int(seconds * 1000 / 12 * mbps))]


def all_ones(count: int) -> list[int]:
    return [1] * count


def main() -> None:
    kind, *rest = sys.argv[1:]
    lines = constant_rate(*map(float, rest)) if kind == "constant" else all_ones(int(rest[0]))
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
