"""What the configurations of all algorithms share, and the parts of a policy that they are built from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm


class Strict(BaseModel):
    """A frozen model that knows all its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


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

Activation: TypeAlias = Literal["tanh", "relu", "elu", "silu"]
"""What stands between two layers."""


def _layers(value: object) -> object:
    return {"pi": value, "vf": value} if isinstance(value, (list, tuple)) else value


Width: TypeAlias = Annotated[int, Field(ge=1, le=65536)]
"""Units of a layer."""


class Layers(Strict):
    """Widths of the hidden layers; one list means the same for both networks, which share nothing."""

    pi: tuple[Width, ...] = (64, 64)
    """Policy."""
    vf: tuple[Width, ...] = (64, 64)
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
    learning_rate: Schedule = 3e-4
    """The optimizer's step size."""
    max_grad_norm: float = Field(default=0.5, gt=0)
    """Limit of the gradient's norm."""
    net_arch: LayersField = Layers()
    """Hidden layers."""
    activation: Activation = "tanh"
    """Between the layers."""

    # --- What the rest of a training asks of any algorithm; each says otherwise where it can -------------------------

    @property
    def memory(self) -> Lstm | None:
        """The LSTM of the policy; None if it has none."""
        return None

    @property
    def normalization(self) -> Normalize:
        """Running normalization."""
        return Normalize()

    @property
    def discount(self) -> float:
        """Per step; of use to the normalizer of rewards."""
        return 0.99

    @property
    def needs_expert(self) -> bool:
        """Whether it learns from labels: ``agent.expert`` must be given."""
        return False

    @property
    def privileged(self) -> bool:
        """Whether the value function sees the ground truth about the path."""
        return False


Build: TypeAlias = "Callable[[Any, Any, str], OnPolicyAlgorithm]"
"""``build(config, env, device)`` of each algorithm's file. Torch's global generators have been seeded."""


def schedule(value: Schedule) -> float | Callable[[float], float]:
    """SB3's form of a schedule: a number, or a function of the fraction of the run that remains."""
    from stable_baselines3.common.utils import LinearSchedule

    if isinstance(value, Linear):
        return LinearSchedule(value.linear[0], value.linear[1], 1.0)
    return CosineSchedule(*value.cosine) if isinstance(value, Cosine) else value


@dataclass(frozen=True)
class CosineSchedule:
    """A function of the fraction of the run that remains, as SB3's ``LinearSchedule`` is."""

    first: float
    """Where all of it remains."""
    last: float
    """At the end."""

    def __call__(self, remaining: float) -> float:
        """The value there."""
        return self.last + (self.first - self.last) * 0.5 * (1.0 - math.cos(math.pi * remaining))


def policy_arguments(algorithm: AlgorithmBase, *, ortho_init: bool, **optimizer: Any) -> dict[str, Any]:
    """Arguments of SB3's policies that every algorithm's configuration decides; recurrent ones included.

    Args:
        algorithm: Whose.
        ortho_init: Orthogonal initial weights.
        **optimizer: Arguments of the optimizer.
    """
    from torch import nn

    kinds = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU, "silu": nn.SiLU}
    arguments: dict[str, Any] = {
        "net_arch": algorithm.net_arch.model_dump(mode="json"),
        "activation_fn": kinds[algorithm.activation],
        "ortho_init": ortho_init,
        "optimizer_kwargs": optimizer,
    }
    lstm = algorithm.memory
    if lstm is not None:
        arguments |= {
            "lstm_hidden_size": lstm.hidden_size,
            "n_lstm_layers": lstm.layers,
            "shared_lstm": lstm.critic == "shared",
            "enable_critic_lstm": lstm.critic == "own",
        }
    return arguments
