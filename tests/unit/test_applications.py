"""Sources that act on what is acknowledged, send buffers, recovery rules, and the digests of flows without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ccgym
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, SimulationError
from ccgym.evaluation.metrics import NEVER, transfer_metrics
from ccgym.experiments.metrics import Measured, read_metric
from ccgym.schemes.flow import flow_spec
from tests.refusals import refused

PATH = {"rate": "10mbps", "rtt": "40ms", "queue": "50p"}


def simulated(flow: dict[str, Any], duration: str = "10s") -> ccgym.RunRecord:
    return ccgym.simulate(PATH, flows=[{"scheme": "reno", **flow}], duration=duration)


def test_requests_are_measured() -> None:
    size = {"kind": "pareto", "min": "5kB", "shape": 1.3, "max": "1MB"}
    run = simulated({"source": {"kind": "requests", "size": size, "think": "50ms"}})
    flow = run.flows[0]
    assert (flow.transfers or 0) > 30
    assert 40 < (flow.transfer_ms or 0) < (flow.transfer_p95_ms or 0)
    assert run.native.transfers(0)["bytes"].min() >= 5000
    assert simulated({}).flows[0].transfers is None


def test_short_transfers_that_come_by_themselves() -> None:
    """Web-like traffic over one connection: sizes of a table, Poisson arrivals, 30 % of the link."""
    size = {"kind": "table", "sizes": ["2kB", "20kB", "500kB"], "fractions": [0.2, 0.8, 1.0]}
    run = simulated({"source": {"kind": "poisson", "rate": "3mbps", "size": size}}, "60s")
    flow, table = run.flows[0], run.ccperf().flows[0]
    assert (flow.goodput_mbps or 0) == pytest.approx(3, rel=0.25)
    assert 40 < (flow.transfer_p50_ms or 0) < (flow.transfer_p95_ms or 0) < (flow.transfer_p99_ms or 0)
    assert table["p99_completion_time_l7"].value == flow.transfer_p99_ms
    assert table["mean_completion_time_l7"].value == flow.transfer_ms
    measured = Measured(NetworkPath.from_any(PATH), run)
    metric = read_metric("m", {"metric": "completion_time", "percentile": 50})
    assert metric.of(measured) == pytest.approx((flow.transfer_p50_ms or 0) / 1e3, rel=0.05)


def test_numbers_of_transfers() -> None:
    asked, finished = np.array([0, 10, 20], np.uint64) * 10**6, np.array([5 * 10**6, 17 * 10**6, NEVER], np.uint64)
    assert transfer_metrics({"asked_ns": asked, "finished_ns": finished}) == {
        "transfers": 2, "transfer_ms": 6.0, "transfer_p50_ms": 5.0, "transfer_p95_ms": 7.0, "transfer_p99_ms": 7.0
    }  # fmt: skip
    none = np.array([], np.uint64)
    assert transfer_metrics({"asked_ns": none, "finished_ns": none})["transfer_ms"] is None


def test_sources_that_end() -> None:
    for source in (
        {"kind": "rate", "rate": "2mbps", "bytes": "500kB"},
        {"kind": "poisson", "rate": "2mbps", "bytes": "500kB"},
        {
            "kind": "poisson",
            "rate": "2mbps",
            "bytes": "500kB",
            "size": {"kind": "lognormal", "median": "9kB", "sigma": 1},
        },
    ):
        flow = simulated({"source": source}).flows[0]
        assert 1.5 < (flow.completion_s or 0) < 3.5, source


def test_a_send_buffer_has_metrics() -> None:
    table = simulated({"send_buffer": "1MB", "profile": "ns3"}, "30s").ccperf().flows[0]
    written, read = (table[f"mean_{name}_l7"].value or 0 for name in ("sending_rate", "throughput"))
    assert read == pytest.approx(table["mean_throughput_l4"].value, rel=1e-3)
    assert (written - read) * 30e6 / 8 == pytest.approx(0.95e6, rel=0.1)
    assert table["mean_one_way_delay_l7"].value == pytest.approx(800, rel=0.1)
    assert "mean_one_way_delay_l7" not in simulated({}).ccperf().flows[0]


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        ({"send_buffer": "1MB", "profile": "udp"}, "simulation-refused"),
        ({"send_buffer": "1MB", "source": "5MB"}, "simulation-refused"),
        (
            {"source": {"kind": "requests", "size": {"kind": "pareto", "min": "5kB", "shape": 1.3, "max": "1kB"}}},
            "simulation-refused",
        ),
        ({"source": {"kind": "poisson", "rate": "0mbps"}}, "out-of-range at flows[0]: source.poisson.rate"),
        ({"source": {"kind": "poisson", "rate": "1mbps", "size": "9kB"}, "profile": "udp"}, "simulation-refused"),
        (
            {"source": {"kind": "requests", "size": {"kind": "table", "sizes": ["1B", "2B"], "fractions": [0.5, 0.9]}}},
            "simulation-refused",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(flow: dict[str, Any], words: str) -> None:
    with refused((ConfigError, SimulationError), words):
        simulated(flow, "1s")


def test_classic_recovery_is_another_trajectory() -> None:
    runs = [ccgym.simulate(PATH, flows=["reno", {"scheme": "reno", "recovery": rule}]) for rule in ("prr", "classic")]
    assert runs[0].trajectory_hash != runs[1].trajectory_hash
    with refused(ConfigError, "unknown-choice at flow: recovery"):
        flow_spec({"scheme": "reno", "recovery": "newreno"})


CCPERF_85 = {"rate": "32mbps", "rtt": "15ms", "queue": "40p", "overhead": 2, "device_packets": 1}
"""Two NewReno flows, as ccperf's experiment #85 has them (``tests/reproduction/data/ccperf_published.csv``)."""


def test_ccperfs_experiment_85_with_classic_recovery() -> None:
    """ns-3.37 with ``TcpClassicRecovery``: 68 and 66 retransmissions, 134 drops."""
    flow = {"scheme": "reno:mode=ns3", "profile": "ns3", "recovery": "classic"}
    run = ccgym.simulate(CCPERF_85, flows=[flow, flow], duration="15s")
    assert [one.retransmissions for one in run.flows] == pytest.approx([68, 66], abs=1)
    assert run.link.drops == pytest.approx(134, abs=1)


def test_flows_keep_their_digests() -> None:
    plain = flow_spec({"scheme": "reno", "source": {"kind": "rate", "rate": "2mbps"}}).model_dump(mode="json")
    assert plain["source"] == {"kind": "rate", "rate": "2mbps"}
    assert not {"route", "reverse", "send_buffer", "recovery"} & set(plain)
    later = flow_spec({"scheme": "reno", "recovery": "classic", "send_buffer": "4MB"}).model_dump(mode="json")
    assert (later["recovery"], later["send_buffer"]) == ("classic", "4000000B")


@pytest.mark.parametrize(
    "flow",
    [
        {"source": {"kind": "requests", "size": "5kB"}},
        {"source": {"kind": "poisson", "rate": "1mbps", "size": "5kB"}},
        {"send_buffer": "1MB"},
        {"host": "program"},
    ],
)
def test_real_paths_refuse_what_they_cannot_do(flow: dict[str, Any]) -> None:
    from ccgym.evaluation.backends import backend

    with refused(ConfigError, "backend-unsuitable at flows[0]"):
        backend("emulated").run(PATH, [{"scheme": "reno", **flow}], "1s", 1)
