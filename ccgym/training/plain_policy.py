"""A policy in training that is simple enough to be evaluated outside of torch, taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from ccgym.training.privileged_critic import PrivilegedCriticPolicy

if TYPE_CHECKING:
    from ccgym import _core

ACTIVATIONS: Final[Mapping[type[nn.Module], str]] = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.ELU: "elu", nn.SiLU: "silu"}
"""What may stand between layers, with its name in the native core."""


@dataclass(frozen=True)
class PlainPolicy:
    """What a Gaussian policy of plain layers, and its value function, consist of."""

    policy: list[nn.Linear]
    value: list[nn.Linear]
    activation: type[nn.Module]
    log_std: nn.Parameter
    """Logarithm of each action number's standard deviation."""
    low: npt.NDArray[np.float32]
    high: npt.NDArray[np.float32]
    """Bounds of the actions."""

    @classmethod
    def of(cls, policy: object) -> PlainPolicy | None:
        """The parts of SB3's policy.

        Returns:
            None for one of another kind: with memory, other layers, its own extractor of features, state-dependent
            exploration, squashed or discrete actions, or on a GPU.
        """
        if type(policy) is not ActorCriticPolicy and type(policy) is not PrivilegedCriticPolicy:
            return None
        space, body = policy.action_space, policy.mlp_extractor
        if not isinstance(space, spaces.Box) or type(policy.action_dist) is not DiagGaussianDistribution:
            return None
        if (
            type(policy.features_extractor) is not FlattenExtractor
            or policy.squash_output
            or policy.device.type != "cpu"
        ):
            return None
        actor, critic = [*body.policy_net[0::2], policy.action_net], [*body.value_net[0::2], policy.value_net]
        between = {type(layer) for layers in (body.policy_net, body.value_net) for layer in layers[1::2]}
        if any(type(layer) is not nn.Linear for layer in (*actor, *critic)):
            return None
        if len(between) > 1 or not between <= ACTIVATIONS.keys():
            return None
        log_std = policy.log_std
        assert isinstance(log_std, nn.Parameter)
        activation = next(iter(between), nn.Tanh)
        return cls(actor, critic, activation, log_std, space.low.astype(np.float32), space.high.astype(np.float32))

    def actor(self) -> _core.Actor:
        """The policy with its present weights, for the native core."""
        from ccgym import _core

        layers = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in self.policy]
        deviation = self.log_std.detach().exp().numpy()
        return _core.Actor(layers, ACTIVATIONS[self.activation], deviation, self.low, self.high)
