"""Paths of several links, routes over them, and flows in both directions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ccgym
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError
from ccgym.evaluation.prepared_run import prepare
from ccgym.evaluation.run import path_digest
from ccgym.evaluation.run_record import RunRecord
from ccgym.schemes.flow import flow_spec
from tests.refusals import refused

PARKING_LOT = {
    "links": {
        "first": {"rate": "10mbps", "rtt": "10ms", "queue": "50p"},
        "second": {"rate": "8mbps", "rtt": "10ms", "queue": "50p"},
        "third": {"rate": "10mbps", "rtt": "10ms", "queue": "50p"},
    }
}


def test_a_path_of_several_links_is_all_of_them_in_a_row() -> None:
    path = NetworkPath(**PARKING_LOT)
    assert [name for name, _ in path.links] == ["first", "second", "third"]
    assert (path.mean_rate_mbps, path.base_rtt_ms) == (8, 30)
    assert path.bdp_packets == 20
    compiled = path.compile()
    assert [link["name"] for link in compiled.links] == ["first", "second", "third"]
    together = [element for link in compiled.links for element in link["uplink"]]
    assert together == compiled.uplink
    assert compiled.as_dict()["uplink"] == []
    assert "second data" in path.describe()


def test_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "lot.yaml"
    file.write_text(
        "links:\n  first: {rate: 10mbps, rtt: 10ms, queue: 50p}\n  second: {rate: 8mbps, rtt: 10ms, queue: 50p}\n"
        "  third: 12mbps\ntitle: a parking lot\n"
    )
    path = NetworkPath.from_any(str(file))
    assert (path.name == "lot" and path.trace_names() == ("12mbps.trace",)) or path.trace_names()
    assert path == NetworkPath.from_any(str(file))
    assert hash(path) == hash(NetworkPath.from_any(str(file)))


def test_digests_tell_networks_apart() -> None:
    path = NetworkPath(**PARKING_LOT)
    flat = NetworkPath(chain=path.chain)
    assert path_digest(path) != path_digest(flat)
    assert path != flat
    plain = flow_spec("cubic").model_dump(mode="json")
    assert not {"route", "reverse"} & set(plain)
    assert flow_spec({"scheme": "cubic", "route": ["first"]}).model_dump(mode="json")["route"] == ["first"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ({"links": {"a": {"rate": "1mbps"}}}, "argument-missing at links.a: path"),
        ({"links": {"a:b": {"rate": "1mbps", "rtt": "1ms"}}}, "name-invalid at links.a:b"),
        ({"links": {"a": PARKING_LOT}}, "name-invalid at links.a"),
        ({"links": ["a"]}, "wrong-type at links"),
        ({**PARKING_LOT, "rtt": "5ms"}, "options-conflict at path"),
        ({**PARKING_LOT, "rate": "5mbps"}, "options-conflict at path"),
    ],
)
def test_wrong_networks(path: dict[str, object], words: str) -> None:
    with refused(ConfigError, words):
        NetworkPath(**path)  # type: ignore[arg-type]


def test_wrong_routes() -> None:
    path = NetworkPath(**PARKING_LOT)
    with refused(ConfigError, "unknown-name at flows[1]: route[0]"):
        prepare(path, ["cubic", {"scheme": "cubic", "route": ["secnd"]}])
    with refused(ConfigError, "unknown-name at flows[0]: route[1]"):
        prepare(path, [{"scheme": "cubic", "route": ["first", "first"]}])
    with refused(ConfigError, "unknown-name at flows[0]: route[0]"):
        prepare("12mbps", [{"scheme": "cubic", "route": ["first"]}])


def test_a_parking_lot_is_measured_per_link() -> None:
    flows = [
        "cubic",
        *({"scheme": "cubic", "route": [name]} for name in PARKING_LOT["links"]),
        {"scheme": "cubic", "route": ["second"], "reverse": True, "source": {"kind": "rate", "rate": "1mbps"}},
    ]
    run = ccgym.simulate(PARKING_LOT, flows=flows, duration="20s")
    assert [flow.bottleneck for flow in run.flows] == ["second", "first", "second", "third", "second:reverse"]
    # The way back is not constrained: it has no link to measure.
    assert list(run.links) == ["first", "second", "third"]
    assert [link.capacity_mbps for link in run.links.values()] == [10, 8, 10]
    assert all(0.9 < (link.utilization or 0) <= 1.01 for link in run.links.values())
    assert run.link == run.links["second"]
    tables = run.ccperf()
    assert set(tables.links) == set(run.links)
    assert tables.links["second"] == tables.link
    # Queueing delay counts from the base round trip of each flow's own route.
    queueing = [tables.flows[place]["mean_est_qdelay_l4"].value for place in range(4)]
    assert queueing[0] > max(queueing[1:]) > 0  # type: ignore[operator,type-var]
    shares = [tables.flows[place]["mean_utilization_bw_l4"].value or 0 for place in range(4)]
    assert shares[0] + shares[2] == pytest.approx(0.95, abs=0.05)
    assert list(run.series["links"]) == ["first", "second", "third"]
    table = run.to_pandas("series")
    assert table[table.flow == 2].queue_packets.mean() != table[table.flow == 3].queue_packets.mean()
    again = RunRecord.from_json(run.to_json())
    assert again.links == run.links
    assert json.loads(run.to_json())["links"]["first"]["capacity_mbps"] == 10


def test_flows_in_both_directions_of_a_plain_path() -> None:
    path = NetworkPath(rate="10mbps", rtt="40ms", queue="50p", reverse_rate="5mbps", reverse_queue="50p")
    run = ccgym.simulate(path, flows=["cubic", {"scheme": "cubic", "reverse": True}], duration="10s")
    assert [flow.bottleneck for flow in run.flows] == ["uplink", "downlink"]
    assert {name: link.capacity_mbps for name, link in run.links.items()} == {"uplink": 10, "downlink": 5}
    assert (run.flows[1].throughput_mbps or 0) == pytest.approx(4.7, abs=0.4)
    assert run.native.link_events("uplink")["kind"].size == 0


def test_a_network_of_one_link_is_that_path() -> None:
    plain = ccgym.simulate({"rate": "10mbps", "rtt": "40ms"}, duration="3s")
    linked = ccgym.simulate({"links": {"only": {"rate": "10mbps", "rtt": "40ms"}}}, duration="3s")
    assert (plain.trajectory_hash, plain.flows) == (linked.trajectory_hash, linked.flows)


@pytest.mark.parametrize("backend", ["emulated", "mahimahi"])
def test_real_paths_refuse_networks(backend: str) -> None:
    from ccgym.evaluation.backends import backend as backend_named

    for path, flow in ((PARKING_LOT, "cubic"), ("12mbps", {"scheme": "cubic", "reverse": True})):
        with refused(ConfigError, "backend-unsuitable"):
            backend_named(backend).run(path, [flow], "1s", 1)
