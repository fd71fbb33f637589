"""DAgger: the learner acts, an expert labels each state with what should have been done, the learner imitates it.

Ross, Gordon and Bagnell, AISTATS 2011. In the first round the expert acts. After each round all that was labeled so
far is fitted again, so that the learner knows what to do in the states that it comes into by its own mistakes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field
from typing_extensions import override

from ccgym.training.algorithms.base import AlgorithmBase, Layers, LayersField, Lstm, Schedule, Strict

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
    from stable_baselines3.common.vec_env import VecEnv


class Perturbation(Strict):
    """Now and then a random action replaces the learner's for a while, and the expert shows how to recover."""

    every: int = Field(default=300, ge=1)
    """Decisions from one perturbation to the next, on average."""
    decisions: int = Field(default=4, ge=1)
    """Maximum length of one in decisions, all with the same action drawn at random."""


class Prefix(Strict):
    """More training on the first decisions of episodes: they are few, unlike all later ones, and cost most if wrong."""

    decisions: int = Field(default=50, ge=1)
    """How many of each episode."""
    passes: int = Field(default=1, ge=1)
    """Passes over them for each pass over whole episodes."""


class DaggerConfig(AlgorithmBase):
    """DAgger. An update is a round: ``n_steps`` decisions in every environment, then passes over all that is held."""

    name: Literal["dagger"] = "dagger"
    """Dataset aggregation."""
    n_envs: int = Field(default=30, ge=1, le=4096)
    """Environments side by side."""
    n_steps: int = Field(default=1000, ge=1, le=1_000_000)
    """Decisions of each environment in a round; the length of an episode suits best."""
    learning_rate: Schedule = 0.01
    """Adam's step size."""
    net_arch: LayersField = Layers(pi=(), vf=())
    """Hidden layers, after the LSTM if there is one. The value function is not trained."""
    lstm: Lstm | None = None
    """The recurrent part; none by default."""
    expert_rounds: int = Field(default=1, ge=0)
    """Rounds at the beginning in which the expert acts."""
    beta: float = Field(default=0.0, ge=0, le=1)
    """DAgger's β: fraction of decisions that the expert takes in the first round after those; multiplied by itself once
    more in each later round."""
    perturbation: Perturbation | None = None
    """Random actions now and then; none by default."""
    prefix: Prefix | None = None
    """Further passes over the first decisions of episodes; none by default."""
    buffer_size: int = Field(default=3_000_000, ge=1)
    """Labeled decisions that are held; the oldest episodes give way."""
    batch_size: int = Field(default=30, ge=1)
    """Episodes side by side in a gradient step."""
    sequence_length: int = Field(default=1000, ge=1)
    """Decisions that gradients go back through."""
    n_epochs: int = Field(default=50, ge=1, le=10_000)
    """Maximum number of passes per round over all that is held."""
    tolerance: float = Field(default=0.001, ge=0)
    """A round's passes end once the loss has not fallen by this much …"""
    patience: int = Field(default=10, ge=0)
    """… for this many passes; 0: never."""
    weight_decay: float = Field(default=1e-4, ge=0)
    """Weight in the loss of half the sum of squared weights."""
    adam_epsilon: float = Field(default=1e-8, gt=0)
    """Adam's epsilon."""

    @property
    @override
    def memory(self) -> Lstm | None:
        return self.lstm

    @property
    @override
    def needs_expert(self) -> bool:
        return True


def build(config: DaggerConfig, env: VecEnv, device: str) -> OnPolicyAlgorithm:
    """The learner; see :func:`ccgym.training.model.build_model`."""
    from ccgym.training.algorithms.dagger_learner import DaggerLearner

    return DaggerLearner(config, env, device)
