"""Whole paths with some of them changed."""

from __future__ import annotations

import pickle

import pytest

from ccgym.config.path import NetworkPath

SHELLS = "mm-delay 51 mm-loss uplink 0.0006 mm-link 77.72mbps.trace 77.72mbps.trace --uplink-queue=droptail"
SHELLS += " --uplink-queue-args=packets=94"


def test_a_named_path_with_another_delay() -> None:
    path = NetworkPath(named="77.72mbps", rtt="40ms")
    assert (path.base_rtt_ms, path.loss, path.mean_rate_mbps) == (
        40.0,
        pytest.approx(0.0006),
        pytest.approx(77.72, rel=1e-3),
    )
    assert path.to_mahimahi() == SHELLS.replace("51", "20")
    assert path.name == "77.72mbps (rtt 40ms)"
    assert not path.published
    assert pickle.loads(pickle.dumps(path)) == path


def test_each_change_leaves_the_rest() -> None:
    whole = NetworkPath.from_mahimahi(SHELLS)
    assert NetworkPath(mahimahi=SHELLS, rtt="102ms").chain == whole.chain
    assert NetworkPath(mahimahi=SHELLS, queue="94p", loss=0.0006).chain == whole.chain
    assert NetworkPath(chain=whole.chain, trace="12mbps").to_mahimahi().count("12mbps") == 1  # the way back stays
    slower = NetworkPath(mahimahi=SHELLS, rate="5mbps", loss=0.0, queue="1bdp")
    assert (slower.mean_rate_mbps, slower.loss, slower.base_rtt_ms) == (5.0, 0.0, 102.0)
    assert float(slower.bdp_packets) == pytest.approx(42.5)
    jittery = NetworkPath(mahimahi=SHELLS, jitter="2ms")
    assert len(jittery.chain) == len(whole.chain) + 1


def test_what_a_path_lacks_is_added() -> None:
    bare = NetworkPath.from_any("12mbps.trace")
    path = NetworkPath(chain=bare.chain, rtt="30ms", loss="1%")
    assert (path.base_rtt_ms, path.loss) == (30.0, pytest.approx(0.01))
    # The outermost element comes first, as mahimahi's shells do.
    assert [one.kind for one in path.chain] == ["delay", "loss", "link"]


def test_only_the_slowest_link_changes() -> None:
    two = NetworkPath.from_mahimahi("mm-delay 5 mm-link 12mbps.trace 12mbps.trace mm-link 77.72mbps.trace 12mbps.trace")
    path = NetworkPath(chain=two.chain, rate="8mbps")
    assert [link.rate for link in path.data_links] == [None, 8_000_000]


def test_the_queue_of_a_link_with_a_rate_changes() -> None:
    whole = NetworkPath(rate="8mbps", rtt="30ms", device_packets=1)
    (link,) = NetworkPath(chain=whole.chain, queue="9p").data_links
    assert (link.rate, link.device_packets) == (8_000_000, 1)
    assert link.queue == NetworkPath(rate="8mbps", rtt="1s", queue="9p").queue
