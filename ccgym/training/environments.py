"""The environments of a configuration: for training, for evaluation, and for the baselines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from ccgym.config.agent import AgentConfig, read_agent
from ccgym.config.curriculum import AnyCurriculum
from ccgym.config.sampled_path import PathDistribution
from ccgym.envs.sb3 import SB3LinkVecEnv
from ccgym.envs.settings import Settings
from ccgym.errors import CcgymError
from ccgym.schemes.reading import parse_scheme
from ccgym.training.algorithms.config import AlgorithmBase
from ccgym.training.config import TrainConfig
from ccgym.training.privileged_critic import PrivilegedEnv
from ccgym.training.training_env import PastPolicies, TrainingEnv


class Environments:
    """Makes the environments of a configuration."""

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._threads = config.training.simulator_threads

    def training(self) -> TrainingEnv:
        """Return the training environments, which checkpoints can store; before a reset they contain no simulator."""
        settings, earlier = self._settings(), self._config.environment.earlier_selves
        kind = PrivilegedEnv if self._config.algorithm.privileged else TrainingEnv
        env = kind(self._config.algorithm.n_envs, settings, threads=self._threads, journal=True)
        env.curriculum = settings.curriculum if isinstance(self._config.environment.paths, AnyCurriculum) else None
        env.earlier = None if earlier is None else PastPolicies(earlier.every, earlier.keep)
        return env

    def evaluation(self, at_once: int | None = None) -> VecEnv:
        """Return environments on the held-out paths; with a curriculum, on paths of its end.

        Args:
            at_once: Number of environments; by default the number of paths. With real paths, always one.
        """
        return self._held_out(self._held_out_settings(), at_once)

    def baseline(self, scheme: str, at_once: int | None = None) -> VecEnv:
        """Return environments on the same held-out paths in which a scheme decides; actions have no effect.

        Raises:
            ConfigError: There is no such scheme.
        """
        settings = self._held_out_settings()
        return self._held_out(replace(settings, agent=passive_agent(settings.agent, scheme)), at_once)

    def of_paths(self, paths: PathDistribution, count: int, scheme: str | None = None) -> VecEnv:
        """Return environments on paths of another distribution; if ``scheme`` is given, it decides."""
        settings = self._settings().with_paths(paths)
        if scheme is not None:
            settings = replace(settings, agent=passive_agent(settings.agent, scheme, "environment.paths"))
        return SB3LinkVecEnv(count, settings, threads=self._threads)

    def drawn(self) -> VecEnv:
        """Return an environment on the first held-out path, for pictures."""
        return SB3LinkVecEnv(1, self._held_out_settings(), autoreset=False, render_mode="rgb_array")

    def _settings(self) -> Settings:
        return Settings.of(self._config.environment, self._config.agent)

    def _held_out_settings(self) -> Settings:
        return self._settings().with_paths(self._config.held_out_paths())

    def _held_out(self, settings: Settings, at_once: int | None) -> VecEnv:
        if settings.is_real:
            # One after the other: parallel real paths would compete for the machine.
            return SB3LinkVecEnv(1, settings, autoreset=False)
        return SB3LinkVecEnv(at_once or self._config.evaluation.episodes, settings, threads=self._threads)


def normalized(env: VecEnv, algorithm: AlgorithmBase) -> VecEnv:
    """Return the environments with a running normalizer, if one is configured."""
    wanted = algorithm.normalization
    if not wanted.observation and not wanted.reward:
        return env
    return VecNormalize(
        env,
        norm_obs=wanted.observation,
        norm_reward=wanted.reward,
        clip_obs=wanted.clip_observation,
        clip_reward=wanted.clip_reward,
        gamma=algorithm.discount,
    )


def passive_agent(agent: AgentConfig, scheme: str, where: str = "evaluation.baselines") -> AgentConfig:
    """Return an agent with the same clock and reward that lets a scheme decide.

    Args:
        agent: The agent with the clock and the reward.
        scheme: The scheme that decides.
        where: The setting that requires this agent, for errors.

    Raises:
        ConfigError: There is no such scheme, or it cannot run below an agent.
    """
    where = f"{where}: {scheme}"
    choice = parse_scheme(scheme, where)
    choice.refuse("environment", where)
    content: dict[str, Any] = agent.model_dump(mode="json")
    observation: dict[str, Any] = {**content["observation"], "previous_action": "none"}
    observation.pop("initial_action", None)
    content.pop("expert", None)  # the scheme that decides needs no expert
    content |= {
        "name": f"{agent.name}-{scheme}",
        "decision_latency": "0s",
        "ecn": False,  # the scheme sets its packets' ECN field as usual
        "observation": observation,
        "action": {
            "map": {"kind": "passive"},
            "target": "both",
            "inner": {"scheme": choice.name, "params": choice.native_params},
        },
        "startup": {"kind": "none"},
        "guard": {"kind": "none"},
    }
    try:
        return read_agent(content)
    except CcgymError as error:
        raise error.at(where) from None
