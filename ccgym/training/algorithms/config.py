"""The settings of every algorithm: the section ``algorithm`` of a configuration, by its ``name``.

The learners themselves are in the files next to this one, which import torch; this one does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from ccgym.config.declared import Strict
from ccgym.errors import ConfigError


class Linear(Strict):
    """A value that moves in a straight line from the first step to the last."""

    linear: tuple[float, float]
    """At the first step and at the last."""


class Cosine(Strict):
    """A value that moves along half a cosine from the first step to the last: slowly, fast, slowly."""

    cosine: tuple[float, float]
    """At the first step and at the last."""


Schedule: TypeAlias = float | Linear | Cosine
"""A constant, or ``{linear: [from, to]}`` or ``{cosine: [from, to]}`` over the whole run."""


def _layers(value: object) -> object:
    return {"pi": value, "vf": value} if isinstance(value, (list, tuple)) else value


Widths: TypeAlias = tuple[Annotated[int, Field(ge=1, le=65536)], ...]
"""Units of each hidden layer."""


class Layers(Strict):
    """Widths of the hidden layers; one list means the same for both networks, which share nothing."""

    pi: Widths = (64, 64)
    """Policy."""
    vf: Widths = (64, 64)
    """Value function."""


LayersField: TypeAlias = Annotated[Layers, BeforeValidator(_layers)]
"""Layers as users write them: one list, or ``{pi: […], vf: […]}``."""


class Lstm(Strict):
    """The recurrent part of a policy."""

    hidden_size: int = Field(default=64, ge=1, le=4096)
    """Units per layer."""
    layers: int = Field(default=1, ge=1, le=8)
    """Layers."""
    critic: Literal["own", "shared", "none"] = "own"
    """Whether the value function has an LSTM of its own, shares the policy's, or has none."""


class Normalize(Strict):
    """Running normalization by mean and variance (SB3's ``VecNormalize``); frozen during evaluation."""

    observation: bool = False
    """Whether the policy sees normalized features."""
    reward: bool = False
    """Whether rewards are divided by the standard deviation of the return."""
    clip_observation: float = Field(default=10.0, gt=0)
    """Limit of normalized features, both ways."""
    clip_reward: float = Field(default=10.0, gt=0)
    """Limit of normalized rewards, both ways."""


class AlgorithmBase(Strict):
    """What every algorithm has."""

    name: str
    """Which one; each class narrows it to its own."""
    n_envs: int = Field(default=64, ge=1, le=4096)
    """Environments side by side."""
    n_steps: int = Field(default=128, ge=1, le=1_000_000)
    """Steps of each between two updates."""

    # --- What the rest of a training asks of any algorithm -----------------------------------------------------------

    @property
    def memory(self) -> Lstm | None:
        """The LSTM of the policy; None if it has none."""
        return None if self.name == "ppo" else getattr(self, "lstm", None)

    @property
    def normalization(self) -> Normalize:
        """Running normalization."""
        return getattr(self, "normalize", Normalize())

    @property
    def discount(self) -> float:
        """Per step; of use to the normalizer of rewards."""
        return getattr(self, "gamma", 0.99)

    @property
    def privileged(self) -> bool:
        """Whether the value function sees the ground truth about the path."""
        return getattr(self, "critic", "same") == "privileged"


class NetworkAlgorithm(AlgorithmBase):
    """What the algorithms have that train a network."""

    learning_rate: Schedule = 3e-4
    """The optimizer's step size."""
    max_grad_norm: float = Field(default=0.5, gt=0)
    """Limit of the gradient's norm."""
    net_arch: LayersField = Layers()
    """Hidden layers."""
    activation: Literal["tanh", "relu", "elu", "silu"] = "tanh"
    """Between the layers."""


class ActorCritic(NetworkAlgorithm):
    """A policy and a value function, with Stable-Baselines3's names."""

    gamma: float = Field(default=0.99, gt=0, le=1)
    """Discount per step."""
    ent_coef: float = Field(default=0.0, ge=0)
    """Weight of the entropy."""
    vf_coef: float = Field(default=0.5, ge=0)
    """Weight of the value loss."""
    critic: Literal["same", "privileged"] = "same"
    """What the value function sees: the same as the policy, or the ground truth about the path as well
    (:mod:`ccgym.training.privileged_critic`). The policy that is exported is the same either way."""
    ortho_init: bool = True
    """Orthogonal initial weights."""
    log_std_init: float = 0.0
    """Logarithm of the initial standard deviation of a continuous action."""
    adam_epsilon: float = Field(default=1e-5, gt=0)
    """Adam's epsilon; of no effect with another optimizer."""
    normalize: Normalize = Normalize()
    """Running normalization."""

    @model_validator(mode="after")
    def _critic_fits(self) -> Self:
        if self.privileged and (self.memory is not None or self.normalize.observation):
            raise ConfigError(
                "options-conflict",
                "critic: privileged with " + ("normalize.observation" if self.memory is None else self.name),
                expected="a policy without memory, and features that are not normalized by running statistics",
                hint="write critic: same",
            )
        return self


class PpoConfig(ActorCritic):
    """PPO, with Stable-Baselines3's names."""

    name: Literal["ppo", "recurrent_ppo"] = "ppo"
    """SB3's PPO, or sb3-contrib's RecurrentPPO."""
    batch_size: int = Field(default=2048, ge=2)
    """Samples per gradient step."""
    n_epochs: int = Field(default=4, ge=1, le=1000)
    """Passes over the samples per update."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Bias against variance of the advantage."""
    clip_range: Schedule = 0.2
    """Limit of the probability ratio."""
    clip_range_vf: Schedule | None = None
    """Limit of the value function's change; none by default. In units of the reward."""
    normalize_advantage: bool = True
    """Whether advantages are standardized per batch."""
    target_kl: float | None = Field(default=None, gt=0)
    """Divergence at which an update stops early."""
    lstm: Lstm = Lstm()
    """The recurrent part; of no effect with ``ppo``."""
    gradient_threads: int = Field(default=1, ge=1, le=256)
    """Threads that share the gradient of a batch, in equal parts. Sums of floats depend on it, so it is part of what a
    seed reproduces; of no effect with ``recurrent_ppo`` and on a GPU."""

    @model_validator(mode="after")
    def _batches(self) -> PpoConfig:
        if self.n_envs * self.n_steps % self.batch_size:
            samples = self.n_envs * self.n_steps
            raise ConfigError(
                "not-divisible",
                f"batch_size {self.batch_size} does not divide the {samples} samples of an update "
                f"(n_envs {self.n_envs} × n_steps {self.n_steps})",
                expected="equal batches",
                hint=f"batch_size {_nearest_divisor(samples, self.batch_size)} would do",
            )
        return self


def _nearest_divisor(number: int, wanted: int) -> int:
    divisors = [d for d in range(2, min(number, 10**6) + 1) if number % d == 0] or [number]
    return min(divisors, key=lambda d: abs(d - wanted))


class A2cConfig(ActorCritic):
    """A2C, with Stable-Baselines3's names: one gradient step per update, on all of its samples."""

    name: Literal["a2c"] = "a2c"
    """SB3's A2C."""
    n_steps: int = Field(default=8, ge=1, le=1_000_000)
    """Steps of each environment between two updates."""
    learning_rate: Schedule = 7e-4
    """The optimizer's step size."""
    gae_lambda: float = Field(default=1.0, ge=0, le=1)
    """Bias against variance of the advantage; 1: the plain return."""
    normalize_advantage: bool = False
    """Whether advantages are standardized per update."""
    use_rms_prop: bool = True
    """RMSProp as TensorFlow has it, which A2C was published with, or else Adam."""
    rms_prop_eps: float = Field(default=1e-5, gt=0)
    """RMSProp's epsilon."""


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


class ImitationConfig(AlgorithmBase):
    """What the algorithms share that learn from labels in rounds: ``n_steps`` decisions in every environment, then a
    fit to all that is held."""

    n_envs: int = Field(default=30, ge=1, le=4096)
    """Environments side by side."""
    n_steps: int = Field(default=1000, ge=1, le=1_000_000)
    """Decisions of each environment in a round; the length of an episode suits best."""
    expert_rounds: int = Field(default=1, ge=0)
    """Rounds at the beginning in which the expert acts."""
    beta: float = Field(default=0.0, ge=0, le=1)
    """DAgger's β: fraction of decisions that the expert takes in the first round after those; multiplied by itself once
    more in each later round."""
    perturbation: Perturbation | None = None
    """Random actions now and then; none by default."""
    buffer_size: int = Field(default=3_000_000, ge=1)
    """Labeled decisions that are held; the oldest episodes give way."""


class Soft(Strict):
    """Part of the loss is the cross-entropy to a soft target: the softmax of minus the distances of the actions'
    results from the expert's target, standardized over the actions of the decision (Muses)."""

    weight: float = Field(default=0.1, gt=0, le=1)
    """Of the soft target in the loss; the label itself has the rest."""


class DaggerConfig(ImitationConfig, NetworkAlgorithm):
    """DAgger of a network, which is fitted in passes over all that is held."""

    name: Literal["dagger"] = "dagger"
    """Dataset aggregation."""
    learning_rate: Schedule = 0.01
    """Adam's step size."""
    net_arch: LayersField = Layers(pi=(), vf=())
    """Hidden layers, after the LSTM if there is one. The value function is not trained."""
    lstm: Lstm | None = None
    """The recurrent part; none by default."""
    prefix: Prefix | None = None
    """Further passes over the first decisions of episodes; none by default."""
    soft: Soft | None = None
    """Soft targets for discrete actions; none by default."""
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


class DistillConfig(ImitationConfig):
    """DAgger of a decision tree, which CART grows again after each round. With an expert of kind ``policy`` the tree is
    what is left of that policy."""

    name: Literal["distill"] = "distill"
    """Distillation into a tree."""
    max_depth: int = Field(default=32, ge=1, le=64)
    """Comparisons of a decision at the most."""
    max_leaves: int | None = Field(default=None, ge=2, le=100_000)
    """Leaves at the most, the best splits first; no limit by default."""
    min_leaf: int = Field(default=75, ge=1)
    """Labeled decisions that a leaf stands for at least."""
    min_split: int = Field(default=150, ge=2)
    """Labeled decisions of a node at least for it to be split."""


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


class CrossEntropyConfig(NetworkAlgorithm):
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

    @model_validator(mode="after")
    def _groups(self) -> CrossEntropyConfig:
        if self.n_envs % self.group_size:
            raise ConfigError(
                "not-divisible",
                f"n_envs {self.n_envs} with group_size {self.group_size}",
                expected="whole groups",
                hint=f"n_envs {max(1, round(self.n_envs / self.group_size)) * self.group_size} would do",
            )
        return self


AnyAlgorithm: TypeAlias = PpoConfig | A2cConfig | DaggerConfig | DistillConfig | CrossEntropyConfig


_GONE = (("use_sde", False), ("sde_sample_freq", -1))
"""Settings of earlier versions with the values that change nothing, as older run directories spell them out."""


def _named(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    return {"name": "ppo", **{key: one for key, one in value.items() if (key, one) not in _GONE}}


AlgorithmField: TypeAlias = Annotated[AnyAlgorithm, Field(discriminator="name"), BeforeValidator(_named)]
"""The section ``algorithm``; PPO where it names none."""
