"""The settings of every algorithm: the section ``algorithm`` of a configuration, by its ``name``.

The learners are in the files next to this one, which import torch; this file does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from ccgym.config.declared import Strict
from ccgym.errors import ConfigError


class Linear(Strict):
    """A value that changes linearly from the first step to the last."""

    linear: tuple[float, float]
    """Values at the first step and at the last step."""


class Cosine(Strict):
    """A value that follows half a cosine from the first step to the last: slow, fast, slow."""

    cosine: tuple[float, float]
    """Values at the first step and at the last step."""


Schedule: TypeAlias = float | Linear | Cosine
"""A constant, or ``{linear: [from, to]}`` or ``{cosine: [from, to]}`` over the whole run."""


def _layers(value: object) -> object:
    return {"pi": value, "vf": value} if isinstance(value, (list, tuple)) else value


Widths: TypeAlias = tuple[Annotated[int, Field(ge=1, le=65536)], ...]
"""Units of each hidden layer."""


class Layers(Strict):
    """Widths of the hidden layers; one list applies to both networks, which share no layers."""

    pi: Widths = (64, 64)
    """Layers of the policy."""
    vf: Widths = (64, 64)
    """Layers of the value function."""


LayersField: TypeAlias = Annotated[Layers, BeforeValidator(_layers)]
"""Layers as written by users: one list, or ``{pi: […], vf: […]}``."""


class Lstm(Strict):
    """The recurrent part of a policy."""

    hidden_size: int = Field(default=64, ge=1, le=4096)
    """Units per layer."""
    layers: int = Field(default=1, ge=1, le=8)
    """Number of layers."""
    critic: Literal["own", "shared", "none"] = "own"
    """Whether the value function has its own LSTM, shares the LSTM of the policy, or has none."""


class Normalize(Strict):
    """Running normalization by mean and variance (SB3's ``VecNormalize``); frozen during evaluation."""

    observation: bool = False
    """Whether the policy's features are normalized."""
    reward: bool = False
    """Whether rewards are divided by the standard deviation of the return."""
    clip_observation: float = Field(default=10.0, gt=0)
    """Limit of the absolute value of normalized features."""
    clip_reward: float = Field(default=10.0, gt=0)
    """Limit of the absolute value of normalized rewards."""


class AlgorithmBase(Strict):
    """Settings of every algorithm."""

    name: str
    """Name of the algorithm; each subclass allows its own names."""
    n_envs: int = Field(default=64, ge=1, le=4096)
    """Environments side by side."""
    n_steps: int = Field(default=128, ge=1, le=1_000_000)
    """Steps of each between two updates."""

    # --- Properties of every algorithm that the rest of a training uses ----------------------------------------------

    @property
    def memory(self) -> Lstm | None:
        """The LSTM of the policy; None if it has none."""
        return None if self.name == "ppo" else getattr(self, "lstm", None)

    @property
    def normalization(self) -> Normalize:
        """Settings of running normalization."""
        return getattr(self, "normalize", Normalize())

    @property
    def discount(self) -> float:
        """Discount per step, for the normalizer of rewards."""
        return getattr(self, "gamma", 0.99)

    @property
    def privileged(self) -> bool:
        """Whether the value function has the ground truth about the path as input."""
        return getattr(self, "critic", "same") == "privileged"


class NetworkAlgorithm(AlgorithmBase):
    """Settings of all algorithms that train a network."""

    learning_rate: Schedule = 3e-4
    """The optimizer's step size."""
    max_grad_norm: float = Field(default=0.5, gt=0)
    """Limit of the gradient's norm."""
    net_arch: LayersField = Layers()
    """Hidden layers."""
    activation: Literal["tanh", "relu", "elu", "silu"] = "tanh"
    """Activation between the layers."""


class ActorCritic(NetworkAlgorithm):
    """A policy and a value function, with Stable-Baselines3's names."""

    gamma: float = Field(default=0.99, gt=0, le=1)
    """Discount per step."""
    ent_coef: float = Field(default=0.0, ge=0)
    """Weight of the entropy."""
    vf_coef: float = Field(default=0.5, ge=0)
    """Weight of the value loss."""
    critic: Literal["same", "privileged"] = "same"
    """Inputs of the value function: the same as the policy's, or also the ground truth about the path
    (:mod:`ccgym.training.privileged_critic`). The exported policy has the same inputs in both cases."""
    ortho_init: bool = True
    """Whether initial weights are orthogonal."""
    log_std_init: float = 0.0
    """Logarithm of the initial standard deviation of a continuous action."""
    adam_epsilon: float = Field(default=1e-5, gt=0)
    """Adam's epsilon; without effect for other optimizers."""
    normalize: Normalize = Normalize()
    """Running normalization."""

    @model_validator(mode="after")
    def _critic_fits(self) -> Self:
        if self.privileged and (self.memory is not None or self.normalize.observation):
            raise ConfigError(
                "options-conflict",
                "critic: privileged with " + ("normalize.observation" if self.memory is None else self.name),
                expected="a policy without memory, and features without running normalization",
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
    """λ of generalized advantage estimation: smaller values mean less variance and more bias."""
    clip_range: Schedule = 0.2
    """Max distance of the probability ratio from 1."""
    clip_range_vf: Schedule | None = None
    """Max change of the value function, in units of the reward; no limit by default."""
    normalize_advantage: bool = True
    """Whether advantages are standardized per batch."""
    target_kl: float | None = Field(default=None, gt=0)
    """KL divergence at which an update stops early."""
    lstm: Lstm = Lstm()
    """The recurrent part; without effect for ``ppo``."""
    gradient_threads: int = Field(default=1, ge=1, le=256)
    """Threads that compute the gradient of a batch, in equal parts. Sums of floats depend on this number: a seed gives
    equal results only with the same number. Without effect for ``recurrent_ppo`` and on a GPU."""

    @model_validator(mode="after")
    def _batches(self) -> PpoConfig:
        if self.n_envs * self.n_steps % self.batch_size:
            samples = self.n_envs * self.n_steps
            raise ConfigError(
                "not-divisible",
                f"batch_size {self.batch_size} does not divide the {samples} samples of an update "
                f"(n_envs {self.n_envs} × n_steps {self.n_steps})",
                expected="equal batches",
                hint=f"use for example batch_size {_nearest_divisor(samples, self.batch_size)}",
            )
        return self


def _nearest_divisor(number: int, wanted: int) -> int:
    divisors = [d for d in range(2, min(number, 10**6) + 1) if number % d == 0] or [number]
    return min(divisors, key=lambda d: abs(d - wanted))


class A2cConfig(ActorCritic):
    """A2C, with Stable-Baselines3's names: one gradient step per update, on all samples of the update."""

    name: Literal["a2c"] = "a2c"
    """SB3's A2C."""
    n_steps: int = Field(default=8, ge=1, le=1_000_000)
    """Steps of each environment between two updates."""
    learning_rate: Schedule = 7e-4
    """The optimizer's step size."""
    gae_lambda: float = Field(default=1.0, ge=0, le=1)
    """λ of generalized advantage estimation; 1: the plain return."""
    normalize_advantage: bool = False
    """Whether advantages are standardized per update."""
    use_rms_prop: bool = True
    """Whether to use TensorFlow's RMSProp, as in the publication of A2C; otherwise Adam."""
    rms_prop_eps: float = Field(default=1e-5, gt=0)
    """RMSProp's epsilon."""


class Perturbation(Strict):
    """Random actions that sometimes replace the learner's, so that the expert's labels show how to recover."""

    every: int = Field(default=300, ge=1)
    """Mean number of decisions from one perturbation to the next."""
    decisions: int = Field(default=4, ge=1)
    """Max length of a perturbation in decisions; all of them have the same random action."""


class Prefix(Strict):
    """More training on the first decisions of episodes: they are few and different, and errors in them cost most."""

    decisions: int = Field(default=50, ge=1)
    """Number of decisions of each episode."""
    passes: int = Field(default=1, ge=1)
    """Passes over these decisions for each pass over whole episodes."""


class ImitationConfig(AlgorithmBase):
    """Settings of algorithms that learn from labels in rounds: ``n_steps`` decisions in every environment, then a fit
    to the whole buffer."""

    n_envs: int = Field(default=30, ge=1, le=4096)
    """Environments side by side."""
    n_steps: int = Field(default=1000, ge=1, le=1_000_000)
    """Decisions of each environment in a round; best is the length of an episode."""
    expert_rounds: int = Field(default=1, ge=0)
    """Number of first rounds in which the expert acts."""
    beta: float = Field(default=0.0, ge=0, le=1)
    """DAgger's β: the fraction of decisions that the expert takes is β in the first round after these, β² in the next
    round, and so on."""
    perturbation: Perturbation | None = None
    """Occasional random actions; none by default."""
    buffer_size: int = Field(default=3_000_000, ge=1)
    """Max labeled decisions in the buffer; the oldest episodes are dropped."""


class Soft(Strict):
    """A part of the loss that is the cross-entropy to a soft target: the softmax of the negative distances between the
    actions' results and the expert's target, standardized over the actions of the decision (Muses)."""

    weight: float = Field(default=0.1, gt=0, le=1)
    """Weight of the soft target in the loss; the label has the rest."""


class DaggerConfig(ImitationConfig, NetworkAlgorithm):
    """DAgger with a network, which is fitted in passes over the whole buffer."""

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
    """Number of decisions of backpropagation through time."""
    n_epochs: int = Field(default=50, ge=1, le=10_000)
    """Max passes per round over the whole buffer."""
    tolerance: float = Field(default=0.001, ge=0)
    """Min decrease of the loss: passes end after ``patience`` passes without it."""
    patience: int = Field(default=10, ge=0)
    """Number of passes without a decrease by ``tolerance`` after which the round ends; 0: no early end."""
    weight_decay: float = Field(default=1e-4, ge=0)
    """Weight in the loss of half the sum of squared weights."""
    adam_epsilon: float = Field(default=1e-8, gt=0)
    """Adam's epsilon."""


class DistillConfig(ImitationConfig):
    """DAgger with a decision tree, which CART grows again after each round. With an expert of kind ``policy``, this
    distills that policy into a tree."""

    name: Literal["distill"] = "distill"
    """Distillation into a tree."""
    max_depth: int = Field(default=32, ge=1, le=64)
    """Max comparisons of a decision."""
    max_leaves: int | None = Field(default=None, ge=2, le=100_000)
    """Max number of leaves, the best splits first; no limit by default."""
    min_leaf: int = Field(default=75, ge=1)
    """Min labeled decisions of a leaf."""
    min_split: int = Field(default=150, ge=2)
    """Min labeled decisions of a node that is split."""


class Imitation(Strict):
    """Weight of the agent's expert relative to the elites: weight · decay^⌊updates / every⌋."""

    weight: float = Field(default=1.0, gt=0)
    """Initial weight of the expert's cross-entropy; the cross-entropy of the elites has weight 1."""
    decay: float = Field(default=0.9, gt=0, le=1)
    """Factor of the weight after each ``every`` updates."""
    every: int = Field(default=10, ge=1)
    """Number of updates between two reductions of the weight."""
    min_weight: float = Field(default=0.001, ge=0)
    """Below this weight, the expert is not used."""

    def at(self, update: int) -> float:
        """Return the weight in an update, counted from 0; 0 if it is below ``min_weight``."""
        weight = self.weight * self.decay ** (update // self.every)
        return weight if weight >= self.min_weight else 0.0


class CrossEntropyConfig(NetworkAlgorithm):
    """The cross-entropy method. An update starts ``n_envs`` episodes, and ends with passes over the elites."""

    name: Literal["cross_entropy"] = "cross_entropy"
    """The cross-entropy method."""
    n_envs: int = Field(default=256, ge=2, le=4096)
    """Episodes per update, side by side."""
    n_steps: int = Field(default=100, ge=1, le=1_000_000)
    """Decisions of each episode; best is the environment's episode length. Shorter episodes count until their end."""
    group_size: int = Field(default=16, ge=2, le=4096)
    """Number of episodes that have the same path and seed, and are compared."""
    elite_percentile: float = Field(default=70.0, ge=0, lt=100)
    """Elites are episodes whose return reaches this percentile of their group."""
    elite_updates: int = Field(default=1, ge=1, le=1000)
    """Number of updates whose elites are imitated; 1: only the current update."""
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
    """Divisor of the scores of actions before one is drawn. The deployed policy takes the most likely action without a
    draw; a falling temperature approaches this, and shows what worked only by chance."""
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
                hint=f"use for example n_envs {max(1, round(self.n_envs / self.group_size)) * self.group_size}",
            )
        return self


AnyAlgorithm: TypeAlias = PpoConfig | A2cConfig | DaggerConfig | DistillConfig | CrossEntropyConfig


_GONE = (("use_sde", False), ("sde_sample_freq", -1))
"""Settings of earlier versions with the values that have no effect, as older run directories contain them."""


def _named(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    return {"name": "ppo", **{key: one for key, one in value.items() if (key, one) not in _GONE}}


AlgorithmField: TypeAlias = Annotated[AnyAlgorithm, Field(discriminator="name"), BeforeValidator(_named)]
"""The section ``algorithm``; PPO if it has no name."""
