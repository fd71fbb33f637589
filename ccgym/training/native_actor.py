"""The policy in training as the native core evaluates it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor
from torch import nn

from ccgym.training.privileged_critic import PrivilegedCriticPolicy

if TYPE_CHECKING:
    from ccgym import _core

ACTIVATIONS: Final = {nn.Tanh: "tanh", nn.ReLU: "relu", nn.ELU: "elu", nn.SiLU: "silu"}
"""What may stand between layers, with its name in the native core."""


def native_actor(policy: object) -> _core.Actor | None:
    """A policy's Gaussian with its present weights.

    Args:
        policy: SB3's.

    Returns:
        None for a policy of another kind: with memory, other layers, its own extractor of features, state-dependent
        exploration, squashed or discrete actions, or on a GPU.
    """
    if type(policy) not in (ActorCriticPolicy, PrivilegedCriticPolicy) or not isinstance(policy, ActorCriticPolicy):
        return None
    space = policy.action_space
    if not isinstance(space, spaces.Box) or type(policy.action_dist) is not DiagGaussianDistribution:
        return None
    if type(policy.features_extractor) is not FlattenExtractor or policy.squash_output or policy.device.type != "cpu":
        return None
    body = policy.mlp_extractor.policy_net
    linear = [*body[0::2], policy.action_net]
    between = {type(layer) for layer in body[1::2]}
    if len(body) % 2 or any(type(layer) is not nn.Linear for layer in linear):
        return None
    if len(between) > 1 or not between <= ACTIVATIONS.keys():
        return None
    from ccgym import _core

    deviation = policy.log_std.detach().exp()  # type: ignore[union-attr, operator]
    return _core.Actor(
        [(_array(layer.weight), _array(layer.bias)) for layer in linear],
        ACTIVATIONS[next(iter(between))] if between else "tanh",
        _array(deviation),
        space.low.astype(np.float32),
        space.high.astype(np.float32),
    )


def _array(tensor: Any) -> Any:
    return tensor.detach().numpy() if isinstance(tensor, torch.Tensor) else tensor
