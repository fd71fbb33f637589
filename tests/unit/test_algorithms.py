"""The algorithms other than PPO: what their configurations say, and the learners they mean."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ccgym.envs import LinkEnv
from ccgym.errors import ConfigError
from ccgym.training.config import TrainConfig
from ccgym.training.environments import passive_agent
from ccgym.training.model import build_model, choose_device, weights_hash
from tests.refusals import refused
from tests.unit.test_training_config import read_algorithm, still

# --- Configurations --------------------------------------------------------------------------------------------------


def test_an_algorithm_without_name_is_ppo() -> None:
    assert read_algorithm({"n_envs": 16}).name == "ppo"
    assert read_algorithm({"name": "a2c"}).n_steps == 8


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("algorithm={name: a2c, clip_range: 0.1}", "unknown-key at algorithm.clip_range"),
        ("algorithm={name: a2c, critic: privileged, normalize: {observation: true}}", "options-conflict at algorithm"),
        ("algorithm={name: dagger}", "no-expert at agent.expert"),
        ("algorithm={name: dager}", "unknown-kind at algorithm"),
        ("algorithm={name: dagger, beta: 2}", "out-of-range at algorithm.beta"),
        ("algorithm={name: dagger, perturbation: {evry: 5}}", "unknown-key at algorithm.perturbation.evry"),
        ("algorithm={name: dagger, learning_rate: {cosine: [1]}}", "wrong-type at algorithm.learning_rate"),
    ],
)
def test_mistakes_name_their_place(override: str, expected: str) -> None:
    with refused(ConfigError, expected):
        TrainConfig.load("link", [override])


def test_baselines_see_nothing_and_have_no_expert() -> None:
    agent = passive_agent(TrainConfig.load("indigo").agent, "bbr").native()
    assert "expert" not in agent
    assert agent["clock"] == TrainConfig.load("indigo").agent.native()["clock"]


@pytest.mark.parametrize("scheme", ["oracle", "bbr", "cubic"])
def test_baselines_of_an_agent_with_ecn_mark_as_ever(scheme: str) -> None:
    agent = TrainConfig.load("link", ["agent.ecn=true"]).agent
    baseline = passive_agent(agent, scheme)
    assert agent.ecn
    assert not baseline.ecn
    env = LinkEnv(agent=baseline, episode_steps=2)
    env.reset(seed=1)
    assert env.step(env.action_space.sample())[4]["time_s"] > 0


# --- Learners --------------------------------------------------------------------------------------------------------


def test_a2c_is_what_its_configuration_says() -> None:
    settings = {"name": "a2c", "n_envs": 2, "n_steps": 5, "gamma": 0.9, "ent_coef": 0.02, "net_arch": [7], "vf_coef": 2}
    model: Any = build_model(read_algorithm(settings), still(), 1, "cpu")
    assert (model.gamma, model.ent_coef, model.vf_coef, model.n_steps) == (0.9, 0.02, 2, 5)
    assert isinstance(model.policy.optimizer, torch.optim.RMSprop)
    assert [layer.out_features for layer in model.policy.mlp_extractor.policy_net[::2]] == [7]
    adam: Any = build_model(
        read_algorithm({**settings, "use_rms_prop": False, "adam_epsilon": 1e-4}), still(), 1, "cpu"
    )
    assert isinstance(adam.policy.optimizer, torch.optim.Adam)
    assert adam.policy.optimizer.defaults["eps"] == 1e-4


def test_dagger_is_what_its_configuration_says() -> None:
    settings = {
        "name": "dagger",
        "n_envs": 2,
        "lstm": {"hidden_size": 6, "critic": "none"},
        "weight_decay": 0.5,
        "net_arch": [3],
    }
    algorithm = read_algorithm(settings)
    model: Any = build_model(algorithm, still(), 1, "cpu")
    assert model.policy.optimizer.defaults["weight_decay"] == 0.5
    assert (model.policy.lstm_actor.hidden_size, model.policy.lstm_critic) == (6, None)
    assert [layer.out_features for layer in model.policy.mlp_extractor.policy_net[::2]] == [3]
    assert weights_hash(model) == weights_hash(build_model(algorithm, still(), 1, "cpu"))
    assert choose_device("auto", algorithm) == "cpu"
