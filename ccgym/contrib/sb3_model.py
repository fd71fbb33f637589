"""A model of Stable-Baselines3, trained in ccgym's environments without `train.py`: ``model.save("model.zip")``.

SB3 itself reads the file and unpickles its content: read only files from trusted sources.
"""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import TD3Policy
from torch import nn
from typing_extensions import override

from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.envs.settings import Settings
from ccgym.errors import ConfigError, ResultsError, shown
from ccgym.files import MAX_MODEL_BYTES, read_bytes
from ccgym.training import normalizer as normalizers
from ccgym.training.config import TrainConfig
from ccgym.training.model import DAMAGE, what_is_damaged
from ccgym.training.onnx_graph import Floats
from ccgym.training.streams import generators_kept
from ccgym.training.torch_policy import Exportable, Normalizer, TorchPolicy, exportable, one_thread, require_plain

ALGORITHMS: Final[Mapping[str, type[BaseAlgorithm]]] = {"ppo": PPO, "a2c": A2C, "sac": SAC, "td3": TD3}
"""Classes of models that can be exported, by the values of ``--algorithm``."""

_MARKS: Final = {
    "sac": {"target_entropy"},
    "td3": {"target_policy_noise", "policy_delay"},
    "ppo": {"clip_range", "gae_lambda"},
    "a2c": {"gae_lambda", "normalize_advantage"},
}
"""Entries that identify the algorithm of a file; algorithms are checked in this order."""

_NOT_NEEDED: Final = {
    "learning_rate": 0.0,
    "lr_schedule": None,
    "clip_range": 0.0,
    "buffer_size": 1,
    "_last_obs": None,
    "_last_episode_starts": None,
    "_last_original_obs": None,
}
"""Parts of a model that are not needed for decisions; they might be unreadable if from another version of Python."""


@dataclass(frozen=True)
class PlainModel:
    """A model read from SB3's file, and checked against the configuration's agent."""

    file: Path
    algorithm: str
    model: BaseAlgorithm
    statistics: dict[str, Any] | None
    """Statistics for the normalization of features: :func:`ccgym.training.normalizer.observation_statistics`."""

    def exportable(self) -> Exportable:
        """Return the policy of the model.

        Raises:
            ConfigError: The policy has parts that cannot be exported.
        """
        policy: Any = self.model.policy
        if not isinstance(policy, (SACPolicy, TD3Policy)):
            return exportable(policy, self.statistics)
        return OffPolicy(policy, None if self.statistics is None else Normalizer.of(self.statistics))


class OffPolicy(TorchPolicy):
    """The actor of SAC, TD3 or DDPG, with its actions scaled to the bounds."""

    @override
    def _layers(self, policy: Any) -> list[nn.Module]:
        if isinstance(policy, TD3Policy):
            return [*policy.actor.mu, *_stretching(policy)]
        mean = policy.actor.mu
        last = list(mean) if isinstance(mean, nn.Sequential) else [mean]
        return [*policy.actor.latent_pi, *last, nn.Tanh(), *_stretching(policy)]

    @override
    def _require_exportable(self, policy: Any) -> None:
        require_plain(policy, policy.actor.features_extractor)

    @override
    def decide_as_trained(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        inputs = observations if self.normalizer is None else self.normalizer(observations).astype(np.float32)
        policy: Any = self._policy
        with torch.no_grad(), one_thread():
            squashed = policy._predict(torch.from_numpy(inputs), deterministic=True).numpy()
        return policy.unscale_action(squashed).astype(np.float32), None


def _stretching(policy: BasePolicy) -> list[nn.Module]:
    """Return layers that scale −1 … 1 to the bounds of the action, like SB3's ``unscale_action``."""
    space = policy.action_space
    assert isinstance(space, spaces.Box)
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    if np.all(low == -1) and np.all(high == 1):
        return []
    layer = nn.Linear(low.size, low.size, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.diag(torch.from_numpy((high - low) / 2)))
        layer.bias.copy_(torch.from_numpy((high + low) / 2))
    return [layer]


def load_sb3(
    file: Path, config: TrainConfig, *, algorithm: str | None = None, normalize: Path | None = None
) -> PlainModel:
    """Read a model.

    Args:
        file: A file from ``model.save``.
        config: The configuration with the environment of the training.
        algorithm: One of :data:`ALGORITHMS`; by default as in the file.
        normalize: A file from ``VecNormalize.save``, if the model was trained with ``VecNormalize``.

    Raises:
        ConfigError: The model has another algorithm, or another agent than the configuration's.
        ResultsError: The file is missing or damaged.
    """
    name = algorithm or _algorithm_of(file)
    if name not in ALGORITHMS:
        raise ConfigError(
            "unknown-choice", f"algorithm {shown(name)}", where="--algorithm", expected=", ".join(ALGORITHMS)
        )
    try:
        with generators_kept():
            model = ALGORITHMS[name].load(file, device="cpu", custom_objects=dict(_NOT_NEEDED))
    except DAMAGE as error:
        raise _unreadable(file, f"{name.upper()}.load: {what_is_damaged(error)}", "a model of that class") from None
    _require_spaces(file, model, config)
    return PlainModel(file, name, model, None if normalize is None else _statistics(normalize, model))


def _algorithm_of(file: Path) -> str:
    """Return the algorithm, identified by the settings in the file."""
    try:
        with zipfile.ZipFile(file) as archive:
            keys = set(json.loads(archive.read("data")))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise _unreadable(file, what_is_damaged(error), "a file from SB3's model.save") from None
    for name, marks in _MARKS.items():
        if marks <= keys:
            return name
    raise ConfigError(
        "policy-unsuitable",
        "a model of an unknown algorithm",
        where=str(file),
        expected=f"a model of {', '.join(ALGORITHMS).upper()}",
        hint="if its class is derived from one of them, name the base with --algorithm",
    )


def _require_spaces(file: Path, model: BaseAlgorithm, config: TrainConfig) -> None:
    """Raise unless observation and action of the model fit the configuration's agent."""
    env = SB3LinkVecEnv(1, Settings.of(config.environment, config.agent))
    try:
        pairs = (
            ("observes", model.observation_space, env.observation_space),
            ("acts by", model.action_space, env.action_space),
        )
        for verb, found, expected in pairs:
            if not _same_form(found, expected):
                raise ConfigError(
                    "shape-mismatch",
                    f"the model {verb} {_words(found)}",
                    where=str(file),
                    expected=f"{_words(expected)}, as in the agent of {config.name}",
                    hint="use the configuration of its training; wrappers that change observations or "
                    "actions cannot be exported",
                )
    finally:
        env.close()


def _same_form(found: object, expected: object) -> bool:
    if isinstance(found, spaces.Box) and isinstance(expected, spaces.Box):
        return found.shape == expected.shape
    return isinstance(found, spaces.Discrete) and isinstance(expected, spaces.Discrete) and found.n == expected.n


def _words(space: object) -> str:
    if isinstance(space, spaces.Box):
        return f"{' x '.join(map(str, space.shape))} numbers"
    return f"one of {space.n} operations" if isinstance(space, spaces.Discrete) else shown(space)


def _statistics(file: Path, model: BaseAlgorithm) -> dict[str, Any] | None:
    """Return the statistics of a saved ``VecNormalize``."""
    expected = "a file from SB3's VecNormalize.save"
    try:
        normalizer = pickle.loads(read_bytes(file, MAX_MODEL_BYTES))
    except (*DAMAGE, ImportError) as error:
        raise _unreadable(file, what_is_damaged(error), expected) from None
    if not isinstance(normalizer, VecNormalize):
        raise _unreadable(file, f"a {type(normalizer).__name__}", expected)
    statistics = normalizers.observation_statistics(normalizer)
    if statistics is not None and np.shape(statistics["mean"]) != model.observation_space.shape:
        raise ConfigError(
            "shape-mismatch",
            f"statistics of {len(statistics['mean'])} features",
            where=str(file),
            expected=f"{_words(model.observation_space)}, as in the model's observation",
            hint="use the statistics that were saved with the model",
        )
    return statistics


def _unreadable(file: Path, found: str, expected: str) -> ResultsError:
    return ResultsError(
        "network-unreadable",
        found,
        where=str(file),
        expected=expected,
        hint="save it again with SB3, or use another file",
    )
