"""The face for stable-baselines3."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor

from ccgym.envs import LinkEnv, SB3LinkVecEnv
from ccgym.errors import ConfigError
from tests.refusals import refused

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "40p"}


def draws(steps: int, count: int, seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(steps, count, 1)).astype(np.float32)


def test_it_equals_single_environments() -> None:
    envs = SB3LinkVecEnv(3, "aurora", episode_steps=10)
    singles = [LinkEnv("aurora", episode_steps=10) for _ in range(3)]
    envs.seed(4)
    observations = envs.reset()
    for index, single in enumerate(singles):
        assert (single.reset(seed=4 + index)[0] == observations[index]).all()
    sums = np.zeros(3)
    for action in draws(25, 3):
        observations, rewards, dones, infos = envs.step(action)
        assert rewards.dtype == np.float32
        for index, single in enumerate(singles):
            observation, reward, _, truncated, info = single.step(action[index])
            sums[index] += reward
            assert (dones[index], rewards[index]) == (truncated, np.float32(reward))
            if not truncated:
                assert infos[index] == {}
            else:
                end = infos[index]
                assert (end["terminal_observation"] == observation).all()
                assert end["TimeLimit.truncated"] is True
                assert end["episode"]["r"] == pytest.approx(sums[index])
                assert end["episode"]["l"] == 10
                assert end["episode"]["t"] >= 0
                assert sum(end["reward_term_sums"].values()) == pytest.approx(sums[index])
                assert end["summary"] == info["summary"]
                assert end["trajectory_hash"] == info["trajectory_hash"]
                sums[index] = 0.0
                observation, _ = single.reset()
            assert (observation == observations[index]).all()


def test_infos_of_every_step_when_asked_for() -> None:
    envs = SB3LinkVecEnv(2, path=PATH, privileged=True, episode_steps=2)
    envs.reset()
    assert envs.reset_infos[0]["privileged"]["link_rate_bps"] == 12e6
    infos = envs.step(draws(1, 2)[0])[3]
    assert infos[1].keys() == {"privileged"}
    infos = envs.step(draws(1, 2)[0])[3]
    assert infos[1].keys() >= {"summary", "privileged", "terminal_privileged"}


def test_attributes_and_methods() -> None:
    envs = SB3LinkVecEnv(2, path=PATH, episode_steps=1)
    envs.reset()
    assert envs.get_attr("render_mode") == [None, None]
    assert envs.get_attr("num_envs", 0) == [2]
    assert len(envs.get_attr("np_random")) == 2
    assert len(set(envs.get_attr("trajectory_hash"))) == 1
    assert not envs.has_attr("no_such_thing")
    assert envs.env_is_wrapped(Monitor) == [True, True]
    assert envs.env_is_wrapped(VecMonitor) == [False, False]
    envs.set_attr("paths", {"kind": "fixed", "path": {**PATH, "rate": "3mbps"}})
    envs.reset()
    assert envs.step(draws(1, 2)[0])[3][1]["path"]["rate_mbps"] == 3.0
    with refused(ConfigError, "unsupported"):
        envs.set_attr("paths", "aurora", 0)
    one, other = ({"kind": "fixed", "path": {**PATH, "rate": rate}} for rate in ("1mbps", "2mbps"))
    stages = [{"until": 0.5, "paths": one}, {"until": 1.0, "paths": other}]
    envs.set_attr("paths", {"kind": "stages", "stages": stages})
    rates = []
    for progress in (0.2, 0.6):
        assert envs.env_method("set_progress", progress) == [None, None]
        envs.reset()
        rates.append(envs.step(draws(1, 2)[0])[3][1]["path"]["rate_mbps"])
    assert rates == [1.0, 2.0]
    with pytest.raises(AttributeError, match="no method 'fly'"):
        envs.env_method("fly")


def test_options_and_seeds_are_for_one_reset() -> None:
    envs = SB3LinkVecEnv(2, "aurora", episode_steps=1)
    envs.seed(1)
    first = envs.reset()
    envs.set_options({"path": PATH})
    envs.reset()
    ends = envs.step(draws(1, 2)[0])[3]
    assert [end["path"]["rate_mbps"] for end in ends] == [12.0, 12.0]
    assert envs.step(draws(1, 2)[0])[3][0]["path"]["rate_mbps"] < 12.0
    envs.seed(1)
    assert (envs.reset() == first).all()


@pytest.mark.parametrize("steps", [0, 1, 37])
def test_what_was_captured_goes_on_bit_for_bit(steps: int) -> None:
    def ran() -> SB3LinkVecEnv:
        envs = SB3LinkVecEnv(3, "aurora", episode_steps=20, journal=True)
        envs.seed(3)
        envs.reset()
        # One of them begins again on its own, so that the episodes differ in length.
        for place, action in enumerate(draws(steps, 3)):
            envs.step(action)
            if place == 5:
                envs._batch.begin(1, envs._generators[1])
        return envs

    envs = ran()
    state = pickle.loads(pickle.dumps(envs.capture()))
    again = SB3LinkVecEnv(3, "aurora", episode_steps=20, journal=True)
    assert (again.restore(state) == envs._batch.obs).all()
    assert again.get_attr("trajectory_hash") == envs.get_attr("trajectory_hash")
    ends = 0
    for action in draws(45, 3, seed=2):
        one, other = envs.step(action), again.step(action)
        assert all((a == b).all() for a, b in zip(one[:3], other[:3], strict=True))
        for end, same in zip(one[3], other[3], strict=True):
            if end:
                ends += 1
                assert end["episode"]["r"] == same["episode"]["r"]
                assert end["episode"]["l"] == same["episode"]["l"]
                assert end["reward_term_sums"] == same["reward_term_sums"]
                assert end["trajectory_hash"] == same["trajectory_hash"]
    assert ends >= 6


def test_a_trace_is_found_again() -> None:
    envs = SB3LinkVecEnv(1, path="77.72mbps", duration="2s", journal=True)
    envs.reset()
    envs.step(draws(1, 1)[0])
    again = SB3LinkVecEnv(1, path=PATH, duration="2s", journal=True)
    again.restore(pickle.loads(pickle.dumps(envs.capture())))
    assert again.get_attr("trajectory_hash") == envs.get_attr("trajectory_hash")
    assert again.capture()["episodes"][0]["path"] == envs.capture()["episodes"][0]["path"]


def test_capture_needs_a_journal_and_a_beginning() -> None:
    with refused(ConfigError, "argument-missing"):
        SB3LinkVecEnv(1, path=PATH).capture()
    with refused(ConfigError, "call-order"):
        SB3LinkVecEnv(1, path=PATH, journal=True).capture()
    envs = SB3LinkVecEnv(2, path=PATH, journal=True)
    envs.reset()
    with refused(ConfigError, "resume-changed"):
        SB3LinkVecEnv(1, path=PATH, journal=True).restore(envs.capture())
