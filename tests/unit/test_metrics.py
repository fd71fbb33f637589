"""Pantheon's formulas: a golden vector worked out by hand, the percentile, capacity, and the odd cases."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccgym import NetworkPath, simulate
from ccgym.evaluation.capacity import RateCapacity, TraceCapacity, link_capacity, mean_per_bin_mbps
from ccgym.evaluation.curves import BIN_NS, RunCurves
from ccgym.evaluation.metrics import NEVER, PacketLog, Passed, media_metrics, percentile_nearest, run_metrics
from ccgym.evaluation.pantheon.logs import parse_log

# Worked out by hand from Pantheon's tunnel_graph.py.
GOLDEN_LOG = """\
# init timestamp: 1700000000000.000
0.000 # 1500
0.400 + 1500 1
0.900 + 1500 1
1.000 # 1500
1.100 + 536 2
2.000 # 1500
20.400 - 1500 20.000 1
21.300 - 1500 20.400 1
22.100 - 536 21.000 2
30.000 + 1500 1
31.000 + 1500 2
40.000 # 1500
52.500 - 1500 22.500 1
"""


def golden_packets() -> dict[str, np.ndarray]:
    """The golden vector as the native core would give it: flows from 0, a lost packet never left."""
    ms = [(0.4, 20.4, 1500, 0), (0.9, 21.3, 1500, 0), (1.1, 22.1, 536, 1), (30, 52.5, 1500, 0), (31, None, 1500, 1)]
    return {
        "entered_ns": np.array([round(entered * 1e6) for entered, *_ in ms], dtype=np.uint64),
        "left_ns": np.array([NEVER if left is None else round(left * 1e6) for _, left, *_ in ms], dtype=np.uint64),
        "size": np.array([size for *_, size, _ in ms], dtype=np.uint32),
        "flow": np.array([flow for *_, flow in ms], dtype=np.uint32),
    }


def test_golden_vector_from_a_log() -> None:
    metrics = run_metrics(parse_log(GOLDEN_LOG.splitlines(), "golden"))
    assert metrics.capacity_mbps == pytest.approx(1.20)
    assert f"{metrics.total.throughput_mbps:.2f}" == "1.26"
    assert f"{100 * metrics.utilization:.1f}" == "104.6"
    assert metrics.total.delay_p95_ms == 22.5
    assert f"{100 * metrics.total.loss:.2f}" == "22.95"
    one, two = metrics.flows[1], metrics.flows[2]
    assert (f"{one.throughput_mbps:.2f}", one.delay_p95_ms, one.loss) == ("1.12", 22.5, 0.0)
    assert (two.throughput_mbps, two.delay_p95_ms, f"{100 * two.loss:.2f}") == (0.0, 21.0, "73.67")


def test_arrays_and_log_give_the_same_metrics() -> None:
    from_arrays = run_metrics(PacketLog.from_packets(golden_packets(), 2))
    assert replace(from_arrays, capacity_mbps=1.2) == run_metrics(parse_log(GOLDEN_LOG.splitlines(), "golden"))


@pytest.mark.parametrize("flows", [["cubic"], ["cubic", "bbr", {"scheme": "reno", "start": "900ms"}]])
def test_the_native_core_computes_the_same_as_from_its_packets(flows: list[object]) -> None:
    path = NetworkPath(rate="12mbps", rtt="23ms", queue="20p", loss=0.01)
    run = simulate(path, flows, "2s", seed=3)
    assert run.metrics == replace(run_metrics(run.packets), capacity_mbps=12.0)
    sent = [run.native.packets("data")["entered_ns"][run.packets.arrival_flow == 1 + k] for k in range(len(flows))]
    times = run.series["t_ns"]
    for flow, entered in enumerate(sent):
        averages = list(accumulate(np.diff(entered) / 1e6, lambda known, gap: known + (gap - known) / 16))
        known = [averages[place - 1] for place in np.searchsorted(entered[1:], times, side="right") if place]
        found = run.native.gap_average(flow, 1 / 16)
        assert found[~np.isnan(found)].tolist() == known


@pytest.mark.parametrize(("count", "index"), [(1, 0), (3, 2), (4, 3), (11, 10), (31, 28), (51, 48), (200, 189)])
def test_percentile_rank_rounds_half_to_even(count: int, index: int) -> None:
    values = np.random.default_rng(count).permutation(count)
    assert percentile_nearest(values) == index


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=300))
def test_percentile_is_numpys_nearest(values: list[int]) -> None:
    assert percentile_nearest(np.array(values)) == np.percentile(np.array(values), 95, method="nearest")


def test_throughput_of_one_instant_is_zero() -> None:
    assert Passed.of(np.array([5, 5]), np.array([1500, 1500])).mbps == 0.0
    assert Passed.of(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).mbps == 0.0


def test_total_throughput_is_not_the_sum_of_flows() -> None:
    # Two flows, one after the other, 12 Mbit/s each: together 12, not 24.
    times = np.arange(2000, dtype=np.uint64) * 1_000_000
    packets = {
        "entered_ns": times,
        "left_ns": times + np.uint64(10_000_000),
        "size": np.full(2000, 1500, dtype=np.uint32),
        "flow": (np.arange(2000) >= 1000).astype(np.uint32),
    }
    metrics = run_metrics(PacketLog.from_packets(packets, 2))
    assert metrics.total.throughput_mbps == pytest.approx(12.0, rel=1e-3)
    assert sum(flow.throughput_mbps for flow in metrics.flows.values()) == pytest.approx(24.0, rel=2e-3)


def _spaced(seconds: float) -> PacketLog:
    times = (np.linspace(0, seconds, 101) * 1e9).astype(np.uint64)
    size = np.full(101, 1500, dtype=np.uint32)
    packets = {"entered_ns": times, "left_ns": times + np.uint64(1), "size": size, "flow": np.zeros(101, np.uint32)}
    return PacketLog.from_packets(packets, 1)


@pytest.mark.parametrize(("seconds", "valid"), [(24.0, True), (23.99, False), (30.0, True)])
def test_a_run_shorter_than_four_fifths_does_not_count(seconds: float, valid: bool) -> None:
    reason = run_metrics(_spaced(seconds)).invalid_reason(30.0)
    assert (reason is None) is valid
    if reason is not None:
        assert "less than 0.8 of the 30 s" in reason


def test_a_flow_of_which_nothing_left_invalidates_the_run() -> None:
    packets = golden_packets()
    packets["left_ns"][2] = NEVER
    metrics = run_metrics(PacketLog.from_packets(packets, 2))
    assert metrics.flows[2].delay_p95_ms is None
    assert metrics.flows[2].loss == 1.0
    assert "flow 2 sent packets but none left" in (metrics.invalid_reason(0.03) or "")


def test_a_silent_flow_is_listed_with_nothing_and_invalidates_the_run() -> None:
    metrics = run_metrics(PacketLog.from_packets(golden_packets(), 3))
    assert list(metrics.flows) == [1, 2, 3]
    assert metrics.flows[3].packets_in == 0
    assert metrics.flows[3].loss is None
    # Pantheon's merge gives up on a tunnel log without packets.
    assert metrics.invalid_reason(0.03) == "flow 3 sent nothing"


# --- Capacity ------------------------------------------------------------------------------------------------------


def played(times_ms: list[int], until_ns: int, once: bool) -> list[int]:
    """Opportunities in [0, until) of a trace, in ns, one by one: mahimahi's rule spelled out."""
    found, base = [], 0
    while True:
        for time in times_ms:
            if (base + time) * 1_000_000 >= until_ns:
                return found
            found.append((base + time) * 1_000_000)
        if once:
            return found
        base += times_ms[-1]


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=12).map(sorted).filter(lambda times: times[-1] > 0),
    st.lists(st.integers(0, 200_000_000), min_size=1, max_size=6),
    st.booleans(),
)
def test_trace_capacity_counts_what_mahimahi_would_deliver(times: list[int], asked: list[int], once: bool) -> None:
    capacity = TraceCapacity(np.array(times, dtype=np.int64), once=once)
    expected = [len(played(times, until, once)) * 12_000 for until in asked]
    assert capacity.bits_until(np.array(asked)).tolist() == expected


def test_trace_average_is_pantheons() -> None:
    # 0,1,2,3 gives 4 opportunities per 3 ms; Pantheon divides by last − first.
    capacity = TraceCapacity(np.array([0, 1, 2, 3]))
    opportunities = played([0, 1, 2, 3], 30_000_001, once=False)
    log = "\n".join(f"{time / 1e6:.3f} # 1500" for time in opportunities).splitlines()
    assert capacity.average_mbps(30_000_000) == pytest.approx(run_metrics(parse_log(log, "log")).capacity_mbps)


def test_rate_capacity_follows_its_steps() -> None:
    capacity = RateCapacity(np.array([0, 1_000_000_000]), np.array([10e6, 20e6]))
    edges = np.array([0, 500_000_000, 1_500_000_000, 2_000_000_000])
    assert mean_per_bin_mbps(capacity, edges).tolist() == [10.0, 15.0, 20.0]
    assert capacity.average_mbps(2_000_000_000) == 15.0


def test_the_slowest_link_counts() -> None:
    def link(rate: int) -> dict[str, object]:
        return {"kind": "link", "schedule": {"kind": "rate", "rate": rate}, "queue": {"kind": "infinite"}}

    capacity = link_capacity([link(50_000_000), {"kind": "delay", "delay": 1}, link(20_000_000)], {})
    assert capacity.average_mbps(10**9) == 20.0
    assert link_capacity([{"kind": "delay", "delay": 1}], {}) is None


# --- Curves --------------------------------------------------------------------------------------------------------


def test_curves_bin_as_pantheon_does() -> None:
    log = parse_log(GOLDEN_LOG.splitlines(), "golden")
    curves = RunCurves.from_log(log)
    assert curves.capacity_mbps.tolist() == pytest.approx([4 * 12_000 / 500_000])
    assert curves.flows[0].egress_mbps.tolist() == pytest.approx([3 * 12_000 / 500_000])


def test_curves_survive_storage_and_stay_within_a_cell() -> None:
    rng = np.random.default_rng(1)
    entered = np.sort(rng.integers(0, 10 * 10**9, 20_000)).astype(np.uint64)
    delay = rng.integers(20_000_000, 80_000_000, 20_000).astype(np.uint64)
    packets = {
        "entered_ns": entered,
        "left_ns": entered + delay,
        "size": np.full(20_000, 1500, dtype=np.uint32),
        "flow": np.zeros(20_000, dtype=np.uint32),
    }
    log = PacketLog.from_packets(packets, 1)
    curves = RunCurves.from_log(log)
    stored = RunCurves.of_arrays(curves.arrays())
    flow = stored.flows[0]
    np.testing.assert_allclose(flow.egress_mbps.sum() * BIN_NS / 1e9 * 1e6 / 8, 20_000 * 1500, rtol=1e-6)
    height, width = 60.0 / 800, 10.1 / 1500
    assert flow.delay_ms.min() == pytest.approx(20.0, abs=height)
    assert flow.delay_ms.max() == pytest.approx(80.0, abs=height)
    # Every packet has a point within its cell.
    points = {(round(t / width), round(d / height)) for t, d in zip(flow.delay_time_s, flow.delay_ms, strict=True)}
    for t, d in zip(log.departure_ns[:200] / 1e9, log.delay_ns[:200] / 1e6, strict=True):
        near = {(round(t / width) + i, round(d / height) + j) for i in (-1, 0, 1) for j in (-1, 0, 1)}
        assert near & points


def test_curves_of_a_run_are_those_of_its_log() -> None:
    path = NetworkPath(rate="12mbps", rtt="23ms", queue="20p", loss=0.01)
    run = simulate(path, ["cubic", {"scheme": "reno", "start": "600ms"}], "1900ms", seed=3)
    for recorded, logged in zip(run.curves().flows, RunCurves.from_log(run.packets).flows, strict=True):
        assert all(np.array_equal(one, vars(logged)[name]) for name, one in vars(recorded).items())


def _frames(*rows: tuple[int, int, int]) -> dict[str, np.ndarray]:
    """Captured (ms), packets, bytes."""
    captured, packets, sizes = zip(*rows, strict=True)
    return {
        "captured_ns": np.array(captured, dtype=np.uint64) * 1_000_000,
        "packets": np.array(packets, dtype=np.uint32),
        "bytes": np.array(sizes, dtype=np.uint32),
    }


def test_frames_arrive_with_their_last_packet() -> None:
    frames = _frames((0, 2, 2000), (40, 1, 500), (80, 0, 0), (120, 2, 1500), (160, 1, 1000))
    ms = 1_000_000
    # The second frame is lost in part, the third was skipped, the last is still in the sender.
    left = np.array([30 * ms, 35 * ms, NEVER, 150 * ms, 149 * ms], dtype=np.uint64)
    measured = media_metrics(frames, left, 200 * ms)
    assert measured.frame_delay_ms == pytest.approx((35 + 30) / 2)
    assert measured.frame_delay_p95_ms == pytest.approx(35)
    assert measured.frame_loss == pytest.approx(3 / 5)
    assert measured.bit_rate_mbps == pytest.approx(5000 * 8 / 0.2 / 1e6)


def test_no_frame_may_arrive() -> None:
    measured = media_metrics(_frames((0, 2, 2000)), np.array([NEVER]), 1_000_000_000)
    assert (measured.frame_delay_ms, measured.frame_delay_p95_ms, measured.frame_loss) == (None, None, 1.0)
    empty = {name: np.empty(0, dtype=np.uint64) for name in ("captured_ns", "packets", "bytes")}
    assert media_metrics(empty, np.empty(0), 1) is None
