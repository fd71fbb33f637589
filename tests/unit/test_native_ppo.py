"""PPO with rollouts in the native core and gradients in parts, against Stable-Baselines3's own."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn

from ccgym import _core
from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.training.config import TrainConfig
from ccgym.training.environments import Environments, normalized
from ccgym.training.gaussian_policy import GaussianPolicy
from ccgym.training.model import build_model, weights_hash
from ccgym.training.normalizer import normalized_rewards
from ccgym.training.ppo import NativePPO, rolling_env
from tests.trainings import ready


def learner(*settings: str, kind: type[PPO] = NativePPO) -> tuple[Any, Any]:
    """A learner of small rollouts on Aurora's paths, its episodes begun: 4 environments × 60 decisions."""
    config = TrainConfig.load(
        "aurora",
        ["algorithm.n_envs=4", "algorithm.n_steps=60", "algorithm.batch_size=120", "algorithm.n_epochs=2",
         "environment.episode.steps=25", *settings],
    )  # fmt: skip
    model, env = begun(config)
    if kind is PPO:
        model.__class__ = PPO
    return model, env


def begun(config: TrainConfig) -> tuple[Any, Any]:
    """The learner of a configuration and its environments, their episodes begun."""
    env: Any = normalized(Environments(config).training(), config.algorithm)
    model: Any = build_model(config.algorithm, env, 1, "cpu")
    env.seed(3)
    return ready(model, env), env


def collect(model: Any, env: Any) -> Any:
    """One rollout."""
    callback = CallbackList([])
    callback.init_callback(model)
    model.collect_rollouts(env, callback, model.rollout_buffer, model.n_steps)
    return model.rollout_buffer


# --- Rollouts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("critic", ["privileged", "same"])
@pytest.mark.parametrize("reward", ["true", "false"])
def test_a_rollout_is_the_one_that_sb3_takes(critic: str, reward: str) -> None:
    """The same noise, environments and statistics: only the rounding of the policy's mean differs."""
    settings = f"algorithm.critic={critic}", f"algorithm.normalize.reward={reward}"
    buffers, models, envs = [], [], []
    for kind in (NativePPO, PPO):
        model, env = learner(*settings, kind=kind)
        buffers.append(copy.deepcopy(collect(model, env)))
        models.append(model)
        envs.append(env)
    ours, theirs = buffers
    assert ours.full
    assert ours.pos == theirs.pos
    for name in ("observations", "actions", "rewards", "values", "log_probs", "advantages", "returns"):
        found, expected = getattr(ours, name), getattr(theirs, name)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3, err_msg=name)
    np.testing.assert_array_equal(ours.episode_starts, theirs.episode_starts)
    assert ours.episode_starts.sum() > 4, "episodes end within the rollout"
    np.testing.assert_allclose(models[0]._last_obs, models[1]._last_obs, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(models[0]._last_episode_starts, models[1]._last_episode_starts)
    assert models[0].num_timesteps == models[1].num_timesteps == 240
    assert [one["l"] for one in models[0].ep_info_buffer] == [one["l"] for one in models[1].ep_info_buffer]
    rewards = [[one["r"] for one in model.ep_info_buffer] for model in models]
    np.testing.assert_allclose(*rewards, rtol=1e-3)
    if isinstance(envs[0], VecNormalize):
        np.testing.assert_allclose(envs[0].returns, envs[1].returns, rtol=1e-3)
        np.testing.assert_allclose(envs[0].ret_rms.var, envs[1].ret_rms.var, rtol=1e-3)


def test_a_rollout_is_what_steps_with_its_actions_are() -> None:
    """To the bit: observations, rewards, ground truth, and what is said of the episodes that end."""
    model, env = learner("algorithm.log_std_init=3", "algorithm.critic=same")
    plain, rolled = GaussianPolicy.of(model.policy), env.venv
    assert plain is not None
    _, stepwise = learner("algorithm.critic=same")
    stepped = stepwise.venv
    rolled.keep_terminal_privileged = stepped.keep_terminal_privileged = True
    noise = np.random.default_rng(2).standard_normal((4, 60, 1), dtype=np.float32)
    rollout = rolled.rollout(plain.actor(), noise)
    box, ends = rolled.action_space, iter(rollout.ends)
    for step in range(60):
        np.testing.assert_array_equal(rollout.observations[:, step], stepped._batch.obs)
        np.testing.assert_array_equal(
            rollout.privileged[:, step], np.stack(list(stepped.privileged().values()), axis=1)
        )
        _, rewards, dones, infos = stepped.step(np.clip(rollout.actions[:, step], box.low, box.high))
        np.testing.assert_array_equal(rollout.rewards[:, step], rewards)
        for index in np.flatnonzero(dones):
            end, info = next(ends), infos[index]
            assert (end.index, end.step) == (index, step)
            np.testing.assert_array_equal(end.observation, info["terminal_observation"])
            assert list(end.privileged) == list(info["terminal_privileged"].values())
            for name in ("summary", "reward_term_sums", "trajectory_hash", "path"):
                assert end.info[name] == info[name], name
            assert (end.info["episode"]["r"], end.info["episode"]["l"]) == (info["episode"]["r"], info["episode"]["l"])
    assert next(ends, None) is None
    np.testing.assert_array_equal(rollout.last_observations, stepped._batch.obs)


def test_rewards_are_normalized_to_the_bit() -> None:
    rng = np.random.default_rng(1)
    rewards = rng.normal(size=(5, 40)).astype(np.float32)
    dones = rng.random((5, 40)) < 0.1
    ours, theirs = (VecNormalize(SB3LinkVecEnv(5, "aurora"), norm_obs=False, gamma=0.9) for _ in range(2))
    stepwise = np.zeros_like(rewards)
    for step in range(40):
        theirs._update_reward(rewards[:, step])
        stepwise[:, step] = theirs.normalize_reward(rewards[:, step])
        theirs.returns[dones[:, step]] = 0
    np.testing.assert_array_equal(normalized_rewards(ours, rewards, dones), stepwise)
    np.testing.assert_array_equal(ours.returns, theirs.returns)
    for name in ("mean", "var", "count"):
        assert getattr(ours.ret_rms, name) == getattr(theirs.ret_rms, name), name


@pytest.mark.parametrize("activation", ["tanh", "relu", "elu", "silu"])
def test_the_native_policy_is_torch_s(activation: str) -> None:
    model, env = learner(f"algorithm.activation={activation}", "algorithm.log_std_init=-20")
    plain = GaussianPolicy.of(model.policy)
    rollout = env.venv.rollout(plain.actor(), np.zeros((4, 3, 1), np.float32))
    seen = torch.from_numpy(rollout.observations.reshape(12, -1)[:, : plain.inputs])
    with torch.no_grad():
        layers = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
        mean = nn.Sequential(*copy.deepcopy(layers)).double()(seen.double()).float().numpy()
    np.testing.assert_allclose(rollout.actions.reshape(12, 1), mean, rtol=1e-6)


def test_actions_are_clipped_for_the_flow_only() -> None:
    model, env = learner("agent.action.bounds=[-1, 1]", "algorithm.log_std_init=3")
    buffer = collect(model, env)
    assert np.abs(buffer.actions).max() > 10
    episodes = env.venv.capture()["environments"]["episodes"]
    assert max(float(abs(one["actions"]).max()) for one in episodes) == 1.0


# --- What is done as before -------------------------------------------------------------------------------------------


def test_other_policies_and_environments_are_left_to_sb3() -> None:
    model, env = learner()
    assert GaussianPolicy.of(model.policy) is not None
    assert rolling_env(env) is env.venv
    _, observed = learner("algorithm.critic=same", "algorithm.normalize={observation: true}")
    assert isinstance(observed, VecNormalize)
    assert rolling_env(observed) is None, "statistics move with every step"
    policy = copy.deepcopy(model.policy)
    policy.mlp_extractor.policy_net[1] = nn.Softplus()
    assert GaussianPolicy.of(policy) is None
    with_picture = SB3LinkVecEnv(1, "aurora", render_mode="ansi")
    assert not with_picture.rolls
    assert rolling_env(with_picture) is None
    discrete = SB3LinkVecEnv(1, "indigo")
    assert isinstance(discrete.action_space, spaces.Discrete)
    assert not discrete.rolls


def test_other_policies_learn_what_sb3_s_would() -> None:
    settings = "algorithm.critic=same", "algorithm.gradient_threads=1", "algorithm.normalize={observation: true}"
    hashes = set()
    for kind in (NativePPO, PPO):
        model, env = learner(*settings, kind=kind)
        collect(model, env)
        model.train()
        hashes.add(weights_hash(model))
    assert len(hashes) == 1


def test_parts_that_do_not_fit_are_refused() -> None:
    env = SB3LinkVecEnv(2, "aurora")
    env.seed(1)
    ones = np.ones(1, np.float32)
    wide = _core.Actor([(np.ones((1, 99), np.float32), ones)], "tanh", ones, -ones, ones)
    env.reset()
    with pytest.raises(ValueError, match="99") as caught:
        env.rollout(wide, np.zeros((2, 3, 1), np.float32))
    assert vars(caught.value)["code"] == "shape-mismatch"
    with pytest.raises(ValueError, match="activation: found sine, expected tanh"):
        _core.Actor([(np.ones((1, 30), np.float32), ones)], "sine", ones, -ones, ones)


# --- The update -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        [],
        ["algorithm.clip_range_vf=0.01", "algorithm.ent_coef=0.01", "algorithm.activation=silu"],
        ["algorithm.target_kl=0.0001", "algorithm.activation=elu"],
        ["algorithm.critic=same", "algorithm.activation=relu", "algorithm.net_arch=[8]", "algorithm.clip_range=0.001"],
    ],
    ids=["plain", "clipped values", "early stop", "clipped ratios"],
)
def test_an_update_in_parts_is_sb3_s(settings: list[str]) -> None:
    weights, recorded = [], []
    for parts in (1, 2):
        model, env = learner(*settings)
        collect(model, env)
        model.gradient_threads = parts
        np.random.seed(5)  # noqa: NPY002
        model.train()
        weights.append(torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()]))
        recorded.append(dict(model.logger.name_to_value))
    np.testing.assert_allclose(weights[1].numpy(), weights[0].numpy(), rtol=1e-3, atol=2e-5)
    assert recorded[0].keys() == recorded[1].keys()
    for name, value in recorded[0].items():
        assert recorded[1][name] == pytest.approx(value, rel=1e-3, abs=1e-5), name


def test_a_model_is_saved_as_sb3_s(tmp_path: Any) -> None:
    model, env = learner()
    collect(model, env)
    model.train()
    model.save(tmp_path / "model.zip")
    loaded = PPO.load(tmp_path / "model.zip", device="cpu")
    assert weights_hash(loaded) == weights_hash(model)
