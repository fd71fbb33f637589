"""Eagle: the native core against a second reading of the declared agents, interval by interval."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ccgym.config.path import NetworkPath
from ccgym.envs.settings import Settings
from ccgym.envs.simulated_batch import SimulatedBatch
from ccgym.training.config import TrainConfig
from ccgym.units import NS_PER_S
from tests.reference import eagle

VERSIONS = tuple(eagle.CONFIGS.values())
PATHS = {
    "deep": NetworkPath(rate="20mbps", rtt="60ms", queue="2bdp"),
    "shallow": NetworkPath(rate="8mbps", rtt="40ms", queue="8p"),
    "lossy": NetworkPath(rate="5mbps", rtt="80ms", queue="1bdp", loss="1%"),
}
"""With round trips below 100 ms, so that the clock does not tick before the first."""
STEPS = 300
FIRST_PACKETS = 10


def begin(config: str, path: NetworkPath) -> tuple[SimulatedBatch, eagle.Reference]:
    """An episode at its first decision, and the reference told of the interval before it.

    No step tells of that one. It ends with the first acknowledgement: all packets of the start are out, one is back.
    """
    settings = replace(Settings.read(config=config, path=path, privileged=True), steps=STEPS)
    batch = SimulatedBatch(settings, 1)
    batch.begin(0, np.random.default_rng(1))
    agent = settings.agent.native()
    reference = eagle.Reference(agent)
    rtt = path.base_rtt_ns / NS_PER_S + 12_000 / (path.mean_rate_mbps * 1e6)
    assert agent["startup"]["packets"] == FIRST_PACKETS
    reference.steered = FIRST_PACKETS * (12_000 / rtt if reference.steers_rate else 1)
    reference.digest(
        {
            "duration_s": rtt,
            "sent_packets": FIRST_PACKETS,
            "sent_bytes": 1500 * FIRST_PACKETS,
            "acked_packets": 1,
            "acked_bytes": 1500,
            "lost_packets": 0,
            "timeouts": 0,
            "mean_rtt_s": rtt,
            "min_rtt_s": rtt,
            "srtt_s": rtt,
            "in_flight_bytes": 1500 * (FIRST_PACKETS - 1),
            "cwnd_bytes": 1500 * FIRST_PACKETS,
            "pacing_rate_bps": 0,
        }
    )
    return batch, reference


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("config", VERSIONS)
def test_the_core_does_what_is_declared(config: str, path: str) -> None:
    batch, reference = begin(config, PATHS[path])
    rng = np.random.default_rng(2)
    rate = PATHS[path].mean_rate_mbps * 1e6
    full = rate if reference.steers_rate else PATHS[path].bdp_packets
    wanted, phases, rescued = full, set(), 0
    seen = batch.obs[0].copy()
    while batch.ended[0] == 0:
        newest = reference.observation()
        np.testing.assert_allclose(batch.obs[0, -len(newest) :], newest, rtol=1e-5, atol=2e-5)
        if batch.lengths[0]:  # a history moves by one interval
            np.testing.assert_array_equal(batch.obs[0, : -len(newest)], seen[len(newest) :])
        seen = batch.obs[0].copy()
        if reference.expert is not None:
            actions, targets = batch.refresh_labels()
            target, action = reference.label()
            assert targets[0] == pytest.approx(target, rel=1e-6)
            assert actions[0, 0] == action
        # Toward some share of what the path holds, a new one now and then, and sometimes anywhere.
        wanted = wanted if rng.random() < 0.95 else full * rng.uniform(0.3, 2.0)
        action = reference.nearest(wanted) if rng.random() < 0.9 else int(rng.integers(len(reference.operations)))
        batch.actions[0, 0] = action
        cap = reference.most_in_flight()
        reference.act(action)
        batch.step()
        interval = batch.step_info(0)["interval"]
        reference.digest(interval)
        steered = interval["pacing_rate_bps"] if reference.steers_rate else interval["cwnd_bytes"] / 1500
        in_force = reference.steered if reference.steers_rate else min(reference.steered, cap)
        if steered != pytest.approx(in_force, rel=1e-6, abs=1.0):
            # Only the guard does that, and only at the floor.
            assert reference.at_floor(), (steered, reference.steered)
            reference.steered = steered
            rescued += 1
        if reference.steers_rate:
            assert interval["cwnd_bytes"] / 1500 == pytest.approx(cap, abs=1) or math.isinf(cap)
        assert batch.reward[0] == pytest.approx(reference.reward(rate), rel=1e-6, abs=1e-9)
        phases.add(reference.phases.name)
    assert batch.lengths[0] == STEPS
    assert rescued < STEPS / 50
    assert "probe" in phases


# --- The configurations ----------------------------------------------------------------------------------------------


def test_the_versions_are_what_is_known_of_them() -> None:
    first, second, third = (TrainConfig.load(config) for config in VERSIONS)
    steered = [config.agent.native()["action"]["target"] for config in (first, second, third)]
    assert steered == ["cwnd", "rate", "rate"]
    assert second.algorithm.name == "a2c"
    assert third.algorithm.name == "cross_entropy"
    assert third.algorithm.memory is not None, "recurrent"
    expert = third.agent.native()["expert"]
    assert expert["kind"] == "gain_schedule"
    assert expert["startup"] == pytest.approx(eagle.STARTUP_GAIN, rel=0.005)
    assert expert["startup"] * expert["drain"] == pytest.approx(1)
    assert tuple(expert["cycle"][:3]) == eagle.PROBE_GAINS
    assert set(expert["cycle"][3:]) == {1.0}
    assert len(expert["cycle"]) == 8


@pytest.mark.parametrize("config", VERSIONS)
def test_none_is_left_at_its_floor(config: str) -> None:
    assert TrainConfig.load(config).agent.native()["guard"]["kind"] != "none"
