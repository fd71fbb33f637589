"""Our runs of the paths on which an independent QUIC stack, quinn-proto, was recorded.

Ours run with the same packets, paced, with delayed acknowledgements and without HyStart++, as quinn is; nothing is
fitted. Both are read from 10 s on.

Paths without randomness lock into one phase of arrivals and departures, which repeats at every overflow: on 100 Mbit/s,
20 ms and 83 packets the packet that proportional rate reduction sends as recovery begins is the one that the full queue
drops, and each overflow cuts our window twice; with 80 packets, 20.1 ms or without pacing it does not. So there the
median counts of runs whose round trips differ by a tenth of a millisecond. quinn sends nothing as recovery begins.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import ccgym
from ccgym.evaluation.simulate import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

RECORDED: Final = Path(__file__).parent.parent / "differential" / "recorded" / "quinn"
WARM_UP_S: Final = 10
DROP_TAIL: Final = ("12mbps_40ms_1bdp", "100mbps_20ms_half_bdp", "48mbps_80ms_half_bdp")
RANDOM_LOSS: Final = "50mbps_40ms_loss"

SCHEMES: Final[dict[str, dict[str, Any]]] = {
    "cubic": {"scheme": "cubic", "params": {"start_up": "none", "pacing": True}},
    "reno": {"scheme": "reno", "params": {"pacing": True}},
    "quic": {"scheme": "quic", "params": {"mode": "quiche", "connections": 1}},
}
"""Ours. With one connection, QUIC Cubic is a Cubic."""
CONTROLLER: Final = {"cubic": "cubic", "reno": "reno", "quic": "cubic"}
"""What each is compared with."""


@dataclass(frozen=True)
class Sawtooth:
    """One run, or the middle of several."""

    window: float
    """Mean, packets."""
    throughput_mbps: float
    period_s: float
    """Mean time between two cuts."""
    kept: float
    """Median share of the window kept at a cut."""


def _middle(runs: list[Sawtooth], middle: Callable[[Iterable[float]], float]) -> Sawtooth:
    return Sawtooth(
        middle(run.window for run in runs),
        middle(run.throughput_mbps for run in runs),
        middle(run.period_s for run in runs),
        middle(run.kept for run in runs),
    )


@cache
def _recording(path: str, controller: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(gzip.decompress((RECORDED / f"{path}_{controller}.json.gz").read_bytes()))
    return read


def recorded(path: str, controller: str) -> Sawtooth:
    """What quinn did."""
    recording = _recording(path, controller)
    conditions = recording["conditions"]
    runs = []
    for run in recording["runs"]:
        windows = run["window_bytes"][WARM_UP_S * 1000 // conditions["interval_ms"] :]
        delivered = run["delivered_bytes"]
        cuts = [cut for cut in run["cuts"] if cut[0] >= WARM_UP_S * 1000]
        runs.append(
            Sawtooth(
                fmean(windows) / conditions["window_bytes_per_packet"],
                (delivered[-1] - delivered[WARM_UP_S - 1]) * 8e-6 / (conditions["seconds"] - WARM_UP_S),
                (cuts[-1][0] - cuts[0][0]) / (len(cuts) - 1) / 1e3,
                float(np.median([after / before for _, before, after in cuts])),
            )
        )
    return _middle(runs, fmean)


def _cuts(windows: npt.NDArray[np.float64], settle: int) -> list[tuple[int, float]]:
    """Falls by more than a tenth within ``settle`` samples: where each begins, and the share that is left.

    Proportional rate reduction lowers our window over a round trip, so a cut is no single step.
    """
    found = []
    i = 1
    while i < len(windows) - settle:
        if windows[i] < windows[i - 1]:
            kept = float(windows[i : i + settle].min() / windows[i - 1])
            if kept < 0.9:
                found.append((i, kept))
                i += settle
        i += 1
    return found


@cache
def simulated(path: str, scheme: str) -> Sawtooth:
    """What ours do: as many seeds with random loss, else five round trips."""
    recording = _recording(path, CONTROLLER[scheme])
    if recording["conditions"]["loss"]:
        runs = [_run(recording["conditions"], scheme, seed, 0.0) for seed in range(1, len(recording["runs"]) + 1)]
        return _middle(runs, fmean)
    return _middle([_run(recording["conditions"], scheme, 1, 0.1 * i) for i in range(5)], median)


def _run(conditions: dict[str, Any], scheme: str, seed: int, more_rtt_ms: float) -> Sawtooth:
    network = ccgym.NetworkPath(
        rate=f"{conditions['rate_bps']}bps",
        rtt=f"{conditions['rtt_ms'] + more_rtt_ms:.1f}ms",
        queue=f"{conditions['queue_packets']}p",
        loss=conditions["loss"],
    )
    flow = {
        **SCHEMES[scheme],
        "profile": "udp",
        "mss": conditions["window_bytes_per_packet"],
        "header": conditions["packet_bytes"] - conditions["window_bytes_per_packet"],
        "initial_window": 10,
        "ack_every": 2,
        "ack_delay": "25ms",
    }
    run = ccgym.simulate(network, [flow], f"{conditions['seconds']}s", seed, Record(packets=False, series="1ms"))
    series = run.native.series()
    seconds = np.asarray(series["t_ns"]) / 1e9
    begin = int(np.searchsorted(seconds, WARM_UP_S))
    ours = series["flows"][0]
    windows = np.asarray(ours["cwnd_bytes"])[begin:] / conditions["packet_bytes"]
    acked = np.asarray(ours["acked_bytes"])
    # Two round trips without a queue, in samples of a millisecond.
    cuts = _cuts(windows, 2 * conditions["rtt_ms"])
    return Sawtooth(
        float(windows.mean()),
        float(acked[-1] - acked[begin]) * 8e-6 / float(seconds[-1] - seconds[begin]),
        (cuts[-1][0] - cuts[0][0]) / (len(cuts) - 1) / 1e3,
        float(np.median([kept for _, kept in cuts])),
    )
