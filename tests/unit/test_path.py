"""NetworkPath: the constructor, the catalog, and what they compile to."""

from __future__ import annotations

import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.config import catalog as catalog_module
from ccgym.config import path as path_module
from ccgym.config.catalog import catalog, resolve_trace, traces_directory
from ccgym.config.models import Loss
from ccgym.config.path import NetworkPath
from ccgym.errors import CcgymError, ConfigError, PathNotFoundError
from ccgym.evaluation.simulate import simulate
from tests.refusals import refused


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that are made go nowhere near the user's."""
    monkeypatch.setenv("CCGYM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


PANTHEON_5 = (
    "mm-delay 51 mm-loss uplink 0.0006 mm-link 77.72mbps.trace 77.72mbps.trace "
    "--uplink-queue=droptail --uplink-queue-args=packets=94"
)


def trace_link(queue: dict[str, object]) -> dict[str, object]:
    return {
        "kind": "link",
        "schedule": {"kind": "trace", "name": "77.72mbps.trace", "once": False},
        "queue": queue,
        "overhead": 4,
        "device_packets": 0,
    }


DELAY_51 = {"kind": "delay", "delay": 51_000_000, "tick": 1_000_000}


def test_pantheons_fifth_emulator_compiles_in_travel_order() -> None:
    spec = NetworkPath.from_mahimahi(PANTHEON_5).compile().as_dict()
    # Reference §1.3: data meets link → loss → delay; acknowledgements meet delay → loss → link.
    assert spec["uplink"] == [
        trace_link({"kind": "droptail", "limit": {"packets": 94}}),
        {"kind": "loss", "probability": 0.0006},
        DELAY_51,
    ]
    assert spec["downlink"] == [DELAY_51, trace_link({"kind": "infinite"})]
    assert spec["facts"] == {"base_rtt": 102_000_000, "capacity": [[0, 77_721_295]]}
    json.dumps(spec)


def test_facts_of_pantheons_fifth_emulator() -> None:
    path = NetworkPath.named("77.72mbps")
    assert path == NetworkPath.named("pantheon-5") == NetworkPath.named("aws-korea-china")
    assert path.chain == NetworkPath.from_mahimahi(PANTHEON_5).chain
    assert path.mean_rate_mbps == pytest.approx(12 * 388_600 / 59_999)
    assert (path.base_rtt_ms, path.one_way_delay_ms, path.loss) == (102.0, 51.0, pytest.approx(0.0006))
    assert path.bdp_packets == pytest.approx(77.7213 * 102 / 12, rel=1e-4)
    assert path.queue.limit.packets == 94
    # Seed 000, page 3.
    table = {
        result.label: (result.throughput_mbps, result.delay_p95_ms, result.loss) for result in path.published_results
    }
    assert table == {
        "TCP BBR": (72.70, 65.94, pytest.approx(0.0343)),
        "Eagle-v3": (47.55, 55.64, pytest.approx(0.0155)),
        "Indigo": (74.32, 63.19, pytest.approx(0.0795)),
        "Synthesized-BBR": (56.63, 63.35, pytest.approx(0.0226)),
    }
    assert "Pantheon report of 2019-10-22" in path.published_source
    assert path.check() == []
    for part in ("77.7213 Mbit/s", "102 ms", "droptail 94p", "0.06%", "51ms", PANTHEON_5, "observatory"):
        assert part in path.describe()


def test_constructor_needs_no_trace() -> None:
    path = NetworkPath(rate="32mbps", rtt="15ms", queue="40p", loss=0.0)
    assert path.compile().as_dict() == {
        "uplink": [
            {
                "kind": "link",
                "schedule": {"kind": "rate", "rate": 32_000_000},
                "queue": {"kind": "droptail", "limit": {"packets": 40}},
                "overhead": 0,
                "device_packets": 0,
            },
            {"kind": "delay", "delay": 7_500_000, "tick": 0},
        ],
        "downlink": [{"kind": "delay", "delay": 7_500_000, "tick": 0}],
        "facts": {"base_rtt": 15_000_000, "capacity": [[0, 32_000_000]]},
    }
    assert path.traces() == {}
    assert (path.mean_rate_mbps, path.base_rtt_ms, path.bdp_packets) == (32.0, 15.0, 40.0)


def limit_of(path: NetworkPath) -> dict[str, int]:
    limit = path.compile().as_dict()["uplink"][0]["queue"]["limit"]
    return limit


def test_queue_sizes() -> None:
    path = {"rate": "16mbps", "rtt": "15ms"}
    assert limit_of(NetworkPath(**path)) == {"packets": 20}  # by default one bandwidth-delay product
    assert limit_of(NetworkPath(**path, queue="1.5bdp")) == {"packets": 30}
    assert limit_of(NetworkPath(**path, queue="0.01bdp")) == {"packets": 1}
    assert limit_of(NetworkPath(**path, queue="30000B")) == {"bytes": 30_000}
    assert limit_of(NetworkPath(rate="50mbps", rtt="10ms")) == {"packets": 42}  # 41.67, rounded up
    both = NetworkPath(**path, queue={"kind": "droptail", "limit": {"packets": 9, "bytes": 9000}})
    assert limit_of(both) == {"packets": 9, "bytes": 9000}
    # Where rate or RTT change, the largest product of a moment: here 256 Mbit/s · 15 ms, and 10 Mbit/s · 60 ms.
    steps = NetworkPath(rate=[("0s", "16mbps"), ("3.75s", "256mbps")], rtt="15ms")
    assert limit_of(steps) == {"packets": 320}
    crossed = NetworkPath(rate=[("0s", "40mbps"), ("5s", "10mbps")], rtt=[("0s", "12ms"), ("10s", "60ms")])
    assert limit_of(crossed) == {"packets": 50}
    with refused(ConfigError, "path-without-delay"):
        NetworkPath(rate="5mbps", rtt="0ms").compile()


def test_queue_disciplines() -> None:
    def queue(value: object) -> dict[str, object]:
        spec = NetworkPath(rate="16mbps", rtt="15ms", queue=value).compile().as_dict()["uplink"][0]["queue"]  # type: ignore[arg-type]
        return spec

    assert queue("infinite") == {"kind": "infinite"}
    assert queue("codel") == {
        "kind": "codel", "limit": {"packets": 1000}, "target": 5_000_000, "interval": 100_000_000, "ecn": False,
        "ns3": False,
    }  # fmt: skip
    assert queue({"kind": "fq_codel", "limit": "2bdp", "ecn": True, "flows": 16}) == {
        "kind": "fq_codel", "limit": {"packets": 40}, "target": 5_000_000, "interval": 100_000_000, "quantum": 1514,
        "flows": 16, "ecn": True,
    }  # fmt: skip
    assert queue({"kind": "mahimahi_pie", "limit": "9p", "qdelay_ref": "20ms", "max_burst": "150ms"}) == {
        "kind": "mahimahi_pie", "limit": {"packets": 9}, "qdelay_ref": 20_000_000, "max_burst": 150_000_000,
    }  # fmt: skip
    assert queue({"kind": "step", "limit": "2bdp", "threshold": "0.5bdp"}) == {
        "kind": "step", "limit": {"packets": 40}, "threshold": {"packets": 10},
    }  # fmt: skip
    assert queue({"kind": "step", "delay": "1ms"}) == {
        "kind": "step", "limit": {"packets": 1000}, "delay": 1_000_000,
    }  # fmt: skip
    assert queue("dualpi2") == {
        "kind": "dualpi2", "limit": {"packets": 10_000}, "target": 15_000_000, "interval": 16_000_000, "alpha": 0.16,
        "beta": 3.2, "coupling": 2.0, "step": 1_000_000, "classic_share": 0.1,
    }  # fmt: skip
    assert (queue("pie")["beta"], queue("red")["max"]) == (1.25, 15)
    words = NetworkPath(rate="16mbps", rtt="15ms", queue={"kind": "step", "threshold": "9p"}).queue.words()
    assert words == "step marking 1000p (above 9p, delay none)"


def test_changes_over_time_and_further_elements() -> None:
    path = NetworkPath(
        rate=[("0s", "16mbps"), ("3.75s", "256mbps")],
        rtt=[("0s", "15ms"), ("5s", "30ms")],
        loss=[("0s", 0), ("2s", "1%")],
        jitter="2ms",
        reverse_rate="5mbps",
        reverse_queue="9p",
        elements=[{"kind": "gilbert_elliott", "good_to_bad": "1%", "bad_to_good": "25%"}],
    )
    spec = path.compile().as_dict()
    assert [element["kind"] for element in spec["uplink"]] == ["link", "loss", "gilbert_elliott", "jitter", "delay"]
    assert [element["kind"] for element in spec["downlink"]] == ["delay", "link"]
    assert spec["uplink"][0]["schedule"] == {"kind": "rate", "rate": [[0, 16_000_000], [3_750_000_000, 256_000_000]]}
    assert spec["uplink"][1]["probability"] == [[0, 0.0], [2_000_000_000, 0.01]]
    assert spec["uplink"][2]["loss_bad"] == 1.0
    assert spec["uplink"][3]["distribution"] == {"kind": "uniform", "max": 2_000_000}
    assert spec["uplink"][4]["delay"] == [[0, 7_500_000], [5_000_000_000, 15_000_000]]
    assert spec["facts"]["capacity"] == [[0, 16_000_000], [3_750_000_000, 256_000_000]]
    assert spec["facts"]["base_rtt"] == 15_000_000  # the smallest
    assert NetworkPath(**path.model_dump()) == path
    odd = NetworkPath(rate="5mbps", rtt="3ns").compile().as_dict()
    assert (odd["uplink"][-1]["delay"], odd["downlink"][0]["delay"]) == (1, 2)


def test_slowest_link_rules() -> None:
    path = NetworkPath.from_mahimahi(
        "mm-link 60mbps.trace 60mbps.trace -- mm-delay 5 mm-link 12mbps.trace 60mbps.trace"
    )
    assert path.mean_rate_mbps == 12.0
    assert path.compile().as_dict()["facts"]["capacity"] == [[0, 12_000_000]]
    assert path.bdp_packets == 10.0


def test_ccperf_parity() -> None:
    path = NetworkPath.named("ccperf")
    link, delay = path.compile().uplink
    assert (link["overhead"], link["device_packets"], link["queue"]["limit"]) == (2, 1, {"packets": 20})
    assert (delay["delay"], path.compile().downlink) == (7_500_000, [{"kind": "delay", "delay": 7_500_000, "tick": 0}])
    codel = NetworkPath.named("ccperf-step").compile().uplink[0]
    assert (codel["overhead"], codel["device_packets"], codel["queue"]["kind"]) == (2, 1, "codel")


def test_a_round_trip_of_many_seconds_is_remarked() -> None:
    (finding,) = NetworkPath(rate="12mbps", rtt="20s").check()
    assert (finding.severity, finding.code) == ("warning", "long-delay")
    assert "'20ms'" in finding.remedy
    assert NetworkPath(rate="12mbps", rtt="0.02s").check() == []


def test_from_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = NetworkPath.named("77.72mbps")
    (tmp_path / "path.yaml").write_text("rate: 32mbps\nrtt: 15ms\nqueue: 40p\n")
    (tmp_path / "own.trace").write_text("1\n2\n")
    assert NetworkPath.from_any(path) is path
    for name in ("77.72mbps", "77.72mbps.trace", "traces/77.72mbps.trace", "pantheon-5"):
        assert NetworkPath.from_any(name) == path, name
    assert NetworkPath.from_any(PANTHEON_5).chain == path.chain
    assert NetworkPath.from_any({"named": "77.72mbps"}) == path
    assert NetworkPath.from_any("path.yaml") == NetworkPath(rate="32mbps", rtt="15ms", queue="40p", name="path")
    (tmp_path / "77.72mbps.yaml").write_text("rate: 32mbps\nrtt: 15ms\n")
    assert NetworkPath.from_any("77.72mbps.yaml").name is None  # that name is another path's
    (tmp_path / "named.yaml").write_text("rate: 32mbps\nrtt: 15ms\nname: mine\n")
    assert NetworkPath.from_any("named.yaml").name == "mine"
    assert NetworkPath.from_any(tmp_path / "path.yaml") == NetworkPath.from_any("path.yaml")
    bare = NetworkPath.from_any("own.trace")
    assert [element["kind"] for element in bare.compile().as_dict()["uplink"]] == ["link"]
    assert bare.mean_rate_mbps == 12.0
    assert [finding.code for finding in bare.check()] == ["no-delay"]
    for wrong, code in (
        ("nope", "unknown-path"),
        ("folder/77.72mbps.trace", "unknown-trace"),
        ("", "wrong-type"),
        (5, "wrong-type"),
        (None, "wrong-type"),
        ("77.72mbps\0", "unknown-path"),
    ):
        with refused(CcgymError, code):
            NetworkPath.from_any(wrong)


def test_paths_are_values() -> None:
    one = NetworkPath(rate="5mbps", rtt="9ms", elements=[Loss(probability="1%")], name="mine")
    assert one == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(NetworkPath(rate="5mbps", rtt="9ms", loss="1%", name="mine"))
    with pytest.raises(ValueError, match="frozen"):
        one.name = "other"


def test_every_named_path_loads_compiles_and_is_clean() -> None:
    recorded = set(catalog().recorded.names)
    installed = Path(catalog().recorded.directory, "Verizon-LTE-short.up").is_file()
    for name in NetworkPath.names():
        if name.removesuffix("-download") in recorded and not installed:
            with refused(CcgymError, "trace-not-installed"):
                NetworkPath.named(name).compile()
            continue
        path = NetworkPath.named(name)
        compiled = path.compile()
        assert compiled.facts["base_rtt"] > 0
        assert compiled.facts["capacity"][0][0] == 0
        assert path.title
        assert path.source
        assert path.check() == [], name
        assert name in path.describe()
    assert {f"pantheon-{number}" for number in range(1, 19)} <= {a for e in catalog().paths.values() for a in e.aliases}
    assert sum(name.startswith("indigo-") for name in NetworkPath.names()) == 24


@pytest.mark.parametrize(
    ("name", "rate", "rtt", "queue"),
    [
        # Reference §5: rate of the trace's name, 2 · mm-delay, packets.
        ("0.57mbps-poisson", 0.557, 56, 14),
        ("2.64mbps-poisson", 2.435, 176, 130),
        ("3.04mbps-poisson", 2.817, 260, 426),
        ("100.42mbps", 100.42, 54, 173),
        ("77.72mbps", 77.72, 102, 94),
        ("114.68mbps", 114.68, 90, 450),
        ("pantheon-7", 12, 20, 1),
        ("pantheon-12", 108, 100, 1),
    ],
)
def test_emulators_of_the_reference(name: str, rate: float, rtt: float, queue: int) -> None:
    path = NetworkPath.named(name)
    assert path.mean_rate_mbps == pytest.approx(rate, rel=1e-3)
    assert path.base_rtt_ms == rtt
    assert limit_of(path) == {"packets": queue}


def test_check_finds_what_is_wrong_with_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "50mbps_10ms.trace").write_text("1500\n" * 4166)
    student = NetworkPath.from_mahimahi("mm-delay 5 mm-link 50mbps_10ms.trace 50mbps_10ms.trace")
    finding = student.check()[0]
    assert (finding.severity, finding.code, finding.subject) == ("error", "all-lines-equal", "50mbps_10ms.trace")

    small = NetworkPath.from_mahimahi(
        "mm-delay 5 mm-link 12mbps.trace 12mbps.trace --uplink-queue=droptail --uplink-queue-args=bytes=1500"
    )
    assert [(finding.severity, finding.code) for finding in small.check()] == [("error", "queue-too-small")]
    large_enough = NetworkPath.from_mahimahi(
        "mm-delay 5 mm-link 12mbps.trace 12mbps.trace --uplink-queue=droptail --uplink-queue-args=bytes=1504"
    )
    assert large_enough.check() == []

    (tmp_path / "12mbps.trace").write_text("1\n1\n")
    shadowed = NetworkPath.from_mahimahi("mm-delay 5 mm-link 12mbps.trace ./12mbps.trace")
    assert [finding.code for finding in shadowed.check()] == ["shadowed-file", "rate-mismatch"]
    both = NetworkPath.from_mahimahi(
        "mm-delay 5 mm-link ./12mbps.trace ./12mbps.trace --uplink-queue=droptail --uplink-queue-args=bytes=1500"
    )
    assert [finding.code for finding in both.check()] == ["queue-too-small", "rate-mismatch"]
    (tmp_path / "12mbps.trace").write_text("1\n")
    assert NetworkPath.from_mahimahi("mm-delay 5 mm-link 12mbps.trace 12mbps.trace").check() == []


def test_facts_describe_varying_traces() -> None:
    cold = NetworkPath.named("2.64mbps-poisson").compile().as_dict()["facts"]["capacity"]
    assert [start for start, _ in cold] == [0, 5_000_000_000]
    assert cold[0][1] == pytest.approx(120_000, rel=0.05)
    assert cold[1][1] == pytest.approx(2_646_000, rel=0.01)
    times = np.concatenate([np.arange(0, 5000, 2), np.arange(5000, 10_001, 1)]).astype(np.uint64)
    from ccgym.tracetools.inspect import capacity_steps

    assert capacity_steps(times) == ((0, 6_000_000), (5_000_000_000, 12_000_000))
    # Played twice: the change of the first period comes again.
    assert len(capacity_steps(times, 20 * 10**9)) == 4


def test_a_path_of_the_catalog_is_known_by_its_commands() -> None:
    named = NetworkPath.named("77.72mbps")
    known = NetworkPath.from_mahimahi(named.to_mahimahi(), name="typed").known()
    assert (known.name, known.published) == ("77.72mbps", named.published)
    other = NetworkPath.from_mahimahi("mm-delay 52 mm-link 77.72mbps.trace 77.72mbps.trace", name="typed")
    assert other.known() is other


def test_a_missing_file_in_a_folder_of_that_name_is_no_trace_of_the_catalog(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    with pytest.raises(PathNotFoundError):
        NetworkPath.from_any(str(tmp_path / "traces" / "77.72mbps.trace"))
    assert resolve_trace("traces/12mbps.trace").name == "12mbps"


def test_a_path_is_built_anew_where_the_catalog_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = NetworkPath.named("77.72mbps")
    assert NetworkPath.named("77.72mbps") is first
    found = "paths:\n  found: {title: of another catalog, source: a test, path: {rate: 5mbps, rtt: 10ms}}\n"
    (tmp_path / "paths.yaml").write_text((traces_directory() / "paths.yaml").read_text())
    (tmp_path / "adversary.yaml").write_text(found)
    for module in (path_module, catalog_module):
        monkeypatch.setattr(module, "traces_directory", lambda: tmp_path)
    assert NetworkPath.named("found").title == "of another catalog"
    assert NetworkPath.named("77.72mbps") is not first


def test_the_signature_names_what_can_be_given() -> None:
    names = inspect.signature(NetworkPath).parameters
    assert {"rate", "rtt", "queue", "loss", "chain", "links"} <= set(names)
    shown = repr(NetworkPath(rate="12mbps", rtt="40ms", queue="40p"))
    assert "12 Mbit/s" in shown
    assert "delay=" not in shown
    assert len(shown) < 400


@pytest.mark.parametrize("flows", [5, None, {"scheme": "cubic"}, "cubic", ["x" * 1_000_000], ["a/" * 500_000]])
def test_flows_that_are_none_are_one_error(flows: Any) -> None:
    with pytest.raises(CcgymError) as caught:
        simulate("12mbps", flows, "1s")
    assert len(str(caught.value)) < 20_000
