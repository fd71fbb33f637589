"""The cross-entropy method: the best episodes of a group are imitated, and for a while an expert, too.

Reuven Rubinstein's method with a network for the distribution: act, keep the best, move toward them. The returns of
different links do not compare, so the episodes of a group share the path *and* the seed of the simulator; what makes
one better than another is what was done in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from ccgym.errors import ConfigError
from ccgym.training.algorithms.base import AlgorithmBase, Layers, LayersField, Lstm, Schedule, Strict

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


class Imitation(Strict):
    """How much the agent's expert counts, compared with the elites: weight · decay^⌊updates / every⌋."""

    weight: float = Field(default=1.0, gt=0)
    """Of the expert's cross-entropy at first; that of the elites has 1."""
    decay: float = Field(default=0.9, gt=0, le=1)
    """Factor of the weight …"""
    every: int = Field(default=10, ge=1)
    """… after this many updates."""
    min_weight: float = Field(default=0.001, ge=0)
    """Below this weight the expert is not asked."""

    def at(self, update: int) -> float:
        """The weight in an update, counted from 0; 0 once it is below ``min_weight``."""
        weight = self.weight * self.decay ** (update // self.every)
        return weight if weight >= self.min_weight else 0.0


class CrossEntropyConfig(AlgorithmBase):
    """The cross-entropy method. An update begins ``n_envs`` episodes, and ends with passes over the elites."""

    name: Literal["cross_entropy"] = "cross_entropy"
    """Elite episodes."""
    n_envs: int = Field(default=256, ge=2, le=4096)
    """Episodes per update, side by side."""
    n_steps: int = Field(default=100, ge=1, le=1_000_000)
    """Decisions of each; the length of the environment's episodes suits best. Shorter ones count up to their end."""
    group_size: int = Field(default=16, ge=2, le=4096)
    """Episodes that share path and seed, and are compared."""
    elite_percentile: float = Field(default=70.0, ge=0, lt=100)
    """Elites reach this percentile of their group's returns."""
    elite_updates: int = Field(default=1, ge=1, le=1000)
    """Updates whose elites are imitated: 1 is the present one's alone."""
    imitation: Imitation | None = None
    """Imitation of ``agent.expert``; none by default."""
    learning_rate: Schedule = 3e-3
    """Adam's step size."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Limit of the gradient's norm."""
    net_arch: LayersField = Layers(pi=(), vf=())
    """Hidden layers, after the LSTM if there is one. The value function is not trained."""
    lstm: Lstm | None = Lstm(critic="none")
    """The recurrent part."""
    temperature: Schedule = 1.0
    """What the scores of actions are divided by before one is drawn. What is deployed takes the most likely action and
    draws nothing; a temperature that falls leads there, and shows what only worked by chance."""
    batch_size: int = Field(default=64, ge=1)
    """Episodes side by side in a gradient step."""
    n_epochs: int = Field(default=8, ge=1, le=1000)
    """Passes over the elites per update."""
    ent_coef: float = Field(default=0.0, ge=0)
    """Weight of the policy's entropy."""
    adam_epsilon: float = Field(default=1e-8, gt=0)
    """Adam's epsilon."""

    @property
    @override
    def memory(self) -> Lstm | None:
        return self.lstm

    @model_validator(mode="after")
    def _groups(self) -> CrossEntropyConfig:
        if self.n_envs % self.group_size:
            raise ConfigError(
                f"n_envs {self.n_envs} with group_size {self.group_size}",
                expected="whole groups",
                hint=f"n_envs {max(1, round(self.n_envs / self.group_size)) * self.group_size} would do",
            )
        return self


def build(config: CrossEntropyConfig, env: VecEnv, device: str) -> OnPolicyAlgorithm:
    """The learner; see :func:`ccgym.training.model.build_model`.

    Raises:
        ConfigError: Actions are not discrete.
    """
    from ccgym.training.algorithms.cross_entropy_learner import CrossEntropyLearner

    return CrossEntropyLearner(config, env, device)
