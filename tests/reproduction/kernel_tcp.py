"""Our runs of the paths on which Linux TCP was recorded in real mahimahi, in the terms of the recordings.

Time 0 is the entry of the SYN in both. Nothing is set: the schemes' defaults on the paths as the recordings' command
lines give them.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

import ccgym
from ccgym.evaluation.simulate import Record

SUMMARY: Final = Path(__file__).parent.parent / "differential" / "recorded" / "kernel_tcp" / "summary.csv"

PATHS: Final = {
    "77.72mbps": (
        "mm-delay 51 mm-loss uplink 0.0006 mm-link 77.72mbps.trace 77.72mbps.trace "
        "--uplink-queue=droptail --uplink-queue-args=packets=94",
        "30s",
    ),
    "12mbps": (
        "mm-delay 20 mm-link 12mbps.trace 12mbps.trace --uplink-queue=droptail --uplink-queue-args=packets=40",
        "15s",
    ),
}
"""Command line and length of each recorded path (`conditions.command` in the recordings)."""
DROP: Final = ord("d")
"""Kind of a drop among the link's events."""
SEEDS: Final = {"bbr": 5, "cubic": 20, "reno": 20}

FIELDS: Final = {
    "throughput_mbps": "cut_throughput_mbps",
    "p95_owd_ms": "cut_p95_owd_ms",
    "loss": "cut_loss",
    "mean_owd_ms": "mean_owd_ms",
    "queue_drops": "queue_drops",
    "retransmits": "retransmits",
    "first_queue_drop_s": "first_queue_drop_s",
}
"""Our names and the recordings' (the runs cut at their nominal end, as Pantheon counts)."""


@dataclass(frozen=True)
class Outcome:
    """Means over the runs of one scheme on one path; and the standard deviation of single runs."""

    mean: Mapping[str, float]
    spread: Mapping[str, float]
    runs: int


def _outcome(rows: list[dict[str, float]]) -> Outcome:
    columns = {name: [row[name] for row in rows if not np.isnan(row[name])] for name in rows[0]}
    mean = {name: fmean(values) if values else float("nan") for name, values in columns.items()}
    spread = {name: float(np.std(values)) if values else float("nan") for name, values in columns.items()}
    return Outcome(mean, spread, len(rows))


@cache
def recorded(path: str, scheme: str) -> Outcome:
    """Kernel TCP in real mahimahi."""
    with SUMMARY.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["path"], row["scheme"]) == (path, scheme)]
    return _outcome([{ours: float(row[theirs] or "nan") for ours, theirs in FIELDS.items()} for row in rows])


@cache
def simulated(path: str, scheme: str, mode: str = "", ack_every: int = 1, runs: int = 0) -> Outcome:
    """Ours; seeds 1 to ``runs``."""
    command, duration = PATHS[path]
    network = ccgym.NetworkPath.from_mahimahi(command)
    flow: dict[str, Any] = {"scheme": scheme, "ack_every": ack_every}
    if mode:
        flow["params"] = {"mode": mode}
    record = Record(packets=True, series=0, link_events=True)
    rows = []
    for seed in range(1, (runs or SEEDS[scheme]) + 1):
        run = ccgym.simulate(network, [flow], duration, seed, record)
        events = run.native.link_events("up")
        drops = events["time_ns"][events["kind"] == DROP]
        packets = run.native.packets("data")
        left = packets["left_ns"] < 2**63
        delays = (packets["left_ns"][left] - packets["entered_ns"][left]) / 1e6
        total = run.total
        rows.append(
            {
                "throughput_mbps": total.throughput_mbps,
                "p95_owd_ms": total.delay_p95_ms,
                "loss": total.loss,
                "mean_owd_ms": float(delays.mean()),
                "queue_drops": float(run.link.drops),
                "retransmits": float(run.flows[0].retransmissions),
                "first_queue_drop_s": float(drops.min()) / 1e9 if drops.size else float("nan"),
            }
        )
    return _outcome(rows)
