"""Several learners on one path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ccgym.envs import LinkEnv, parallel_env
from ccgym.errors import ConfigError
from tests.refusals import refused

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "40p"}


def acts(env: Any, value: float = 0.0) -> dict[str, Any]:
    return {agent: np.full(1, value, np.float32) for agent in env.agents}


def test_one_learner_is_a_link_environment() -> None:
    env, single = parallel_env(1, path=PATH, episode_steps=30), LinkEnv(path=PATH, episode_steps=30)
    observations, infos = env.reset(seed=4)
    assert infos == {"flow_0": {"due": True}}
    assert env.state()[0][env.state_columns.index("link_rate_bps")] == 12e6
    assert (observations["flow_0"] == single.reset(seed=4)[0]).all()
    while env.agents:
        observations, rewards, terminated, truncated, infos = env.step(acts(env, 0.1))
        observation, reward, _, ended, info = single.step(np.full(1, 0.1, np.float32))
        assert (observations["flow_0"] == observation).all()
        assert (rewards["flow_0"], truncated["flow_0"]) == (reward, ended)
        assert not terminated["flow_0"]
    assert infos["flow_0"]["trajectory_hash"] == info["trajectory_hash"]
    assert infos["flow_0"]["summary"] == info["summary"]


def test_every_flow_has_a_clock_of_its_own() -> None:
    env = parallel_env([{}, {"extra_rtt": "60ms"}, {"start": "1s"}], path=PATH, duration="4s")
    observations, infos = env.reset(seed=1)
    assert env.agents == ["flow_0", "flow_1", "flow_2"]
    assert any(info["due"] for info in infos.values())
    latest, turns = observations, dict.fromkeys(env.agents, 0)
    while env.agents:
        due = {agent for agent, info in infos.items() if info["due"]}
        # Nonsense for those that are not due is ignored.
        choice = {agent: np.full(1, 0.1 if agent in due else np.nan, np.float32) for agent in env.agents}
        observations, rewards, _, truncated, infos = env.step(choice)
        for agent, info in infos.items():
            if info["due"]:
                turns[agent] += 1
                assert info["interval"]["duration_s"] >= 0
            elif not truncated[agent]:
                assert rewards[agent] == 0.0
                assert (observations[agent] == latest[agent]).all()
                assert "interval" not in info
        latest = observations
    assert turns["flow_0"] > turns["flow_1"] > 0
    assert turns["flow_0"] > turns["flow_2"] > 0
    assert all("summary" in info for info in infos.values())
    assert infos["flow_0"]["time_s"] == 4.0


def test_the_same_seed_gives_the_same_packets() -> None:
    def hashed(env: Any, seed: int | None) -> str:
        env.reset(seed=seed)
        while env.agents:
            env.step(acts(env, 0.05))
        return str(env.trajectory_hash)

    env, other = (parallel_env(3, "aurora", duration="6s") for _ in range(2))
    assert [hashed(env, 1), hashed(env, None)] == [hashed(other, 1), hashed(other, None)]


def test_a_step_limit_ends_it_for_all() -> None:
    env = parallel_env(2, path=PATH, episode_steps=5)
    env.reset(seed=1)
    while env.agents:
        _, _, terminated, truncated, _ = env.step(acts(env))
    assert truncated == {"flow_0": True, "flow_1": True}
    assert terminated == {"flow_0": False, "flow_1": False}


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (0, "wrong-type at agents"),
        (True, "wrong-type at agents"),
        ([], "wrong-type at agents"),
        ("two", "wrong-type at agents"),
        ([5], "wrong-type at agents[0]"),
        ([{"strat": "1s"}], "unknown-key at agents[0]: strat"),
    ],
)
def test_mistakes(wrong: Any, what: str) -> None:
    with refused(ConfigError, what):
        parallel_env(wrong, path=PATH)


def test_actions_that_are_missing_or_wrong() -> None:
    env = parallel_env(2, path=PATH)
    env.reset(seed=1)
    with refused(ConfigError, "action-shape at actions"):
        env.step({})
    with refused(ConfigError, "unknown-argument"):
        parallel_env(2, path=PATH, learner={})
