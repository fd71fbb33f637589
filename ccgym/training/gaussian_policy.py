"""A Gaussian policy of plain layers with its value function, extracted from SB3's modules.

So the policy can be evaluated in the native core, and PPO's loss has a hand-written gradient: autograd needs three
times the operations, and its threads wait for each other. Here, parts of a batch are computed in parallel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
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

_aten = torch.ops.aten

ACTIVATIONS: Final[Mapping[type[nn.Module], tuple[str, Callable[..., torch.Tensor], Callable[..., torch.Tensor]]]] = {
    nn.Tanh: ("tanh", torch.tanh, lambda gradient, _, output: _aten.tanh_backward(gradient, output)),
    nn.ReLU: ("relu", torch.relu, lambda gradient, _, output: _aten.threshold_backward(gradient, output, 0)),
    nn.ELU: ("elu", nn.functional.elu, lambda gradient, _, output: _aten.elu_backward(gradient, 1, 1, 1, True, output)),
    nn.SiLU: ("silu", nn.functional.silu, lambda gradient, inputs, _: _aten.silu_backward(gradient, inputs)),
}
"""Activations between layers: name in the native core, function, and backward pass from the gradient of the output, the
input and the output."""

_HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)

Passed = list[tuple[torch.Tensor, torch.Tensor]]
"""Input of each layer of a network: the input and the output of the activation before it."""


class Network:
    """Linear layers with one kind of activation between them.

    Args:
        layers: The linear layers.
        activation: Class of the activation between them.
    """

    def __init__(self, layers: Sequence[nn.Linear], activation: type[nn.Module]) -> None:
        self.layers = layers
        self.parameters = [parameter for layer in layers for parameter in (layer.weight, layer.bias)]
        """Weights and biases, layer by layer."""
        # Views, which follow the weights.
        self._views = [(layer.weight.detach(), layer.weight.detach().t(), layer.bias.detach()) for layer in layers]
        self.activation, self._forward, self._backward = ACTIVATIONS[activation]

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, Passed]:
        """Return the outputs, and the inputs of :meth:`backward`."""
        sums = values = inputs
        passed = []
        for place, (_, turned, bias) in enumerate(self._views):
            if place:
                values = self._forward(sums)
            passed.append((sums, values))
            sums = torch.addmm(bias, values, turned)
        return sums, passed

    def backward(self, gradient: torch.Tensor, passed: Passed, out: Sequence[torch.Tensor]) -> None:
        """Write the gradients of the parameters to ``out``, from the gradient of the outputs."""
        for place in range(len(self._views) - 1, -1, -1):
            sums, values = passed[place]
            torch.mm(gradient.t(), values, out=out[2 * place])
            torch.sum(gradient, 0, out=out[2 * place + 1])
            if place:
                gradient = self._backward(gradient.mm(self._views[place][0]), sums, values)


class GaussianPolicy:
    """The parts of a Gaussian policy of plain layers, and of its value function. They follow SB3's policy as it learns.

    Args:
        policy: SB3's policy; :meth:`of` checks that it fits.
        activation: Class of the activation between its layers.
    """

    def __init__(self, policy: ActorCriticPolicy, activation: type[nn.Module]) -> None:
        body, space, log_std = policy.mlp_extractor, policy.action_space, policy.log_std
        heads: tuple[Any, Any] = policy.action_net, policy.value_net
        assert isinstance(space, spaces.Box)
        assert isinstance(log_std, nn.Parameter)
        self.mean = Network([*body.policy_net[0::2], heads[0]], activation)
        """Network of the means; its input is the first ``inputs`` features of an observation."""
        self.inputs = self.mean.layers[0].in_features
        self.value = Network([*body.value_net[0::2], heads[1]], activation)
        self.log_std = log_std
        """Logarithm of the standard deviation of each number of an action."""
        self._box = space.low.astype(np.float32), space.high.astype(np.float32)

    @classmethod
    def of(cls, policy: object) -> GaussianPolicy | None:
        """Return the parts of SB3's policy.

        Returns:
            None for another kind of policy: with memory, other layers, its own extractor of features, state-dependent
            exploration, squashed or discrete actions, or on a GPU.
        """
        if not isinstance(policy, ActorCriticPolicy) or type(policy) not in (ActorCriticPolicy, PrivilegedCriticPolicy):
            return None
        body = policy.mlp_extractor
        layers = [*body.policy_net[0::2], *body.value_net[0::2], policy.action_net, policy.value_net]
        between = {type(layer) for net in (body.policy_net, body.value_net) for layer in net[1::2]}
        fits = (
            type(policy.action_dist) is DiagGaussianDistribution
            and type(policy.features_extractor) is FlattenExtractor
            and not policy.squash_output
            and policy.device.type == "cpu"
            and all(type(layer) is nn.Linear for layer in layers)
            and len(between) <= 1
            and between <= ACTIVATIONS.keys()
        )
        return cls(policy, next(iter(between), nn.Tanh)) if fits else None

    @property
    def parameters(self) -> list[torch.Tensor]:
        """Parameters of the loss."""
        return [self.log_std, *self.mean.parameters, *self.value.parameters]

    def actor(self) -> _core.Actor:
        """Return the policy with its current weights, for the native core."""
        from ccgym import _core

        layers = [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in self.mean.layers]
        return _core.Actor(layers, self.mean.activation, self.log_std.detach().exp().numpy(), *self._box)

    @torch.no_grad()
    def judge(self, observations: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return values of observations, and logarithms of the probabilities of actions; one column each."""
        means, _ = self.mean.forward(observations[:, : self.inputs])
        distance = (actions - means) * torch.exp(-self.log_std.detach())
        return self.value.forward(observations)[0], self.log_probs(distance * distance)

    def log_probs(self, squares: torch.Tensor) -> torch.Tensor:
        """Return logarithms of the probabilities of actions, one column, from their squared distances from the means,
        in standard deviations."""
        return (squares * -0.5 - (self.log_std.detach() + _HALF_LOG_2PI)).sum(1, keepdim=True)

    def entropy(self) -> torch.Tensor:
        """Return the entropy, which is the same for all observations."""
        return (self.log_std.detach() + (0.5 + _HALF_LOG_2PI)).sum()


class Gradient:
    """The parts of a gradient in one tensor.

    Args:
        parameters: Parameters of the gradient.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        sizes = [parameter.numel() for parameter in parameters]
        self.flat = torch.zeros(sum(sizes))
        self.parts = [part.view(one.shape) for part, one in zip(torch.split(self.flat, sizes), parameters, strict=True)]
        """Views of the tensor with the parameters' shapes."""

    def clip(self, limit: float) -> None:
        """Scale the gradient so that its norm is at most ``limit``, like torch's ``clip_grad_norm_``."""
        self.flat.mul_((limit / (torch.linalg.vector_norm(self.flat) + 1e-6)).clamp(max=1.0))
