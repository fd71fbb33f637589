"""Every agent that comes with ccgym on paths that it was not trained for; the registered schemes are tried in Rust
(``crates/ccgym-sim/tests/behavior/hostile.rs``), on the same kinds of trouble."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ccgym
from ccgym import NetworkPath
from ccgym.schemes.policies import find

ROOT = Path(__file__).resolve().parents[2]
AGENTS = sorted(path.name for path in (ROOT / "agents").iterdir() if path.is_dir())
PACKET = 1500
"""Wire bytes."""
UNLIMITED = 2**63
"""Bytes; a window beyond is none."""


def path(*outer: Mapping[str, Any], rate: Any = "4mbps", queue: str = "40p", delay: Any = "20ms") -> NetworkPath:
    """A quiet path of 4 Mbit/s and 40 ms behind troublesome elements."""
    link = {"kind": "link", "uplink": {"rate": rate, "queue": queue}}
    return NetworkPath(chain=[*outer, {"kind": "delay", "delay": delay}, link])


def element(kind: str, direction: str, **settings: Any) -> dict[str, Any]:
    return {"kind": kind, "direction": direction, **settings}


BLACKOUT = [[0, 0.0], ["3s", 1.0], ["13s", 0.0]]

TROUBLES: dict[str, tuple[NetworkPath, float]] = {
    # The path, and the least that must be acknowledged in the last ten of 40 seconds, Mbit/s.
    "10 % loss": (path(element("loss", "uplink", probability=0.1)), 0.1),
    "30 % loss": (path(element("loss", "uplink", probability=0.3)), 0.05),
    "30 % of the acknowledgements lost": (path(element("loss", "downlink", probability=0.3)), 0.1),
    "reordered data": (path(element("jitter", "uplink", distribution="30ms", reorder=True)), 0.1),
    "copies both ways": (
        path(element("duplicate", "uplink", probability=0.5), element("duplicate", "downlink", probability=0.5)),
        0.1,
    ),
    "acknowledgements in bunches": (
        path(element("on_off", "downlink", mean_on="20ms", mean_off="100ms", hold=True)),
        0.1,
    ),
    "no data for 10 s": (path(element("loss", "uplink", probability=BLACKOUT)), 0.1),
    "no acknowledgement for 10 s": (path(element("loss", "downlink", probability=BLACKOUT)), 0.1),
    "a rate 100 times as high for 4 s": (path(rate=[[0, "0.5mbps"], ["3s", "50mbps"], ["7s", "0.5mbps"]]), 0.05),
    "a rate 100 times as low for 4 s": (path(rate=[[0, "8mbps"], ["3s", "0.08mbps"], ["7s", "8mbps"]]), 0.1),
    "a round trip of 1 ms": (path(delay="0.5ms"), 0.1),
    "a round trip of 2 s": (path(delay="1s"), 0.05),
    "a queue of one packet": (path(queue="1p"), 0.1),
}


WEAK = {
    # Trained with round trips of up to 300 ms. With 2 s it holds a few packets per round trip (docs/studies/muses.md).
    ("muses_d", "a round trip of 2 s"): 0.015,
}
"""By policy and trouble the least of those that do not reach the usual one, Mbit/s."""


@pytest.mark.parametrize("name", AGENTS)
def test_agents_survive(name: str) -> None:
    """Progress in the end, and neither rate nor window beyond the limits that the card states."""
    policy = find(name)
    limits = policy.card.agent["action"]["limits"]
    top_rate, top_window = limits["rate"][1], limits["window"][1]
    for trouble, (where, least) in TROUBLES.items():
        run = ccgym.simulate(where, [name], duration="40s", record=ccgym.Record(packets=False, series="100ms"))
        series = run.series["flows"][0]
        found = {key: np.asarray(series[key], dtype=np.float64) for key in series if key != "states"}
        assert all(np.isfinite(values).all() for values in found.values()), f"{trouble}: {found}"
        acked = (found["acked_bytes"][-1] - found["acked_bytes"][-101]) * 8 / 1e7
        if (name, trouble) in WEAK:
            assert acked < least, f"{trouble}: {acked:.3f} Mbit/s need no bound of their own"
            least = WEAK[name, trouble]
        assert acked >= least, f"{trouble}: {acked:.3f} Mbit/s acknowledged in the last 10 s, expected {least} or more"
        assert found["pacing_bps"].max() <= top_rate, f"{trouble}: beyond its own limit"
        # Without a window, what is in flight is what the highest rate lets out until the timer fires.
        flight = found["in_flight_bytes"].max()
        unlimited = found["cwnd_bytes"].max() > UNLIMITED
        most = (top_rate / 8 * 6.5 if unlimited else top_window * PACKET) + 100 * PACKET
        assert flight <= most, f"{trouble}: {flight / PACKET:.0f} packets in flight, expected {most / PACKET:.0f}"
