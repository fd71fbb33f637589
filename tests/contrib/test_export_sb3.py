"""From a model that Stable-Baselines3 saved to a scheme: the four algorithms, statistics of features, and mistakes."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

import ccgym
from ccgym.cli.main import main as cli
from ccgym.contrib.others import export_any
from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.envs.settings import Settings
from ccgym.errors import ConfigError
from ccgym.schemes import policies
from ccgym.training.config import TrainConfig
from tests.integration.tiny_agent import DISCRETE, TINY
from tests.refusals import explained, refused

BOUNDED = "agent.action.bounds=[-0.5, 2.0]"

SMALL: dict[str, Any] = {"policy": "MlpPolicy", "seed": 1}
REPLAY = {**SMALL, "learning_starts": 4, "buffer_size": 100}

MAKERS: dict[str, Callable[[Any], BaseAlgorithm]] = {
    "ppo": lambda env: PPO(env=env, n_steps=8, batch_size=16, policy_kwargs={"net_arch": [8]}, **SMALL),
    "a2c": lambda env: A2C(env=env, n_steps=8, policy_kwargs={"net_arch": [8]}, **SMALL),
    "sac": lambda env: SAC(env=env, policy_kwargs={"net_arch": [8]}, **REPLAY),
    "td3": lambda env: TD3(env=env, policy_kwargs={"net_arch": [8]}, **REPLAY),
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.yaml"
    file.write_text(TINY, encoding="utf-8")
    return file


def environments(config: TrainConfig) -> SB3LinkVecEnv:
    return SB3LinkVecEnv(2, Settings.of(config.environment, config.agent))


def trained(kind: str, env: Any, file: Path) -> BaseAlgorithm:
    """A model that has learned a little, with weights large enough for answers all over the range."""
    model = MAKERS[kind](env)
    model.learn(16)
    with torch.no_grad():
        for weights in model.policy.parameters():
            weights.mul_(6.0)
    model.save(file)
    return model


@pytest.mark.parametrize(
    ("kind", "overrides"),
    [
        ("ppo", []), ("a2c", []), ("sac", []), ("td3", []),
        ("ppo", [DISCRETE]), ("a2c", [DISCRETE]), ("sac", [BOUNDED]), ("td3", [BOUNDED]),
    ],
)  # fmt: skip
def test_a_model_becomes_a_scheme(kind: str, overrides: list[str], config: Path, tmp_path: Path) -> None:
    settings = TrainConfig.load(config, overrides)
    env = environments(settings)
    file = tmp_path / "mine.zip"
    model = trained(kind, env, file)
    made = export_any(file, config=settings, episodes=2)
    assert made.onnx == tmp_path / "mine.onnx"
    card = made.card
    assert (card.name, card.training["algorithm"], card.training["steps"]) == ("mine", kind, 16)
    assert card.training["checkpoint"]["file"] == "mine.zip"
    assert card.training["config"].keys() == {"name", "agent", "environment"}
    assert card.parity["decisions"] == 120
    # What SB3's own `predict` answers, which is how users run their models.
    observations = np.random.default_rng(1).normal(size=(50, card.policy.observation_size)).astype(np.float32)
    expected, _ = model.predict(observations, deterministic=True)
    found, _ = policies.load(made.onnx).native.decide(observations, None)
    np.testing.assert_allclose(found.reshape(50), expected.reshape(50), atol=1e-5)
    assert np.ptp(found) > 0.1
    # A scheme like any other.
    path = ccgym.NetworkPath(rate="8mbps", rtt="20ms", queue="30p")
    run = ccgym.simulate(path, flows=[str(made.onnx)], duration="2s")
    assert (run.flows[0].scheme, run.flows[0].sent_packets > 10) == ("mine", True)


def test_statistics_are_part_of_the_scheme(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    env = VecNormalize(environments(TrainConfig.load(config)))
    model = trained("sac", env, tmp_path / "mine.zip")
    env.save(str(tmp_path / "vecnormalize.pkl"))
    words = ["train", "export", str(tmp_path / "mine.zip"), "--config", str(config), "--episodes", "1"]
    assert cli([*words, "--normalize", str(tmp_path / "vecnormalize.pkl"), "-o", str(tmp_path / "normal.onnx")]) == 0
    assert cli([*words, "--algorithm", "sac", "-o", str(tmp_path / "plain.onnx")]) == 0
    assert "to use it:" in capsys.readouterr().out
    observations = np.random.default_rng(1).normal(size=(50, 9)).astype(np.float32) * 3
    for name, inputs in (("normal", env.normalize_obs(observations)), ("plain", observations)):
        expected, _ = model.predict(inputs, deterministic=True)
        found, _ = policies.load(tmp_path / f"{name}.onnx").native.decide(observations, None)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_mistakes_are_explained(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = TrainConfig.load(config)
    file = tmp_path / "mine.zip"
    env = environments(settings)
    trained("ppo", env, file)

    def refuses(what: str, *words: str) -> None:
        assert cli(["train", "export", *words]) == 2
        explained(capsys.readouterr().err, what)

    given = "--config", str(config)
    refuses("option-needed at --config", str(file))
    refuses("options-conflict", str(file), *given, "--model", "best")
    refuses("unknown-choice at --algorithm", str(file), *given, "--algorithm", "dqn")
    refuses("network-unreadable at mine.zip", str(file), *given, "--algorithm", "sac")
    refuses("network-unreadable at none.zip", str(tmp_path / "none.zip"), *given)
    refuses("options-conflict", str(tmp_path), "--algorithm", "ppo")
    refuses("network-unreadable at tiny.yaml", str(file), *given, "--normalize", str(config))
    refuses("network-unreadable at none.pkl", str(file), *given, "--normalize", str(tmp_path / "none.pkl"))
    (tmp_path / "bad.zip").write_bytes(b"PK")
    refuses("network-unreadable at bad.zip", str(tmp_path / "bad.zip"), *given)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("data", "{}")
    refuses("policy-unsuitable at other.zip", str(tmp_path / "other.zip"), *given)

    stacked = tmp_path / "stacked.zip"
    trained("ppo", VecFrameStack(env, 2), stacked)
    refuses("shape-mismatch at stacked.zip", str(stacked), *given)
    discrete = TrainConfig.load(config, [DISCRETE])
    with refused(ConfigError, "shape-mismatch at mine.zip"):
        export_any(file, config=discrete)
    q_network = tmp_path / "dqn.zip"
    DQN("MlpPolicy", environments(discrete), buffer_size=10).save(q_network)
    refuses("policy-unsuitable at dqn.zip", str(q_network), *given)
