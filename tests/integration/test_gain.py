"""The example of an agent that sets the gain of the scheme below it."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np

import ccgym
from ccgym.envs import LinkEnv
from ccgym.errors import ConfigError
from tests.refusals import refused

EXAMPLE = Path(__file__).parents[2] / "examples" / "kestrel_gain.yaml"


def queueing_delay(action: float) -> float:
    """Mean round trip above the base RTT, seconds, of an episode in which every decision is the same."""
    env = gymnasium.make("ccgym/Link-v0", config=str(EXAMPLE), path={"rate": "48mbps", "rtt": "40ms", "queue": "4bdp"})
    env.reset(seed=1)
    delays = []
    for step in range(24):
        *_, terminated, truncated, info = env.step(np.array([action], dtype=np.float32))
        if step >= 8:
            delays.append(info["interval"]["mean_rtt_s"] - info["interval"]["min_rtt_s"])
        assert not terminated
        if truncated:
            break
    env.close()
    return float(np.mean(delays))


def test_what_waits_is_a_multiple_of_the_gain() -> None:
    quarter, own, twice = queueing_delay(-2.0), queueing_delay(0.0), queueing_delay(1.0)
    assert 1.4 * quarter < own < twice / 1.4


def test_a_gain_of_one_leaves_the_scheme_as_it_is() -> None:
    path = {"rate": "12mbps", "rtt": "40ms", "queue": "80p", "loss": "0.1%"}
    env = LinkEnv(config=str(EXAMPLE), path=path, learner={"profile": "tcp"}, duration="10s")
    env.reset(seed=1)
    done = False
    while not done:
        *_, done, info = env.step(np.zeros(1, dtype=np.float32))
    seed = int(info["simulator_seed"])
    alone = ccgym.simulate(path, flows=[{"scheme": "kestrel", "profile": "tcp"}], duration="10s", seed=seed)
    assert info["trajectory_hash"] == alone.trajectory_hash


def test_a_scheme_without_a_gain_is_refused() -> None:
    with refused(ConfigError, "agent-invalid at agent: scheme learned"):
        LinkEnv(config=str(EXAMPLE), set={"agent.action.inner": "reno"}).reset(seed=1)
