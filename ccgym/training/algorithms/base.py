"""What the learners share: schedules, and the arguments of SB3's policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stable_baselines3.common.utils import LinearSchedule
from torch import nn

from ccgym.training.algorithms.config import Cosine, Linear, NetworkAlgorithm, Schedule


def schedule(value: Schedule) -> float | Callable[[float], float]:
    """SB3's form of a schedule: a number, or a function of the fraction of the run that remains."""

    if isinstance(value, Linear):
        return LinearSchedule(value.linear[0], value.linear[1], 1.0)
    return CosineSchedule(*value.cosine) if isinstance(value, Cosine) else value


@dataclass(frozen=True)
class CosineSchedule:
    """A function of the fraction of the run that remains, as SB3's ``LinearSchedule`` is."""

    first: float
    last: float

    def __call__(self, remaining: float) -> float:
        """The value there."""
        return self.last + (self.first - self.last) * 0.5 * (1.0 - math.cos(math.pi * remaining))


def policy_arguments(algorithm: NetworkAlgorithm, *, ortho_init: bool, **optimizer: Any) -> dict[str, Any]:
    """Arguments of SB3's policies that every algorithm's configuration decides; recurrent ones included.

    Args:
        algorithm: Whose.
        ortho_init: Orthogonal initial weights.
        **optimizer: Arguments of the optimizer.
    """

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
