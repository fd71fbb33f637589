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

Passed = list[tuple[torch.Tensor, torch.Tensor]]
"""What came to each layer of a network: the activation's input and its output."""


class Network:
    """Linear layers with one kind of activation between them.

    Args:
        layers: The linear layers.
        activation: Between them.
    """

    def __init__(self, layers: Sequence[nn.Linear], activation: type[nn.Module]) -> None:
        self.parameters = [parameter for layer in layers for parameter in (layer.weight, layer.bias)]
        """Weights and biases, layer by layer."""
        # Views: they follow the weights.
        self._layers = [(layer.weight.detach(), layer.weight.detach().t(), layer.bias.detach()) for layer in layers]
        self._activation, self._backward = _ACTIVATIONS[activation]

    def forward(self, inputs: torch.Tensor) -> tuple[torch.Tensor, Passed]:
        """The answers, and what :meth:`backward` needs."""
        sums = values = inputs
        passed = []
        for place, (_, turned, bias) in enumerate(self._layers):
            if place:
                values = self._activation(sums)
            passed.append((sums, values))
            sums = torch.addmm(bias, values, turned)
        return sums, passed

    def backward(self, gradient: torch.Tensor, passed: Passed, out: Sequence[torch.Tensor]) -> None:
        """Write the gradients of the parameters to ``out``, from that of the answers."""
        for place in range(len(self._layers) - 1, -1, -1):
            sums, values = passed[place]
            torch.mm(gradient.t(), values, out=out[2 * place])
            torch.sum(gradient, 0, out=out[2 * place + 1])
            if place:
                gradient = self._backward(gradient.mm(self._layers[place][0]), sums, values)


@dataclass(frozen=True)
class Samples:
    """Decisions of a rollout; one row each."""

    table: torch.Tensor
    """Observation, action, logarithm of its probability, return, value: next to each other, gathered in one go."""
    advantages: torch.Tensor
    """One column."""
    features: int
    """Of an observation."""

    @classmethod
    def of(
        cls,
        observations: torch.Tensor,
        actions: torch.Tensor,
        log_probs: torch.Tensor,
        returns: torch.Tensor,
        values: torch.Tensor,
        advantages: torch.Tensor,
    ) -> Samples:
        """From its columns; the last four are single ones."""
        table = torch.cat([observations, actions, log_probs, returns, values], dim=1)
        return cls(table, advantages, observations.shape[1])


class Gradient:
    """The parts of a gradient next to each other in one tensor.

    Args:
        parameters: What it is the gradient with respect to.
    """

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        self.flat = torch.zeros(sum(parameter.numel() for parameter in parameters))
        self.parts: list[torch.Tensor] = []
        """Views of it, of the parameters' shapes."""
        start = 0
        for parameter in parameters:
            self.parts.append(self.flat[start : start + parameter.numel()].view(parameter.shape))
            start += parameter.numel()

    def clip(self, limit: float) -> None:
        """Scale it so that its norm is at most ``limit``, as torch's ``clip_grad_norm_`` does."""
        self.flat.mul_((limit / (torch.linalg.vector_norm(self.flat) + 1e-6)).clamp(max=1.0))


@dataclass(frozen=True)
class Loss:
    """PPO's loss of a policy and a value function."""

    policy: Network
    """Gives the means; of an observation it sees the first ``inputs`` features."""
    inputs: int
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
        self, samples: Samples, size: int, rows: torch.Tensor, advantages: torch.Tensor, out: Gradient
    ) -> torch.Tensor:
        """What a part of a batch adds to the gradient of the batch's mean loss.

        Args:
            samples: Of the rollout.
            size: Of the batch.
            rows: The part.
            advantages: Of the part, standardized if they are to be; one column.
            out: Is written.

        Returns:
            What the part adds to the means of the surrogate, the squared error of the value, the fraction that is
            clipped, and the divergence from the old policy.
        """
        table = samples.table.index_select(0, rows)
        observations = table[:, : samples.features]
        actions, old, returns, before = table[:, samples.features : -3], table[:, -3:-2], table[:, -2:-1], table[:, -1:]
        by_log_std, of_policy, of_value = out.parts[0], *self._parts(out.parts[1:])
        means, policy_passed = self.policy.forward(observations[:, : self.inputs])
        values, value_passed = self.value.forward(observations)
        log_std = self.log_std.detach()
        inverse = torch.exp(-log_std)
        distance = (actions - means) * inverse
        squares = distance * distance
        log_ratio = _log_probs(squares, log_std) - old
        ratio = log_ratio.exp()
        plain = advantages * ratio
        clipped = advantages * ratio.clamp(1 - self.clip, 1 + self.clip)
        # Of the smaller of the two. Where that is the clipped one and differs, it does not move.
        by_log_prob = torch.where(plain <= clipped, plain, 0.0).mul_(-1 / size)
        torch.sum(by_log_prob * (squares - 1), 0, out=by_log_std)
        by_log_std.sub_(self.ent_coef * len(rows) / size)
        self.policy.backward(by_log_prob * distance * inverse, policy_passed, of_policy)
        error = by_value = values - returns
        if self.clip_value is not None:
            change = values - before
            error = before + change.clamp(-self.clip_value, self.clip_value) - returns
            by_value = torch.where(change.abs() <= self.clip_value, error, 0.0)
        self.value.backward(by_value * (2 * self.vf_coef / size), value_passed, of_value)
        away = ratio - 1
        numbers = [torch.minimum(plain, clipped), error * error, away.abs() > self.clip, away - log_ratio]
        return torch.cat(numbers, dim=1).sum(0).div_(size)

    def _parts(self, parts: list[torch.Tensor]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        count = len(self.policy.parameters)
        return parts[:count], parts[count:]

    @torch.no_grad()
    def judge(self, observations: torch.Tensor, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Values of observations, and logarithms of the probabilities of actions; one column each."""
        means, _ = self.policy.forward(observations[:, : self.inputs])
        log_std = self.log_std.detach()
        distance = (actions - means) * torch.exp(-log_std)
        return self.value.forward(observations)[0], _log_probs(distance * distance, log_std)

    def entropy(self) -> torch.Tensor:
        """Of the policy: the same everywhere."""
        return (self.log_std.detach() + (0.5 + _HALF_LOG_2PI)).sum()


def _log_probs(squares: torch.Tensor, log_std: torch.Tensor) -> torch.Tensor:
    """Logarithms of the probabilities of actions, one column; from their squared distances in standard deviations."""
    return (squares * -0.5 - (log_std + _HALF_LOG_2PI)).sum(1, keepdim=True)
