"""The gradient of PPO's loss, written out for a Gaussian policy and a value function of plain layers.

It is what autograd finds for Stable-Baselines3's loss. Written out it takes a third of the operations, and they touch
nothing that another thread uses; so parts of a batch can be done side by side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import nn

_aten = torch.ops.aten

_ACTIVATIONS: Final[Mapping[type[nn.Module], tuple[Callable[..., torch.Tensor], Callable[..., torch.Tensor]]]] = {
    nn.Tanh: (torch.tanh, lambda gradient, _, output: _aten.tanh_backward(gradient, output)),
    nn.ReLU: (torch.relu, lambda gradient, _, output: _aten.threshold_backward(gradient, output, 0)),
    nn.ELU: (
        nn.functional.elu,
        lambda gradient, _, output: _aten.elu_backward(gradient, 1, 1, 1, True, output),
    ),
    nn.SiLU: (nn.functional.silu, lambda gradient, inputs, _: _aten.silu_backward(gradient, inputs)),
}
"""What stands between layers, and its backward pass: from its output's gradient, its input and its output."""

_HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)


class Network:
    """Linear layers with one kind of activation between them.

    Args:
        layers: The linear layers.
        activation: Between them.
    """

    def __init__(self, layers: Sequence[nn.Linear], activation: type[nn.Module]) -> None:
        self.parameters: list[torch.Tensor] = [
            parameter for layer in layers for parameter in (layer.weight, layer.bias)
        ]
        """Weights and biases, layer by layer."""
        # Views: they follow the weights.
        self._layers = [(layer.weight.detach(), layer.weight.detach().t(), layer.bias.detach()) for layer in layers]
        self._activation, self._backward = _ACTIVATIONS[activation]

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
        """The answers, and before each layer the activation's input and output, for :meth:`backward`."""
        sums = values = inputs
        passed = []
        for place, (_, turned, bias) in enumerate(self._layers):
            if place:
                values = self._activation(sums)
            passed.append((sums, values))
            sums = torch.addmm(bias, values, turned)
        return sums, passed

    def backward(
        self, gradient: torch.Tensor, passed: Sequence[tuple[torch.Tensor, torch.Tensor]]
    ) -> list[torch.Tensor]:
        """Gradients of the parameters, from that of the answers."""
        found: list[torch.Tensor] = []
        for place in range(len(self._layers) - 1, -1, -1):
            sums, values = passed[place]
            found[:0] = [gradient.t().mm(values), gradient.sum(0)]
            if place:
                gradient = self._backward(gradient.mm(self._layers[place][0]), sums, values)
        return found


@dataclass(frozen=True)
class Samples:
    """Decisions of a rollout, or a part of them; one row each."""

    actor_inputs: torch.Tensor
    observations: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    """When they were taken; one column, as all that follow."""
    advantages: torch.Tensor
    returns: torch.Tensor
    values: torch.Tensor

    def at(self, rows: torch.Tensor) -> Samples:
        """Some of them."""
        return Samples(**{name: value.index_select(0, rows) for name, value in vars(self).items()})


@dataclass(frozen=True)
class Loss:
    """PPO's loss of a policy and a value function."""

    policy: Network
    """Gives the means."""
    value: Network
    log_std: nn.Parameter
    clip: float
    """Limit of the probability ratio's distance from 1."""
    clip_value: float | None
    """Limit of the value's change."""
    ent_coef: float
    vf_coef: float

    @property
    def parameters(self) -> list[torch.Tensor]:
        """What it is a function of."""
        return [self.log_std, *self.policy.parameters, *self.value.parameters]

    @torch.no_grad()
    def gradient(
        self, samples: Samples, rows: torch.Tensor, advantages: torch.Tensor, size: int
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """What a part of a batch adds to the gradient of the batch's mean loss.

        Args:
            samples: Of the rollout.
            rows: The part.
            advantages: Of the part, standardized if they are to be; one column.
            size: Of the batch.

        Returns:
            The gradient, in the order of :attr:`parameters`; and what the part adds to the means of the surrogate, the
            squared error of the value, the fraction that is clipped, and the divergence from the old policy.
        """
        part = samples.at(rows)
        means, policy_passed = self.policy.forward(part.actor_inputs)
        values, value_passed = self.value.forward(part.observations)
        log_std = self.log_std.detach()
        inverse = torch.exp(-log_std)
        distance = (part.actions - means) * inverse
        squares = distance * distance
        log_ratio = (squares * -0.5 - (log_std + _HALF_LOG_2PI)).sum(1, keepdim=True) - part.log_probs
        ratio = log_ratio.exp()
        plain = advantages * ratio
        clipped = advantages * ratio.clamp(1 - self.clip, 1 + self.clip)
        surrogate = torch.minimum(plain, clipped)
        # Of the smaller of the two. Where that is the clipped one and differs, it does not move.
        by_log_prob = torch.where(plain <= clipped, plain, 0.0) * (-1 / size)
        by_log_std = (by_log_prob * (squares - 1)).sum(0) - self.ent_coef * len(rows) / size
        policy = self.policy.backward(by_log_prob * distance * inverse, policy_passed)
        error = values - part.returns
        by_value = error
        if self.clip_value is not None:
            change = values - part.values
            error = part.values + change.clamp(-self.clip_value, self.clip_value) - part.returns
            by_value = torch.where(change.abs() <= self.clip_value, error, 0.0)
        value = self.value.backward(by_value * (2 * self.vf_coef / size), value_passed)
        away = ratio - 1
        sums = [surrogate.sum(), (error * error).sum(), (away.abs() > self.clip).sum(), (away - log_ratio).sum()]
        return [by_log_std, *policy, *value], torch.stack(sums) / size

    def entropy(self) -> float:
        """Of the policy: the same everywhere."""
        return float((self.log_std.detach() + 0.5 + _HALF_LOG_2PI).sum())
