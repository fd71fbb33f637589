"""Batched stepping: many simulators into one caller-owned array, the same on any number of threads."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ccgym import NetworkPath, _core
from ccgym.schemes.flow import flow_spec

STEPS = 40
STEP_NS = 50_000_000


def spec(seed: int, scheme: str = "external:cwnd=20") -> str:
    path = NetworkPath(rate="12mbps", rtt="40ms", queue="40p", loss=0.01).compile(5_000_000_000)
    flow = flow_spec({"scheme": scheme, "profile": "udp"})
    return json.dumps(
        {
            "seed": seed,
            "duration": 5_000_000_000,
            "uplink": path.uplink,
            "downlink": path.downlink,
            "flows": [flow.native(40_000_000)],
        }
    )


def run(count: int, threads: int, scheme: str = "external:cwnd=20") -> np.ndarray:
    batch = _core.BatchSimulator([spec(seed, scheme) for seed in range(count)], {}, threads)
    out = np.zeros((count, len(batch.columns())))
    rows = []
    for step in range(STEPS):
        if scheme.startswith("external"):
            cwnd = np.full(count, (20 + step) * 1500, dtype=np.uint64)
            batch.control(cwnd, np.zeros(count, dtype=np.uint64))
        done = batch.step(np.full(count, STEP_NS, dtype=np.uint64), out)
        assert done == [False] * count
        rows.append(out.copy())
    return np.array(rows)


def column(rows: np.ndarray, name: str) -> np.ndarray:
    return rows[:, :, _core.BatchSimulator.columns().index(name)]


def test_the_number_of_threads_changes_nothing() -> None:
    one, two = run(8, 1), run(8, 2)
    assert np.array_equal(one, two)
    # Seeds matter: the coin falls differently.
    assert len(set(column(one, "lost_packets").sum(axis=0))) > 1


def test_what_is_written_is_what_happened() -> None:
    rows = run(3, 1)
    assert np.allclose(column(rows, "duration_s"), STEP_NS / 1e9)
    sent, acked, lost = (column(rows, f"{what}_packets").sum(axis=0) for what in ("sent", "acked", "lost"))
    in_flight = column(rows, "in_flight_bytes")[-1] / 1500
    assert np.array_equal(sent, acked + lost + in_flight)
    # The window is the one that was set, and the round trip at least the path's.
    assert np.array_equal(column(rows, "cwnd_bytes")[-1], np.full(3, (20 + STEPS - 1) * 1500.0))
    assert (column(rows, "min_rtt_s")[2:] >= 0.040).all()


def test_a_simulator_can_be_replaced() -> None:
    batch = _core.BatchSimulator([spec(1), spec(2)], {}, 1)
    out = np.zeros((2, len(batch.columns())))
    steps = np.full(2, STEP_NS, dtype=np.uint64)
    batch.step(steps, out)
    first = out[0].copy()
    batch.step(steps, out)
    batch.reset(0, spec(1))
    batch.step(steps, out)
    assert np.array_equal(out[0], first)
    assert batch.step(np.full(2, 10**10, dtype=np.uint64), out) == [True, True]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda b, o: b.control(np.zeros(2, np.uint64), np.zeros(2, np.uint64)), "expected 1"),
        (lambda b, o: b.step(np.zeros(1, np.uint64), np.zeros((2, 2))), "expected 1 and 1"),
        (lambda b, o: b.reset(7, spec(1)), "index"),
        (lambda b, o: b.reset(0, "{"), "simulation specification"),
    ],
)
def test_mistakes_are_named(act: object, message: str) -> None:
    batch = _core.BatchSimulator([spec(1)], {}, 1)
    with pytest.raises(ValueError, match=message):
        act(batch, None)  # type: ignore[operator]


def test_only_external_is_steered() -> None:
    batch = _core.BatchSimulator([spec(1, "cubic")], {}, 1)
    with pytest.raises(ValueError, match=r'found scheme "cubic", expected "external"'):
        batch.control(np.ones(1, np.uint64), np.ones(1, np.uint64))
