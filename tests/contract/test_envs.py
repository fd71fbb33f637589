"""The environments keep the contracts of the libraries that use them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.performance import benchmark_step

import ccgym
from ccgym.config.configurations import FOLDERS, PACKAGED

PATH = {"rate": "12mbps", "rtt": "40ms", "queue": "40p"}


def quiet(check: Callable[[], object], *known: str) -> None:
    """Run a check; only warnings with one of these texts are allowed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check()
    unexpected = [str(one.message) for one in caught if not any(text in str(one.message) for text in known)]
    assert unexpected == []


CONFIGS = sorted(file.stem for folder in FOLDERS for file in (PACKAGED / folder).glob("*.yaml"))


def preset(config: str) -> Any:
    # One environment has one learner; where a configuration has several, the first stays.
    return gymnasium.make("ccgym/Link-v0", config=config, set={"environment.learners": 1}).unwrapped


def known(config: str) -> tuple[str, ...]:
    """What checkers may say of a configuration's environment. Aurora counts its action in steps of 2.5 or 5 % of the
    rate, as published, so its box is ±40 or ±20, and both checkers would rather see ±1.
    """
    steps = preset(config).settings.agent.native()["action"]["map"].get("delta") in (0.025, 0.05)
    return ("symmetric and normalized",) if steps else ()


@pytest.mark.parametrize("config", CONFIGS)
def test_gymnasium_s_checker(config: str) -> None:
    quiet(lambda: check_env(preset(config)), *known(config))


@pytest.mark.parametrize("config", CONFIGS)
def test_stable_baselines_checker(config: str) -> None:
    import stable_baselines3.common.env_checker as checker

    quiet(lambda: checker.check_env(preset(config), warn=True), *known(config))


@pytest.mark.parametrize("config", CONFIGS)
def test_samples_of_the_action_space_make_sense(config: str) -> None:
    """No action moves a rate or a window by more than a factor of three at once, or beyond what an operation says.

    Orca's may move it by four, as published.
    """
    env = preset(config)
    if isinstance(env.action_space, gymnasium.spaces.Discrete):
        assert env.action_space.n <= 10
        return
    chosen = env.settings.agent.native()["action"]
    top = float(env.action_space.high.max())
    assert (env.action_space.low == -env.action_space.high).all()
    factor = chosen["map"]["base"] ** top if "base" in chosen["map"] else 1 + chosen["map"]["delta"] * top
    assert 1.1 < factor <= (4.0 if config == "orca" else 3.0)


def test_sampled_actions_use_the_range_of_rates() -> None:
    env = gymnasium.make("ccgym/Aurora-v0")
    env.action_space.seed(1)
    env.reset(seed=1)
    rates = [env.step(env.action_space.sample())[4]["interval"]["pacing_rate_bps"] for _ in range(300)]
    low, high = 40 * 12_000, 1000 * 12_000
    assert sum(rate in (low, high) for rate in rates) < 150, "not from one limit to the other"
    assert len({round(rate / 1e5) for rate in rates}) > 50


def test_a_rescaled_action_satisfies_the_checkers() -> None:
    import stable_baselines3.common.env_checker as checker

    env = gymnasium.wrappers.RescaleAction(preset("aurora"), np.float32(-1), np.float32(1))
    quiet(lambda: checker.check_env(env, warn=True))
    quiet(lambda: check_env(env), "different from the unwrapped version")
    env.reset(seed=1)
    before = env.step(np.zeros(1, np.float32))[4]["interval"]["pacing_rate_bps"]
    assert env.step(np.ones(1, np.float32))[4]["interval"]["pacing_rate_bps"] == pytest.approx(2 * before, abs=2)


def test_stable_baselines_checks_discrete_actions_too() -> None:
    import stable_baselines3.common.env_checker as checker

    agent = {
        "clock": "10ms",
        "observation": {"features": ["loss_fraction"]},
        "action": {"map": ["/2", "+0", "*2"], "target": "cwnd"},
        "reward": {"terms": [{"term": "throughput", "weight": 1}]},
        "startup": "10p",
    }
    env = gymnasium.make("ccgym/Link-v0", path=PATH, agent=agent).unwrapped
    quiet(lambda: check_env(env))
    quiet(lambda: checker.check_env(env))


def test_pettingzoo_s_parallel_test(capsys: pytest.CaptureFixture[str]) -> None:
    import pettingzoo.test as tests

    from ccgym.envs import parallel_env

    env = parallel_env([{}, {"start": "1s"}, {"extra_rtt": "20ms"}], path=PATH, duration="3s")
    quiet(lambda: tests.parallel_api_test(env, num_cycles=500), "unknown option 'options'")  # its own
    tests.parallel_seed_test(lambda: parallel_env(2, "aurora", duration="3s"))


def test_asynchronous_workers() -> None:
    envs = gymnasium.make_vec(
        "ccgym/Aurora-v0", num_envs=2, vectorization_mode="async", path=ccgym.NetworkPath.from_any(PATH)
    )
    try:
        native = gymnasium.make_vec("ccgym/Aurora-v0", num_envs=2, path=PATH)
        assert (envs.reset(seed=1)[0] == native.reset(seed=1)[0]).all()
        for action in np.random.default_rng(1).normal(size=(5, 2, 1)).astype(np.float32):
            one, other = envs.step(action), native.step(action)
            assert (one[0] == other[0]).all()
            assert (one[1] == other[1]).all()
        envs.call("set_progress", 0.5)
    finally:
        envs.close()


def test_the_wrappers_that_people_use() -> None:
    from gymnasium.wrappers import RecordEpisodeStatistics, TransformReward
    from gymnasium.wrappers.vector import DictInfoToList
    from gymnasium.wrappers.vector import RecordEpisodeStatistics as VectorStatistics

    env = RecordEpisodeStatistics(TransformReward(gymnasium.make("ccgym/Link-v0", episode_steps=3), lambda r: 2 * r))
    env.reset(seed=1)
    for _ in range(3):
        *_, info = env.step(env.action_space.sample())
    assert info["episode"]["l"] == 3
    envs = DictInfoToList(VectorStatistics(gymnasium.make_vec("ccgym/Link-v0", num_envs=2, episode_steps=3)))
    envs.reset(seed=1)
    for _ in range(3):
        *_, infos = envs.step(envs.action_space.sample())
    assert infos[1]["final_info"]["summary"]["steps"] == 3
    assert infos[1]["final_obs"].shape == envs.single_observation_space.shape
    limited = gymnasium.make("ccgym/Link-v0", max_episode_steps=2)
    limited.reset(seed=1)
    limited.step(limited.action_space.sample())
    assert limited.step(limited.action_space.sample())[3]


def test_a_specification_makes_the_same_again() -> None:
    env = gymnasium.make("ccgym/Aurora-v0", path="77.72mbps", duration="5s")
    assert env.spec is not None
    again = gymnasium.make(env.spec)
    assert (env.reset(seed=1)[0] == again.reset(seed=1)[0]).all()
    envs = gymnasium.make_vec("ccgym/Aurora-v0", num_envs=2, max_episode_steps=3)
    envs.reset(seed=1)
    assert [bool(envs.step(np.zeros((2, 1), np.float32))[3].all()) for _ in range(3)] == [False, False, True]


def test_the_design_s_lines_run() -> None:
    path = ccgym.NetworkPath.named("77.72mbps")
    env = gymnasium.make("ccgym/Aurora-v0", path=path, backend="sim")
    env.reset(seed=1)
    assert benchmark_step(env, target_duration=1) > 1000
    envs: Any = gymnasium.make_vec("ccgym/Aurora-v0", num_envs=64)
    assert envs.reset(seed=1)[0].shape == (64, 30)
