"""The critic that sees the path's truth: what it is shown, and that the policy is shown nothing of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError
from ccgym.training.config import TrainConfig
from ccgym.training.privileged_critic import (
    PRIVILEGED_FEATURES,
    PrivilegedCriticPolicy,
    PrivilegedEnv,
    privileged_features,
)
from tests.refusals import refused

SIZE = 30
"""Numbers that Aurora observes."""


def environments(count: int = 3, steps: int = 12) -> PrivilegedEnv:
    env = PrivilegedEnv(count, "aurora", episode_steps=steps)
    env.seed(7)
    return env


def test_the_truth_stands_behind_what_the_policy_sees() -> None:
    path = NetworkPath(rate="4mbps", rtt="200ms", queue="100p", loss=0.02)
    env = PrivilegedEnv(1, "aurora", path=path, learner={"start_rate": "2mbps"})
    (row,) = env.reset()
    named = dict(zip(PRIVILEGED_FEATURES, row[SIZE:].tolist(), strict=True))
    pipe = 4e6 * 0.2 / 12_000
    assert row.shape == (SIZE + len(PRIVILEGED_FEATURES),)
    assert named["ln(link rate / 1 Mbit/s)"] == pytest.approx(np.log(4), rel=1e-6)
    assert named["ln(base RTT / 100 ms)"] == pytest.approx(np.log(2), rel=1e-6)
    assert named["ln(1 + queue limit / BDP)"] == pytest.approx(np.log1p(100 / pipe), rel=1e-6)
    assert named["10 × random loss"] == pytest.approx(0.2, rel=1e-6)
    assert named["ln(flows)"] == 0
    assert named["ln(pacing rate / link rate)"] == pytest.approx(np.log(0.5), rel=1e-6)
    assert named["ln(window / BDP)"] == 0  # there is no window


def test_what_is_unlimited_or_unknown_is_zero() -> None:
    names = ("link_rate_bps", "base_rtt_s", "backlog_packets", "queue_limit_packets", "loss", "flows")
    truth = {name: np.zeros(2) for name in (*names, "pacing_rate_bps", "cwnd_packets")}
    truth["queue_limit_packets"][:] = truth["cwnd_packets"][:] = np.inf
    truth["backlog_packets"][:] = np.nan
    assert not privileged_features(truth).any()


def test_an_episode_ends_with_its_own_truth() -> None:
    env = environments()
    first = env.reset()
    for step in range(12):
        observations, _, dones, infos = env.step(np.zeros((3, 1), dtype=np.float32))
        assert dones.all() == (step == 11)
    link, rtt = SIZE, SIZE + 1
    for index, info in enumerate(infos):
        last = info["terminal_observation"]
        assert last.shape == observations[index].shape
        assert last[[link, rtt]] == pytest.approx(first[index, [link, rtt]])
        assert last[link] != observations[index, link]  # the next episode has another path


def test_actions_do_not_depend_on_the_truth() -> None:
    env = environments()
    model = PPO(
        PrivilegedCriticPolicy,
        env,
        n_steps=4,
        batch_size=12,
        seed=1,
        policy_kwargs={"net_arch": {"pi": [8], "vf": [16]}},
    )
    observations = env.reset()
    blind, _ = model.predict(observations[:, :SIZE], deterministic=True)
    seeing, _ = model.predict(observations, deterministic=True)
    assert np.array_equal(blind, seeing)
    other = observations.copy()
    other[:, SIZE:] += 1
    with torch.no_grad():
        values = [model.policy.predict_values(torch.from_numpy(rows)) for rows in (observations, other)]
        latents = [model.policy.mlp_extractor.forward_actor(torch.from_numpy(rows)) for rows in (observations, other)]
    assert not torch.equal(*values)
    assert torch.equal(*latents)
    assert model.policy.actor_size == SIZE


@pytest.mark.parametrize("setting", ["algorithm.name=recurrent_ppo", "algorithm.normalize.observation=true"])
def test_what_does_not_go_with_it_is_refused(setting: str) -> None:
    with refused(ConfigError, "options-conflict at algorithm"):
        TrainConfig.load("aurora", [setting])
