"""LEDBAT by libutp's rules in the simulator against libtorrent's uTP, which was recorded over the emulated path.

libtorrent is an implementation of its own by the author of libutp: the same target, gain and loss rules, another slow
start (it doubles, libutp adds), and a window in fractions of a byte. So start-up is left out. The recordings, and how
each was made: record/record_libtorrent.py.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from ccgym import NetworkPath, simulate

RECORDED: Final = Path(__file__).parent / "recorded" / "libtorrent"
START_S: Final = 15
"""Until then a flow alone may still be starting; TCP joins then."""
GIVEN_WAY_MBPS: Final = 1.0


class Flow(NamedTuple):
    """Per bin of time, what left the path: rate, mean and maximum one-way delay (not a number if nothing did)."""

    mbps: npt.NDArray[np.float64]
    mean_ms: npt.NDArray[np.float64]
    max_ms: npt.NDArray[np.float64]

    def since(self, seconds: float, bin_s: float) -> Flow:
        return Flow(*(values[round(seconds / bin_s) :] for values in self))

    def mean_delay_ms(self) -> float:
        """Bins weigh alike: alone on the path all hold as many packets."""
        return float(np.nanmean(self.mean_ms))


@cache
def about(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{case}.json").read_text(encoding="utf-8"))
    return found


@cache
def recorded(case: str) -> tuple[Flow, ...]:
    """uTP first; whole bins only."""
    flows, per_bin = about(case)["flows"], 8 / 1e3 / about(case)["bin_ms"]

    def array(values: list[float | None]) -> npt.NDArray[np.float64]:
        return np.array(values, dtype=np.float64)

    return tuple(
        Flow(array(flow["bytes"]) * per_bin, array(flow["mean_delay_ms"]), array(flow["max_delay_ms"]))
        for flow in (flows[name] for name in ("utp", "tcp") if name in flows)
    )


@cache
def simulated(case: str) -> tuple[Flow, ...]:
    known = about(case)
    rate, bin_ns = known["rate_mbps"], known["bin_ms"] * 10**6
    buffer = f"{round(rate * known['buffer_ms'] * 1e3 / 8)}B"
    path = NetworkPath(rate=f"{rate}mbps", rtt=f"{2 * known['delay_ms']}ms", queue=buffer)
    flows: list[Any] = ["ledbat"]
    if known["tcp"]:
        flows.append({"scheme": known["tcp"], "start": f"{known['tcp_start_s']}s"})
    run = simulate(path, flows, known["seconds"])
    count = known["seconds"] * 10**9 // bin_ns
    found = []
    for number in run.packets.flows:
        part = run.packets.of_flow(number)
        place = np.minimum((part.departure_ns - run.packets.origin_ns) // bin_ns, count - 1)
        packets = np.bincount(place, minlength=count)
        delay_ms = part.delay_ns / 1e6
        largest = np.full(count, np.nan)
        np.fmax.at(largest, place, delay_ms)
        with np.errstate(invalid="ignore"):
            mean = np.bincount(place, delay_ms, count) / packets
        found.append(Flow(np.bincount(place, part.departure_bytes, count) * 8e3 / bin_ns, mean, largest))
    return tuple(found)


def alone(case: str) -> tuple[Flow, Flow]:
    """What was recorded and what is simulated, without start-up."""
    bin_s = about(case)["bin_ms"] / 1e3
    return recorded(case)[0].since(START_S, bin_s), simulated(case)[0].since(START_S, bin_s)


def seconds_to_give_way(flows: tuple[Flow, ...], bin_s: float) -> float:
    """From TCP's first packet until uTP's rate is below 1 Mbit/s for good."""
    joined = int(np.flatnonzero(flows[1].mbps > 0)[0])
    last_above = int(np.flatnonzero(flows[0].mbps > GIVEN_WAY_MBPS)[-1])
    return (last_above + 1 - joined) * bin_s


def share(flows: tuple[Flow, ...], bin_s: float, seconds: float = 25) -> float:
    """uTP's share of what was carried in the last seconds."""
    utp, tcp = (flow.mbps[-round(seconds / bin_s) :].sum() for flow in flows)
    return float(utp / (utp + tcp))


def test_alone_the_queue_settles_at_the_target() -> None:
    """12 Mbit/s, 20 ms one-way, a buffer of 200 ms: 1 % of throughput, 10 ms of mean delay (4 ms were found: libutp
    cuts its steps to whole bytes, so it stops growing a little below the target).
    """
    theirs, ours = alone("alone_200ms")
    assert ours.mbps.mean() == pytest.approx(theirs.mbps.mean(), rel=0.01)
    assert ours.mean_delay_ms() == pytest.approx(theirs.mean_delay_ms(), abs=10)


def test_alone_a_small_buffer_overflows() -> None:
    """A buffer of 50 ms: 1 % of throughput, 10 ms of mean delay, and the same sawtooth up to the buffer's end."""
    theirs, ours = alone("alone_50ms")
    assert ours.mbps.mean() == pytest.approx(theirs.mbps.mean(), rel=0.01)
    assert ours.mean_delay_ms() == pytest.approx(theirs.mean_delay_ms(), abs=10)
    assert np.nanmax(ours.max_ms) == pytest.approx(np.nanmax(theirs.max_ms), abs=3)


@pytest.mark.parametrize("tcp", ["cubic", "reno"])
def test_it_gives_way_to_tcp(tcp: str) -> None:
    """A buffer of 200 ms, TCP of the kernel from 15 s on: less than 2 % at the end, and as long until uTP gave way.

    How long depends on where TCP's sawtooth stands. Three recordings next to Reno took 14.0, 14.5 and 18.5 s, so 6 s
    are allowed (found: 18.0 s for 19.0 s next to Cubic, 18.5 s for 14.5 s next to Reno).
    """
    case = f"{tcp}_200ms"
    bin_s = about(case)["bin_ms"] / 1e3
    theirs, ours = recorded(case), simulated(case)
    assert share(theirs, bin_s) < 0.02
    assert share(ours, bin_s) < 0.02
    assert seconds_to_give_way(ours, bin_s) == pytest.approx(seconds_to_give_way(theirs, bin_s), abs=6)
