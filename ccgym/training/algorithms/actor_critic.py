"""What the configurations of the actor-critic algorithms share: advantages, weights of the loss, the value function."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator
from typing_extensions import Self, override

from ccgym.errors import ConfigError
from ccgym.training.algorithms.base import AlgorithmBase, Normalize


class ActorCritic(AlgorithmBase):
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
        if self.critic == "privileged" and (self.memory is not None or self.normalize.observation):
            raise ConfigError(
                "critic: privileged with " + ("normalize.observation" if self.memory is None else self.name),
                expected="a policy without memory, and features that are not normalized by running statistics",
                hint="write critic: same",
            )
        return self

    @property
    @override
    def normalization(self) -> Normalize:
        return self.normalize

    @property
    @override
    def discount(self) -> float:
        return self.gamma

    @property
    @override
    def privileged(self) -> bool:
        return self.critic == "privileged"
