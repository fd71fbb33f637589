#!/usr/bin/env python3
"""Check the mm-link recordings against a small model written from the documented rules.

  replay_mm_link.py [NAME...]

The model gets the trace, the base timestamp and the recorded arrivals (`+`), and
predicts opportunities (`#`) and departures (`-`).  Exit status 1 unless every line
is predicted.  Two queues are judged more loosely: pie draws random numbers and is
left out, and codel reads the clock when it dequeues, which may be a millisecond
after the scheduled opportunity, so there the drops and delays must agree to 1 %.
"""

import gzip
import json
import math
import pathlib
import sys
from collections import deque

import make_trace

RECORDED = pathlib.Path(__file__).resolve().parent.parent / "recorded" / "mm_link"
OPPORTUNITY = 1504
Unit = tuple[int, int]  # arrival ms, bytes


class Fifo:
    """infinite, droptail and drophead."""

    def __init__(self, kind: str, limits: dict[str, int]):
        self.kind, self.units, self.bytes = kind, deque(), 0
        self.max_packets = limits.get("packets") or math.inf
        self.max_bytes = limits.get("bytes") or math.inf

    def fits(self, packets: int, size: int) -> bool:
        return packets <= self.max_packets and size <= self.max_bytes

    def push(self, unit: Unit) -> None:
        if self.kind != "drophead" and not self.fits(len(self.units) + 1, self.bytes + unit[1]):
            return
        self.units.append(unit)
        self.bytes += unit[1]
        while not self.fits(len(self.units), self.bytes):
            self.pop(0)

    def pop(self, now: int) -> Unit:
        unit = self.units.popleft()
        self.bytes -= unit[1]
        return unit


class CoDel(Fifo):
    """RFC 8289 as release 0.98 runs it: the packet after the one examined is dropped."""

    def __init__(self, limits: dict[str, int]):
        super().__init__("codel", limits)
        self.target, self.interval = limits["target"], limits["interval"]
        self.first_above, self.drop_next, self.count, self.last_count, self.dropping = 0, 0, 0, 0, False

    def control_law(self, t: int) -> int:
        return t + int(self.interval / math.sqrt(self.count))

    def examine(self, now: int) -> tuple[Unit, bool]:
        unit = super().pop(now)
        if now - unit[0] < self.target or self.bytes <= OPPORTUNITY:
            self.first_above = 0
            return unit, False
        if self.first_above == 0:
            self.first_above = now + self.interval
            return unit, False
        return unit, now >= self.first_above

    def pop(self, now: int) -> Unit:
        unit, ok = self.examine(now)
        if self.dropping:
            if not ok:
                self.dropping = False
            while self.dropping and now >= self.drop_next:
                self.count += 1
                _, ok = self.examine(now)  # discarded, while `unit` is still the one returned
                if ok:
                    self.drop_next = self.control_law(self.drop_next)
                else:
                    self.dropping = False
        elif ok:
            self.examine(now)
            self.dropping = True
            delta = self.count - self.last_count
            recent = now - self.drop_next < 16 * self.interval
            self.count = delta if delta > 1 and recent else 1
            self.drop_next = self.control_law(now)
            self.last_count = self.count
        return unit


def parse_arguments(text: str) -> dict[str, int]:
    pairs = (part.split("=") for part in text.split(",") if "=" in part)
    return {name.strip(): int(value) for name, value in pairs}


def make_queue(kind: str, arguments: str) -> Fifo:
    limits = parse_arguments(arguments)
    return CoDel(limits) if kind == "codel" else Fifo(kind, limits)


def delivery_times(trace: list[int], base: int, once: bool):
    while True:
        for line in trace:
            yield base + line
        if once:
            return
        base += trace[-1]


def trace_of(document: dict, log: list[str]) -> list[int]:
    kept = document["trace"]
    if "ms" in kept:
        return kept["ms"]
    if kept["file"]:
        return list(map(int, gzip.decompress((RECORDED / kept["file"]).read_bytes()).split()))
    if kept["source"].startswith("make_trace.py constant"):
        return make_trace.constant_rate(float(kept["source"].split()[-1]))
    # a packaged trace that is not kept here: its opportunities are in the log
    base = document["base_timestamp_ms"]
    fired = [int(line.split()[0]) - base for line in log if line.split()[1] == "#"]
    return fired[: kept["entries"]]


def replay(document: dict, log: list[str]) -> list[str]:
    """The `#` and `-` lines that the model expects, `+` lines passed through."""
    queue = make_queue(document["queue"], document["queue_args"])
    times = delivery_times(trace_of(document, log), document["base_timestamp_ms"], document["once"])
    upcoming = next(times, None)
    transit: Unit | None = None
    left_of_transit = 0
    lines: list[str] = []

    def burn(now: int) -> None:
        nonlocal upcoming, transit, left_of_transit
        while upcoming is not None and upcoming <= now:
            lines.append(f"{upcoming} # {OPPORTUNITY}")
            budget = OPPORTUNITY
            while budget:
                if transit is None:
                    if not queue.units:
                        break
                    transit = queue.pop(upcoming)
                    left_of_transit = transit[1]
                sent = min(budget, left_of_transit)
                budget -= sent
                left_of_transit -= sent
                if left_of_transit == 0:
                    lines.append(f"{upcoming} - {transit[1]} {upcoming - transit[0]}")
                    transit = None
            upcoming = next(times, None)

    for line in log:
        at, kind, size, *_ = line.split()
        if kind == "+":
            burn(int(at))
            lines.append(line)
            queue.push((int(at), int(size)))
    burn(int(log[-1].split()[0]))
    return lines


def delays(log: list[str]) -> list[int]:
    return [int(fields[3]) for fields in map(str.split, log) if fields[1] == "-"]


def compare(name: str) -> tuple[str, bool]:
    document = json.loads((RECORDED / f"{name}.json").read_text())
    text = gzip.decompress((RECORDED / f"{name}.log.gz").read_bytes()).decode()
    log = [line for line in text.splitlines() if not line.startswith("#")]
    expected = replay(document, log)
    end = int(log[-1].split()[0])
    expected = expected[: len(log)] if int(expected[min(len(log), len(expected)) - 1].split()[0]) >= end else expected
    wrong = next((i for i, (a, b) in enumerate(zip(log, expected)) if a != b), None)
    if wrong is None and len(log) == len(expected):
        return f"{name}: all {len(log)} lines as predicted", True
    if document["queue"] == "codel":
        seen, predicted = delays(log), delays(expected)
        close = abs(len(seen) - len(predicted)) <= 0.01 * len(seen) and abs(sum(seen) - sum(predicted)) <= 0.01 * sum(
            seen
        )
        return (
            f"{name}: {len(seen)} departures, mean delay {sum(seen) / len(seen):.3f} ms; "
            f"predicted {len(predicted)}, {sum(predicted) / len(predicted):.3f} ms "
            f"(first difference at line {wrong + 1})"
        ), close
    wrong = min(len(log), len(expected)) - 1 if wrong is None else wrong
    return f"{name}: line {wrong + 1} of {len(log)} is '{log[wrong]}', expected '{expected[wrong]}'", False


def main() -> None:
    names = sys.argv[1:] or sorted(file.name.removesuffix(".json") for file in RECORDED.glob("*.json"))
    failed = False
    for name in names:
        if name.startswith("pie"):
            continue
        verdict, good = compare(name)
        failed |= not good
        print(verdict)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
